"""Daytona's rate limits: which bucket a call is counted in, and what the answer tells of it.

A middleware of the HTTP session, so that every call passes the gate and no caller has to know.
Decides nothing itself: the gate does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import aiohttp

from issuesandbox.domain.buckets import (
    WINDOW,
    Allowance,
    Answer,
    Bucket,
    NoLimit,
    Priority,
    Refusal,
)

_LIFECYCLE = frozenset({"start", "stop", "recover", "archive", "resize", "pause"})


class Gate(Protocol):
    """Lets calls through in the order of their priority."""

    async def pass_through(self, bucket: Bucket, priority: Priority) -> None:
        """Return when the call may be sent; raise `Throttled` if that takes too long."""
        ...

    def last_look(self) -> None:
        """Raise what keeps a change from being sent, though it has waited for its turn."""
        ...

    def learn(self, bucket: Bucket, answer: Answer) -> None:
        """Take note of what Daytona told about a bucket."""
        ...


def rate_limited(gate: Gate) -> aiohttp.ClientMiddlewareType:
    """Return a middleware that sends every call through the gate and lets the gate learn."""

    async def middleware(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        bucket, priority = classify(request.method, request.url.path)
        await gate.pass_through(bucket, priority)
        if request.method != "GET":
            gate.last_look()
        response = await handler(request)
        answer = read_answer(bucket, response.status, response.headers)
        if answer is not None:
            gate.learn(bucket, answer)
        return response

    return middleware


def classify(method: str, path: str) -> tuple[Bucket, Priority]:
    """Return the bucket that Daytona counts a call in, and how urgent such a call is."""
    _, found, below = f"{path.rstrip('/')}/".partition("/sandbox/")
    match (method, *below.rstrip("/").split("/")) if found else ():
        case ("POST", "") | ("POST", _, "fork"):
            return Bucket.CREATE, Priority.CREATE
        case "DELETE", _:
            return Bucket.LIFECYCLE, Priority.KILL
        case "POST", _, "stop" | "pause":
            return Bucket.LIFECYCLE, Priority.STOP
        case "POST", _, action if action in _LIFECYCLE:
            return Bucket.LIFECYCLE, Priority.CREATE
    return Bucket.GENERAL, Priority.READ


def read_answer(bucket: Bucket, status: int, headers: Mapping[str, str]) -> Answer | None:
    """Return what an answer tells of a bucket; None if nothing can be learned from it.

    The headers must ignore case, as aiohttp's do.
    """
    if status == 429:
        # A plain Retry-After is sent to an address with too many failed logins.
        told = headers.get(f"Retry-After-{bucket}") or headers.get("Retry-After")
        return Refusal(_number(told, WINDOW))
    limit = headers.get(f"X-RateLimit-Limit-{bucket}", "")
    remaining = headers.get(f"X-RateLimit-Remaining-{bucket}", "")
    if not limit and not remaining:
        return NoLimit() if status < 300 else None
    if not (limit.isdecimal() and remaining.isdecimal()):
        return None
    reset = _number(headers.get(f"X-RateLimit-Reset-{bucket}"), WINDOW)
    return Allowance(int(limit), int(remaining), reset)


def _number(text: str | None, default: float) -> float:
    return float(text) if text is not None and text.isdecimal() else default
