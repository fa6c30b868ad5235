"""One request to the API server, bounded in time, its failures in our own words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp
import msgspec

from issuesandbox.ports.errors import CallError, Unavailable, kind_of

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_LONGEST_LINE = 2**22


class _Status(msgspec.Struct):
    message: str = ""


class KubeRequests:
    """JSON in, JSON out; strict field validation on every write."""

    def __init__(
        self,
        server: str,
        session: aiohttp.ClientSession,
        timeout: float,
        on_date: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._session = session
        self._timeout = timeout
        self._on_date = on_date

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        accept: str = "application/json",
        patch: str = MERGE_PATCH,
    ) -> bytes:
        """Send one request and return the answer's body."""
        headers = {"Accept": accept}
        parameters = dict(query or {})
        if body is not None:
            headers["Content-Type"] = patch if method == "PATCH" else "application/json"
            parameters = {
                "fieldValidation": "Strict",
                "fieldManager": "issuesandbox",
                **parameters,
            }
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._session.request(
                    method,
                    self._server + path,
                    params=parameters,
                    data=msgspec.json.encode(body) if body is not None else None,
                    headers=headers,
                ) as response,
            ):
                answer = await response.read()
                self._on_date(response.headers.get("Date", ""))
                if response.status < 300:
                    return answer
                raise _failure(f"{method} {path}", response, answer)
        except TimeoutError as error:
            text = f"the API server gave no answer to {method} {path} in {self._timeout:g} s"
            raise Unavailable(text) from error
        except aiohttp.ClientError as error:
            text = f"the API server cannot be reached for {method} {path}: {error}"
            raise Unavailable(text) from error

    async def lines(
        self, path: str, query: Mapping[str, str], silence: float
    ) -> AsyncIterator[bytes]:
        """Yield the lines of an endless answer, until it ends or is silent for too long."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=silence)
        try:
            async with self._session.get(
                self._server + path, params=query, timeout=timeout, read_bufsize=_LONGEST_LINE
            ) as response:
                if response.status >= 300:
                    raise _failure(f"GET {path}", response, await response.read())
                async for line in response.content:
                    yield line
        except (TimeoutError, aiohttp.ClientError, ValueError) as error:
            text = f"the API server's answer to {path} broke off: {error or 'silence'}"
            raise Unavailable(text) from error


def _short(message: str) -> str:
    """Return both ends of a message: of a patch it repeats the whole object before the reason."""
    return message if len(message) <= 500 else f"{message[:100]} … {message[-400:]}"


def _failure(call: str, response: aiohttp.ClientResponse, body: bytes) -> CallError:
    try:
        message = msgspec.json.decode(body, type=_Status).message
    except msgspec.MsgspecError:
        message = ""
    status = response.status
    retry_after = response.headers.get("Retry-After", "")
    return kind_of(status)(
        f"the API server answered {status} to {call}: {_short(message) or 'no message'}",
        retry_after=float(retry_after) if retry_after.isdigit() else None,
    )
