"""A GitHub App: proves itself with its key and acts through its installations.

Tokens are minted for one repository and for the least that is needed, and kept until shortly
before they expire. What an installation does not grant is not asked for: GitHub would refuse all.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm
from jwt.exceptions import PyJWTError

from issuesandbox.adapters.github.models import parsed
from issuesandbox.adapters.github.requests import Caller, GitHubRequests
from issuesandbox.clock import Clock
from issuesandbox.ports.errors import Denied, Invalid, NotFound
from issuesandbox.ports.github import Token

_RENEW_BEFORE: Final = timedelta(minutes=10)
_ASSERTION_LIFE: Final = timedelta(minutes=9)
# GitHub refuses an assertion from the future, and clocks differ.
_CLOCK_DRIFT: Final = timedelta(seconds=60)
_ASSERTION_USE: Final = timedelta(minutes=7)
_INSTALLATION_KNOWN_FOR: Final = timedelta(hours=1)


class _Need(StrEnum):
    """What a token is for."""

    CLONE = "clone"
    PUSH = "push to"
    TALK = "talk about"


_PERMISSIONS: Final[Mapping[_Need, Mapping[str, str]]] = {
    _Need.CLONE: {"contents": "read"},
    # Without `workflows` GitHub refuses a push that changes workflow files.
    _Need.PUSH: {"contents": "write", "workflows": "write"},
    _Need.TALK: {"contents": "read", "issues": "write", "pull_requests": "write"},
}


class _App(msgspec.Struct):
    slug: str


class _Minted(msgspec.Struct):
    token: str
    expires_at: datetime


class _Installation(msgspec.Struct):
    id: int
    permissions: dict[str, str] = {}
    suspended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    caller: Caller
    token: Token


class AppKey:
    """The id and the private key (PEM) of an App; a key that cannot be used is `Invalid`."""

    def __init__(self, app_id: str, private_key: str) -> None:
        self._app_id = app_id
        # In environments its line ends are often written with a backslash.
        text = private_key.replace("\\n", "\n").strip() + "\n"
        try:
            key = RSAAlgorithm(RSAAlgorithm.SHA256).prepare_key(text)
            if not isinstance(key, RSAPrivateKey):
                raise TypeError
            self._key = key
        except (PyJWTError, ValueError, TypeError):
            # The cause may quote the key.
            raise Invalid(
                "the GitHub App's private key cannot be used: it must be an RSA key in PEM",
                code="BadPrivateKey",
            ) from None

    def assertion(self, now: datetime) -> str:
        """Return the App's signed word for who it is."""
        claims = {
            "iat": int((now - _CLOCK_DRIFT).timestamp()),
            "exp": int((now + _ASSERTION_LIFE).timestamp()),
            "iss": self._app_id,
        }
        return jwt.encode(claims, self._key, algorithm="RS256")


class AppCredentials:
    """Mints what each call needs."""

    def __init__(self, key: AppKey, requests: GitHubRequests, clock: Clock) -> None:
        self._key = key
        self._requests = requests
        self._clock = clock
        self._assertion: tuple[str, datetime] | None = None
        self._installations: dict[str, tuple[_Installation, datetime]] = {}
        self._told: dict[str, int] = {}
        self._kept: dict[tuple[str, _Need], _Kept] = {}
        self._locks: defaultdict[tuple[str, _Need], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._login: str | None = None

    async def caller(self, repository: str) -> Caller:
        """Return a token for issues and pull requests of one repository."""
        return (await self._ready(repository, _Need.TALK)).caller

    def rejected(self, caller: Caller) -> bool:
        """Drop a token that was revoked or expired early; the next one is new."""
        stale = [key for key, kept in self._kept.items() if kept.caller == caller]
        for key in stale:
            del self._kept[key]
        return bool(stale)

    def installed(self, repository: str, installation: int) -> None:
        """Hear which installation a repository belongs to; another one than known is the new one.

        It is looked up by its id then, and only where nobody said anything by the repository.
        """
        key = repository.lower()
        known = self._installations.get(key)
        if known is not None and known[0].id == installation:
            return
        self._told[key] = installation
        if known is not None:
            del self._installations[key]
            self._kept = {each: kept for each, kept in self._kept.items() if each[0] != key}

    async def read_token(self, repository: str) -> Token:
        """Return a token that can read the contents of one repository, and nothing else."""
        return (await self._ready(repository, _Need.CLONE)).token

    async def write_token(self, repository: str) -> Token:
        """Mint a token for pushing to one repository."""
        return (await self._minted(repository, _Need.PUSH)).token

    async def login(self) -> str:
        """Return the login of the App's bot."""
        if self._login is None:
            answer = await self._requests.get(self.app(), "app")
            self._login = f"{parsed(answer.data, _App).slug}[bot]"
        return self._login

    async def reach(self) -> AsyncIterator[tuple[Caller, str]]:
        """Return every installation, with the list of its repositories."""
        path = "app/installations{?per_page}"
        async for page in self._requests.pages(self.app(), path, {"per_page": 100}):
            for each in parsed(page, list[_Installation]):
                if each.suspended_at is not None:
                    continue
                try:
                    kept = await self._mint(each, {"permissions": {"metadata": "read"}})
                except (Denied, NotFound, Invalid):
                    continue  # suspended or removed meanwhile: the others are still reached
                yield kept.caller, "installation/repositories{?per_page}"

    def app(self) -> Caller:
        """Return the App itself, proven by its key."""
        now = self._clock.now()
        if self._assertion is None or self._assertion[1] <= now:
            self._assertion = (self._key.assertion(now), now + _ASSERTION_USE)
        return Caller("app", self._assertion[0])

    async def _ready(self, repository: str, need: _Need) -> _Kept:
        key = (repository.lower(), need)
        # One at a time: a burst of runs in one repository needs one token.
        async with self._locks[key]:
            kept = self._kept.get(key)
            if kept is None or _ends_soon(kept.token, self._clock.now()):
                kept = self._kept[key] = await self._minted(repository, need)
            return kept

    async def _minted(self, repository: str, need: _Need) -> _Kept:
        try:
            return await self._minted_once(repository, need)
        except (NotFound, Denied, Invalid):
            # Installed anew or with other rights since we asked: what we knew may be wrong.
            if self._installations.pop(repository.lower(), None) is None:
                raise
        return await self._minted_once(repository, need)

    async def _minted_once(self, repository: str, need: _Need) -> _Kept:
        installation = await self._installation(repository)
        wanted = _granted(need, installation, repository)
        name = repository.partition("/")[2]
        return await self._mint(installation, {"repositories": [name], "permissions": wanted})

    async def _mint(self, installation: _Installation, body: Mapping[str, Any]) -> _Kept:
        path = "app/installations/{id}/access_tokens"
        # A token that is minted twice is one too many, and dies by itself.
        answer = await self._requests.send(
            "POST", self.app(), path, {"id": str(installation.id)}, body=body, repeat=True
        )
        minted = parsed(answer.data, _Minted)
        caller = Caller(f"installation {installation.id}", minted.token)
        return _Kept(caller, Token(minted.token, expires_at=minted.expires_at))

    async def _installation(self, repository: str) -> _Installation:
        key, now = repository.lower(), self._clock.now()
        known = self._installations.get(key)
        if known is not None and now < known[1]:
            return known[0]
        found = await self._told_of(key) or await self._discovered(repository)
        self._installations[key] = (found, now + _INSTALLATION_KNOWN_FOR)
        return found

    async def _told_of(self, key: str) -> _Installation | None:
        told = self._told.pop(key, None)
        if told is None:
            return None
        try:
            answer = await self._requests.get(self.app(), "app/installations/{id}", {"id": told})
        except NotFound:
            return None  # removed since
        return parsed(answer.data, _Installation)

    async def _discovered(self, repository: str) -> _Installation:
        owner, _, name = repository.partition("/")
        path = "repos/{owner}/{name}/installation"
        try:
            answer = await self._requests.get(self.app(), path, {"owner": owner, "name": name})
        except NotFound as error:
            text = (
                f"the GitHub App is not installed on {repository}, or there is no such repository"
            )
            raise NotFound(text, code="NotInstalled") from error
        return parsed(answer.data, _Installation)


def _granted(need: _Need, installation: _Installation, repository: str) -> dict[str, str]:
    levels = ("read", "write", "admin")
    granted = {
        scope: level
        for scope, level in _PERMISSIONS[need].items()
        if installation.permissions.get(scope) in levels[levels.index(level) :]
    }
    if need is not _Need.TALK and "contents" not in granted:
        text = (
            f"the GitHub App may not {need} {repository}: "
            f"grant it the permission `contents: {_PERMISSIONS[need]['contents']}`"
        )
        raise Denied(text, code="PermissionNotGranted")
    return granted or {"metadata": "read"}


def _ends_soon(token: Token, now: datetime) -> bool:
    return token.expires_at is not None and token.expires_at - now <= _RENEW_BEFORE
