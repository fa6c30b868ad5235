"""What an agent said of the tests it ran, found in its summary. Pure; believes nothing of it."""

from __future__ import annotations

import re
from typing import Final

from issuesandbox.domain.prompt import clean

_LONGEST: Final = 500
# `Tests: 12 passed`, also as a list item, a heading or in bold.
_LINE: Final = re.compile(
    r"^[\s#>*_`-]*tests?(?:\s+run)?[*_`]*\s*(?::|$)[*_`]*\s*(?P<said>.*)$", re.IGNORECASE
)
_HEADING: Final = re.compile(r"^\s*#")


def reported_tests(summary: str) -> str | None:
    """Return the line on tests, else the text below a heading on tests; None if there is none."""
    lines = clean(summary).splitlines()
    for place, line in enumerate(lines):
        found = _LINE.match(line)
        if found is None:
            continue
        said = found["said"].strip() or _below(lines[place + 1 :])
        if said:
            return said[:_LONGEST]
    return None


def _below(lines: list[str]) -> str:
    """Return the first paragraph, in one line."""
    kept: list[str] = []
    for line in lines:
        if _HEADING.match(line) or (kept and not line.strip()):
            break
        if line.strip():
            kept.append(line.strip(" \t*-"))
    return " ".join(kept)
