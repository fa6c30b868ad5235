"""Pushes over git's smart HTTP, without git and without a clone.

The old object id travels with each push and the remote compares it under its own lock, so that
sending the same push twice moves nothing twice. The token goes into one header, to the host it
was asked for, and into no text.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from yarl import URL

from issuesandbox.adapters.git.packets import (
    FLUSH,
    Garbled,
    Report,
    advertised_refs,
    packet,
    push_report,
)
from issuesandbox.domain.redaction import Redactor
from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound, Unavailable, kind_of
from issuesandbox.ports.github import Token
from issuesandbox.ports.remote import ZERO, Pushed, PushOrder, PushVerdict

_READ: Final = "git-upload-pack"
_WRITE: Final = "git-receive-pack"
_CAPABILITIES: Final = "report-status side-band-64k quiet agent=issuesandbox"
_LARGEST_ANSWER: Final = 64 * 1024 * 1024
_LONGEST_REASON: Final = 300
# How git and its hosts say that a ref is not where the push expected it, or is being moved.
_MOVED: Final = (
    ".lock",
    "but expected",
    "reference already exists",
    "unable to resolve reference",
    "failed to update ref",
    "fetch first",
    "non-fast-forward",
    "stale info",
)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpRemote:
    """Implements `ports.remote.GitRemote`."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        read_timeout: float = 15.0,
        push_timeout: float = 20.0,
    ) -> None:
        self._session = session
        self._read_timeout = read_timeout
        self._push_timeout = push_timeout

    async def refs(self, url: str, token: Token | None) -> Mapping[str, str]:
        """Return every ref of the remote with its object id."""
        address = _address(url, "info/refs").with_query(service=_READ)
        answer = await self._exchange("GET", address, token, None, self._read_timeout)
        if answer.status != 200:
            raise _failure(address, answer, token)
        try:
            return advertised_refs(answer.body, _READ)
        except Garbled as error:
            raise Unavailable(f"the refs of {address.path} cannot be read: {error}") from error

    async def push(self, url: str, token: Token, order: PushOrder) -> Pushed:
        """Send one receive-pack request and return what became of the ref."""
        answer = await self._push(url, token, order)
        if answer.verdict is not PushVerdict.MOVED:
            return answer
        # It may be our own push that moved it: a repeated one, or that of another operator.
        tip = (await self.refs(url, token)).get(order.ref, ZERO)
        if tip == order.new:
            return Pushed(PushVerdict.ACCEPTED)
        if tip == order.old:
            raise Unavailable(f"{order.ref} is being changed by somebody else: {answer.reason}")
        return answer

    async def _push(self, url: str, token: Token, order: PushOrder) -> Pushed:
        address = _address(url, _WRITE)
        answer = await self._exchange("POST", address, token, _request(order), self._push_timeout)
        if answer.status == 403:
            return Pushed(PushVerdict.REFUSED, _shown(_body_text(answer), token))
        if answer.status != 200:
            raise _failure(address, answer, token)
        try:
            report = push_report(answer.body)
        except Garbled as error:
            text = f"the answer to the push to {address.path} was lost: {error}"
            raise Unavailable(text) from error
        return _verdict(report, order.ref, token)

    async def _exchange(
        self, method: str, address: URL, token: Token | None, body: bytes | None, timeout: float
    ) -> _Answer:
        try:
            async with asyncio.timeout(timeout):
                answer = await self._sent(method, address, token, body)
                moved = _moved_to(address, answer)
                return await self._sent(method, moved, token, body) if moved else answer
        except TimeoutError as error:
            text = f"{address.host} gave no answer to {method} {address.path} in {timeout:g} s"
            raise Unavailable(text) from error
        except (aiohttp.ClientError, OSError) as error:
            text = f"{address.host} broke off at {method} {address.path}: {type(error).__name__}"
            raise Unavailable(text) from error

    async def _sent(
        self, method: str, address: URL, token: Token | None, body: bytes | None
    ) -> _Answer:
        async with self._session.request(
            method,
            address,
            headers=_headers(token, body),
            data=io.BytesIO(body) if body is not None else None,
            # Followed by hand, within one host: the header must not go to another.
            allow_redirects=False,
        ) as response:
            raw = bytearray()
            async for chunk in response.content.iter_any():
                raw += chunk
                if len(raw) > _LARGEST_ANSWER:
                    raise Unavailable(f"{address.host} answers without end to {address.path}")
            return _Answer(response.status, response.headers, bytes(raw))


def _address(url: str, path: str) -> URL:
    address = URL(url)
    if address.scheme not in ("http", "https") or not address.host or address.user is not None:
        raise Invalid("a git remote must be an http(s) address without a user name or password")
    return address / path


def _headers(token: Token | None, body: bytes | None) -> dict[str, str]:
    headers = {"User-Agent": "git/issuesandbox"}
    if token is not None:
        headers["Authorization"] = _credential(token)
    if body is not None:
        headers["Content-Type"] = f"application/x-{_WRITE}-request"
        headers["Accept"] = f"application/x-{_WRITE}-result"
    return headers


def _credential(token: Token) -> str:
    return aiohttp.encode_basic_auth(token.username, token.value)


def _request(order: PushOrder) -> bytes:
    command = f"{order.old} {order.new} {order.ref}\0 {_CAPABILITIES}"
    return packet(command.encode()) + FLUSH + order.pack


def _moved_to(address: URL, answer: _Answer) -> URL | None:
    """Return where the host says the repository lies now: renamed ones are forwarded."""
    if answer.status not in (301, 302, 307, 308):
        return None
    target = address.join(URL(answer.headers.get("Location", "")))
    if target.origin() != address.origin():
        raise Denied(f"{address.host} forwards {address.path} to another host")
    return target


def _verdict(report: Report, ref: str, token: Token) -> Pushed:
    reason = report.refused.get(ref, "")
    if reason and any(part in reason for part in _MOVED):
        return Pushed(PushVerdict.MOVED, _shown(reason, token))
    if report.unpacked == "ok" and ref in report.accepted:
        return Pushed(PushVerdict.ACCEPTED)
    if report.unpacked != "ok":
        reason = f"the pack was refused: {report.unpacked}"
    elif not reason:
        raise Unavailable("the remote said nothing of the pushed ref")
    # GitHub explains its rules beside the report.
    return Pushed(
        PushVerdict.REFUSED, _shown("; ".join(filter(None, (reason, report.notes))), token)
    )


def _failure(address: URL, answer: _Answer, token: Token | None) -> CallError:
    kind = NotFound if answer.status in (301, 302, 307, 308) else kind_of(answer.status)
    text = _shown(_body_text(answer), token) or "no message"
    after = answer.headers.get("Retry-After", "")
    return kind(
        f"{address.host} answered {answer.status} to {address.path}: {text}",
        retry_after=float(after) if after.isdigit() else None,
    )


def _body_text(answer: _Answer) -> str:
    return answer.body[:2000].decode(errors="replace")


def _shown(text: str, token: Token | None) -> str:
    """Return a remote's words in one line, cut, without control characters or the token."""
    if token is not None:
        # A host may show what it was sent, which is another form of it.
        sent = _credential(token).removeprefix("Basic ")
        text = Redactor((token.value, sent)).redact(text)
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line[:_LONGEST_REASON]
