"""One request to GitHub: bounded in time, conditional where it can be, failures in our words.

Knows how GitHub wants to be talked to but not what anything is asked for. Only calls that
change nothing, or that say so, are ever repeated.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import msgspec
from gidgethub import GitHubException, sansio
from yarl import URL

from issuesandbox.adapters.github.failures import failure
from issuesandbox.clock import Clock
from issuesandbox.ports.errors import CallError, Throttled, Unavailable

Variables = Mapping[str, str | int]

_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.3
_REMEMBERED_ANSWERS: Final = 256
_LARGEST_REMEMBERED: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a request is made as: a credential, and whose budget of requests it uses."""

    budget: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer and the address of the next page."""

    data: Any
    following: str | None = None


@dataclass(frozen=True, slots=True)
class _Remembered:
    etag: str
    answer: Answer


def open_session(*, limit: int = 50) -> aiohttp.ClientSession:
    """Return a session that honours the environment's proxies and CA bundle."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit),
        trust_env=True,
        cookie_jar=aiohttp.DummyCookieJar(),
    )


class GitHubRequests:
    """JSON in, JSON out, for github.com or an Enterprise server."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, clock: Clock, timeout: float = 10.0
    ) -> None:
        # Relative paths are joined to it: without the slash `/api/v3` would be cut off.
        self._base = url.rstrip("/") + "/"
        self._session = session
        self._clock = clock
        self._timeout = timeout
        self._remembered: OrderedDict[tuple[str, str], _Remembered] = OrderedDict()
        self._closed_until: dict[str, float] = {}

    async def get(self, caller: Caller, path: str, variables: Variables | None = None) -> Answer:
        """Read one thing, or one page of things."""
        return await self.send("GET", caller, path, variables, repeat=True)

    async def pages(
        self, caller: Caller, path: str, variables: Variables | None = None
    ) -> AsyncIterator[Any]:
        """Read a list to its end, page by page."""
        answer = await self.get(caller, path, variables)
        while True:
            yield answer.data
            if answer.following is None:
                return
            answer = await self.following(caller, answer.following)

    async def following(self, caller: Caller, address: str) -> Answer:
        """Read the page that an answer named as the next one, from the host we know."""
        # A credential is not carried to a host that an answer names.
        page = URL(self._base).origin().join(URL(address, encoded=True).relative())
        return await self.send("GET", caller, str(page), repeat=True)

    async def send(
        self,
        method: str,
        caller: Caller,
        path: str,
        variables: Variables | None = None,
        *,
        body: Mapping[str, Any] | None = None,
        repeat: bool = False,
    ) -> Answer:
        """Send one request; `repeat` says that sending it twice does no harm."""
        url = sansio.format_url(path, dict(variables or {}), base_url=self._base)
        for left in reversed(range(_TRIES if repeat else 1)):
            self._check_open(caller)
            try:
                return await self._exchange(method, caller, url, body)
            except Unavailable:
                if not left:
                    raise
                spread = 1 + random.random()  # noqa: S311 - spreads load
                await asyncio.sleep(_PAUSE_SECONDS * (_TRIES - left) * spread)
        raise AssertionError("unreachable")

    def _check_open(self, caller: Caller) -> None:
        # GitHub bans who goes on asking while a limit is in force.
        left = self._closed_until.get(caller.budget, 0.0) - self._clock.monotonic()
        if left > 0:
            text = f"GitHub's rate limit is used up for another {left:.0f} s"
            raise Throttled(text, code="RateLimited", retry_after=left)

    async def _exchange(
        self, method: str, caller: Caller, url: str, body: Mapping[str, Any] | None
    ) -> Answer:
        known = self._remembered.get((caller.budget, url)) if method == "GET" else None
        call = f"{method} {URL(url, encoded=True).path}"
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._session.request(
                    method,
                    URL(url, encoded=True),
                    headers=_headers(caller, known),
                    data=msgspec.json.encode(body) if body is not None else None,
                    # A redirect may lead to another repository: the caller has to know.
                    allow_redirects=False,
                ) as response,
            ):
                raw = await response.read()
        except TimeoutError as error:
            text = f"GitHub gave no answer to {call} in {self._timeout:g} s"
            raise Unavailable(text) from error
        except (aiohttp.ClientError, OSError) as error:
            text = f"GitHub cannot be reached for {call}: {type(error).__name__}"
            raise Unavailable(text) from error
        if known is not None and response.status == HTTPStatus.NOT_MODIFIED:
            return known.answer
        if response.status >= 300:
            raise self._refusal(caller, call, response, raw)
        return self._read(caller, url, response, raw)

    def _read(
        self, caller: Caller, url: str, response: aiohttp.ClientResponse, raw: bytes
    ) -> Answer:
        try:
            data, _, following = sansio.decipher_response(response.status, response.headers, raw)
        except (ValueError, GitHubException) as error:
            text = f"GitHub's answer to {response.method} {response.url.path} makes no sense"
            raise Unavailable(text) from error
        answer, etag = Answer(data, following), response.headers.get("ETag")
        if response.method == "GET" and etag and len(raw) <= _LARGEST_REMEMBERED:
            self._remembered[caller.budget, url] = _Remembered(etag, answer)
            self._remembered.move_to_end((caller.budget, url))
            if len(self._remembered) > _REMEMBERED_ANSWERS:
                self._remembered.popitem(last=False)
        return answer

    def _refusal(
        self, caller: Caller, call: str, response: aiohttp.ClientResponse, raw: bytes
    ) -> CallError:
        error = failure(call, response.status, raw, response.headers, self._clock.now())
        if isinstance(error, Throttled):
            until = self._clock.monotonic() + (error.retry_after or 0.0)
            self._closed_until[caller.budget] = until
        return error


def _headers(caller: Caller, known: _Remembered | None) -> dict[str, str]:
    headers = {
        **sansio.create_headers("issuesandbox"),
        "authorization": f"Bearer {caller.secret}",
        "content-type": "application/json",
        "x-github-api-version": "2022-11-28",
    }
    if known is not None:
        headers["if-none-match"] = known.etag
    return headers
