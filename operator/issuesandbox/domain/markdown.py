"""Other people's words in text that GitHub renders: shown as they are, and obeyed by nobody.

Mentions notify, references link and close issues, HTML hides things or breaks the page, images
call other hosts, and a marker could pass for ours. An invisible word joiner takes each of these
its power and leaves the text to read, inside code as well. Knows nothing of what the text says.
"""

from __future__ import annotations

import re
from typing import Final

_JOINER: Final = "\u2060"
# Control characters but tab and line feed, and those that turn the direction of text around.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_POWERS: Final = (
    re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])"),
    re.compile(r"#(?=\d)"),
    re.compile(r"\bGH-(?=\d)", re.IGNORECASE),
    re.compile(r"<(?=[A-Za-z/!?])"),
    re.compile(r"!(?=\[)"),
)
# `Closes https://github.com/o/r/issues/1` closes that issue as well.
_CLOSING: Final = re.compile(r"\b(clos|fix|resolv)(e[sd]?|es|ed|)(?=:?\s+https?://)", re.IGNORECASE)


def neutral(text: str, limit: int) -> str:
    """Return text of at most `limit` characters in which nothing has an effect on GitHub."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", text).encode("utf-8", "replace").decode()
    for power in _POWERS:
        text = power.sub(lambda found: found[0] + _JOINER, text)
    text = _CLOSING.sub(lambda found: found[1] + _JOINER + found[2], text)
    return text if len(text) <= limit else text[: max(0, limit - 1)].rstrip() + "…"


def neutral_line(text: str, limit: int) -> str:
    """Return the same in one line."""
    return neutral(" ".join(text.split()), limit)


def quoted(text: str, limit: int) -> str:
    """Return the same as a quotation: what it opens, such as a code block, ends with it."""
    lines = neutral(text.strip(), limit).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def code(text: str) -> str:
    """Return one line of text as code."""
    plain = " ".join(_INVISIBLE.sub("", text).split()).replace("`", "'")
    # GitHub shows it, but whoever looks for our marker would find it.
    plain = plain.replace("<!--", f"<{_JOINER}!--")
    return f"`{plain or ' '}`"
