"""The git remote that work is pushed to, by the operator itself and never from a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from issuesandbox.ports.github import Token

ZERO = "0" * 40


class PushVerdict(StrEnum):
    """What the remote said of a push."""

    ACCEPTED = "Accepted"
    MOVED = "Moved"
    """The ref was not where the push expected it."""
    REFUSED = "Refused"
    """A rule of the remote forbids it: protection, permissions, a broken pack."""


@dataclass(frozen=True, slots=True)
class PushOrder:
    """One ref to move from `old` to `new`; `old` is `ZERO` if it must not exist."""

    ref: str
    old: str
    new: str
    pack: bytes


@dataclass(frozen=True, slots=True)
class Pushed:
    """The answer to a push; `reason` is the remote's own, cut and without secrets."""

    verdict: PushVerdict
    reason: str = ""


class GitRemote(Protocol):
    """git over HTTP; a lost answer is `Unavailable`, and the push may have happened."""

    async def refs(self, url: str, token: Token | None) -> Mapping[str, str]:
        """Return every ref of the remote with its object id."""
        ...

    async def push(self, url: str, token: Token, order: PushOrder) -> Pushed:
        """Send one push and return what became of the ref.

        A ref that is at `new` already is accepted: the same push was sent before, or by another
        operator at the same time.
        """
        ...
