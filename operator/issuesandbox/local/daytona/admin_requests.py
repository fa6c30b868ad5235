"""What all of the administrator's calls share: reading bodies, refusing bad ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.gate import answer
from issuesandbox.local.daytona.timeline import Timeline

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seconds(msgspec.Struct, forbid_unknown_fields=True):
    """A length of time."""

    seconds: float


def refusing(timeline: Timeline, handler: Handler) -> Handler:
    """Return the handler with its refusals in the API's envelope."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            moment = views.iso(timeline.now())
            return answer(error.envelope(request.path, request.method, moment), error.status)

    return handle


async def read(request: web.Request, kind: type[T]) -> T:
    """Return the body as a value of this kind; unknown fields are refused, typos would hide."""
    body = await request.read() or b"{}"
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ApiError(400, str(error)) from error


def whole_number(request: web.Request, name: str) -> int | None:
    """Return a number from the query, if it is there."""
    text = request.query.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise ApiError(400, f"{name} must be a whole number")
    return int(text)
