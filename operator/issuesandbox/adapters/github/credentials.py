"""Who we are on GitHub: what every kind of credential has to offer, and the plainest kind.

Secrets live in memory alone and appear in no text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from issuesandbox.adapters.github.models import parsed
from issuesandbox.adapters.github.requests import Caller, GitHubRequests
from issuesandbox.ports.github import Token


class Credentials(Protocol):
    """Where the credential for each call comes from."""

    async def caller(self, repository: str) -> Caller:
        """Return who talks to the API about a repository."""
        ...

    def rejected(self, caller: Caller) -> bool:
        """Hear that GitHub did not know a credential; tell whether a new one may help."""
        ...

    def installed(self, repository: str, installation: int) -> None:
        """Hear which installation a repository belongs to."""
        ...

    async def read_token(self, repository: str) -> Token | None:
        """Return a token that can fetch from a repository and do nothing else, if there is one."""
        ...

    async def write_token(self, repository: str) -> Token:
        """Return a token that can push to a repository."""
        ...

    async def login(self) -> str:
        """Return the login under which we act."""
        ...

    def reach(self) -> AsyncIterator[tuple[Caller, str]]:
        """Return callers, each with the path that lists the repositories it reaches."""
        ...

    def app(self) -> Caller | None:
        """Return the App itself, or None if we are none."""
        ...


class _Account(msgspec.Struct):
    login: str


@dataclass(frozen=True, slots=True)
class PlainToken:
    """A token given by the administrator, and one that goes into sandboxes to clone with."""

    value: str = field(repr=False)
    read: str | None = field(default=None, repr=False)


class PersonalToken:
    """A token given by the administrator. It cannot be narrowed: it may read and write alike."""

    def __init__(self, token: PlainToken, requests: GitHubRequests) -> None:
        self._caller = Caller("token", token.value)
        self._read = token.read
        self._requests = requests
        self._login: str | None = None

    async def caller(self, repository: str) -> Caller:
        """Return the one caller there is."""
        return self._caller

    def rejected(self, caller: Caller) -> bool:
        """Tell that there is no other credential."""
        return False

    def installed(self, repository: str, installation: int) -> None:
        """Let it pass: a person has no installations."""

    async def read_token(self, repository: str) -> Token | None:
        """Return the token that was given for this: the other one must not enter a sandbox."""
        return Token(self._read) if self._read is not None else None

    async def write_token(self, repository: str) -> Token:
        """Return the token itself."""
        return Token(self._caller.secret)

    async def login(self) -> str:
        """Return whose token it is."""
        if self._login is None:
            answer = await self._requests.get(self._caller, "user")
            self._login = parsed(answer.data, _Account).login
        return self._login

    async def reach(self) -> AsyncIterator[tuple[Caller, str]]:
        """Return the person, with the list of their repositories."""
        yield self._caller, "user/repos{?per_page}"

    def app(self) -> Caller | None:
        """Return nothing: a person is no App."""
        return None
