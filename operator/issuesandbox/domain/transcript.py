"""What is kept of an agent's output for people: its beginning and its end, without secrets.

A secret must not be cut in two, since neither half would be recognised: texts are cut at line
breaks and before anything is hidden in them. Knows nothing of where the output lies.
"""

from __future__ import annotations

from typing import Final

from issuesandbox.domain.prompt import clean
from issuesandbox.domain.redaction import Redactor

MAX_TRANSCRIPT: Final = 900 * 1024
HEAD: Final = 300 * 1024
TAIL: Final = MAX_TRANSCRIPT - HEAD - 1024
_GAP: Final = "\n[...]\n"
# A line break is looked for in so much of a text; where there is none, so much is left out.
_NEAR: Final = 64 * 1024
_LONGEST_SECRET: Final = 8 * 1024


def transcript(head: bytes, tail: bytes, redactor: Redactor, *, gap: bool) -> str:
    """Return the transcript; with a gap, something between head and tail is left out."""
    if gap:
        parts = [_before_cut(head), _after_cut(tail)]
        text = _GAP.join(redactor.redact(_readable(each)) for each in parts)
    else:
        text = redactor.redact(_readable(head + tail))
    # Only what looks like an address grows when it is hidden, and only by a little.
    return text.encode()[:MAX_TRANSCRIPT].decode(errors="ignore")


def excerpt(data: bytes, redactor: Redactor, *, cut: bool) -> str:
    """Return output that is still written to; with a cut, something before it is left out."""
    return redactor.redact(_readable(_before_cut(_after_cut(data) if cut else data)))


def _readable(data: bytes) -> str:
    # One byte for each that is no text: the mark for it would take three.
    return clean(data.decode(errors="replace").replace("\ufffd", "?"))


def _before_cut(data: bytes) -> bytes:
    end = data.rfind(b"\n", max(0, len(data) - _NEAR))
    return data[: end + 1] if end >= 0 else data[:-_LONGEST_SECRET]


def _after_cut(data: bytes) -> bytes:
    begin = data.find(b"\n", 0, _NEAR)
    return data[begin + 1 :] if begin >= 0 else data[_LONGEST_SECRET:]
