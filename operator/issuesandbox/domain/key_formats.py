"""What is plainly wrong with a key, told without showing it.

Services change the look of their keys, so an unknown look is no flaw: only what cannot be right
is. Knows no setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class KeyKind(StrEnum):
    """The services whose keys are told apart."""

    DAYTONA = "a Daytona key"
    GITHUB = "a GitHub token"
    ANTHROPIC = "an Anthropic key"
    PRIVATE = "a private key"


_BEGINNINGS: Final[Mapping[KeyKind, re.Pattern[str]]] = {
    KeyKind.DAYTONA: re.compile(r"dtn_"),
    KeyKind.GITHUB: re.compile(r"gh[opusr]_|github_pat_"),
    KeyKind.ANTHROPIC: re.compile(r"sk-ant-"),
    KeyKind.PRIVATE: re.compile(r"-----BEGIN "),
}
_QUOTED: Final = re.compile(r"""(["']).*\1""", re.DOTALL)


def flaw(kind: KeyKind, value: str) -> str | None:
    """Return what is wrong with a key of this kind, or None; never any part of it."""
    if _QUOTED.fullmatch(value.strip()):
        return "is in quotes: give the bare value"
    for other, beginning in _BEGINNINGS.items():
        if other is not kind and beginning.match(value):
            return f"looks like {other}, not like {kind}"
    if kind is KeyKind.PRIVATE:
        whole = "PRIVATE KEY-----" in value and "-----END " in value
        return None if whole else "is not a private key in PEM format"
    if any(each.isspace() or not each.isprintable() for each in value):
        return "has spaces or line breaks in it"
    return None if value.isascii() else "has characters in it that no key has"
