"""What every request passes on its way in and out: faults, the journal, and error envelopes.

Handlers behind it say what happened; how calls are refused, lost or delayed is decided here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from aiohttp import web

from issuesandbox.local.daytona.config import ApiKey
from issuesandbox.local.daytona.errors import ApiError, EmptyAnswer
from issuesandbox.local.daytona.faults import Fault, FaultSpec, Name
from issuesandbox.local.daytona.model import Sandbox
from issuesandbox.local.daytona.rate_limit import Bucket, too_many
from issuesandbox.local.daytona.simulation import Simulation
from issuesandbox.local.daytona.views import iso

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode

# Faults that need no help from the handler.
_REQUEST_FAULTS = (Name.STATUS, Name.RESET, Name.LATE_EFFECT, Name.LOST_ANSWER, Name.TOOLBOX_DOWN)
# Faults whose delay means something else than an answer that is held back.
_OWN_DELAY = (
    Name.SLOW,
    Name.LATE_EFFECT,
    Name.STALE_LIST,
    Name.FLAPPING_LIST,
    Name.STUCK_TRANSITION,
)
_MESSAGES = {
    401: "Invalid credentials",
    403: "Access denied",
    404: "Not Found",
    409: "Sandbox was modified by another operation",
    500: "An unexpected error occurred.",
}


class Dropped(Exception):
    """The caller gets no answer."""


@dataclass(slots=True, eq=False)
class Call:
    """One request on its way."""

    simulation: Simulation
    request: web.Request
    kind: str
    bucket: Bucket | None = None
    error: type[ApiError] = ApiError
    headers: dict[str, str] = field(default_factory=dict)
    key: ApiKey | None = None
    sandbox: Sandbox | None = None
    name: str | None = None
    effect: str | None = None
    fault: str | None = None
    # For how many seconds a fault holds the answer back.
    held: float = 0.0

    @property
    def organization(self) -> str:
        """The organisation that the caller's key opens."""
        assert self.key is not None
        return self.key.organization

    @property
    def reference(self) -> str:
        """The sandbox id or name in the path."""
        return self.request.match_info.get("reference", "")

    def concerns(self, sandbox: Sandbox) -> Sandbox:
        """Note which sandbox the call is about, under the name it has now."""
        self.sandbox, self.name = sandbox, sandbox.name
        return sandbox

    def find(self, permission: str) -> Sandbox:
        """Return the sandbox in the path to a caller whose key has this permission."""
        self.need(permission)
        return self.concerns(self.simulation.store.find(self.organization, self.reference))

    def need(self, permission: str) -> None:
        """Refuse a caller whose key lacks this permission."""
        assert self.key is not None
        if permission not in self.key.permissions:
            raise ApiError(403, _MESSAGES[403])

    def row(self) -> Sandbox | None:
        """Return the sandbox that the call is about, also if it was refused before it looked."""
        if self.sandbox is None and self.key is not None and self.reference:
            return self.simulation.store.visible(self.key.organization, self.reference)
        return self.sandbox

    def take(self, *names: Name, page: int | None = None) -> Fault | None:
        """Return the fault of these names that strikes this call, if one does."""
        about: list[str | None] = [self.reference, self.key.organization if self.key else None]
        row = self.row()
        if row is not None:
            about += [row.id, row.name]
        fault = self.simulation.faults.take(names, self.kind, about, page)
        if fault is not None:
            self.fault = fault.spec.fault
            if fault.spec.fault not in _OWN_DELAY:
                self.held = max(self.held, fault.spec.delay or 0)
        return fault

    async def json(self) -> Any:
        """Return the request's body; a body that is not JSON is refused."""
        body = await self.request.read()
        try:
            return msgspec.json.decode(body) if body else {}
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.error(400, f"Request body is not valid JSON: {error}") from error


Handler = Callable[[Call], Awaitable[web.StreamResponse]]
Admission = Callable[[Call], Awaitable[dict[str, str]]]


def answer(data: Any, status: int = 200) -> web.Response:
    """Return a JSON answer."""
    return web.Response(body=_encode(data), status=status, content_type="application/json")


class Gate:
    """Wraps handlers of one family of calls."""

    def __init__(
        self, simulation: Simulation, admit: Admission, error: type[ApiError] = ApiError
    ) -> None:
        self._simulation = simulation
        self._admit = admit
        self._error = error
        self._late: set[asyncio.Task[None]] = set()

    def wrap(
        self, kind: str, handler: Handler, bucket: Bucket | None = None
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return a handler for aiohttp that does everything around `handler`."""

        async def handle(request: web.Request) -> web.StreamResponse:
            call = Call(self._simulation, request, kind, bucket, self._error)
            return await self._handle(call, handler)

        return handle

    async def close(self) -> None:
        """Forget the effects that have not landed yet."""
        for task in list(self._late):
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)

    async def _handle(self, call: Call, handler: Handler) -> web.StreamResponse:
        began = asyncio.get_running_loop().time()
        try:
            response = await self._guarded(call, self._admitted(call, handler))
        except Dropped:
            self._write_down(call, None, began)
            if call.request.transport is not None:
                call.request.transport.abort()
            return web.Response()
        self._write_down(call, response.status, began)
        return response

    async def _admitted(self, call: Call, handler: Handler) -> web.StreamResponse:
        call.headers = await self._admit(call)
        try:
            response = await self._with_faults(call, handler)
        except Exception:
            await asyncio.sleep(call.held)
            raise
        await asyncio.sleep(call.held)
        return response

    async def _guarded(self, call: Call, work: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        error: ApiError
        try:
            response = await work
            if not response.prepared:
                response.headers.update(call.headers)
            return response
        except ApiError as refused:
            error = refused
        except EmptyAnswer as empty:
            return web.Response(status=empty.status)
        except web.HTTPException as refused:
            error = self._error(refused.status, refused.reason)
        except Dropped:
            raise
        except Exception:
            _log.exception("%s %s failed", call.request.method, call.request.path)
            error = self._error(500, _MESSAGES[500])
        moment = iso(self._simulation.timeline.now())
        response = answer(
            error.envelope(call.request.path, call.request.method, moment), error.status
        )
        response.headers.update({**call.headers, **error.headers})
        return response

    async def _with_faults(self, call: Call, handler: Handler) -> web.StreamResponse:
        slow = call.take(Name.SLOW)
        if slow is not None:
            await asyncio.sleep(slow.spec.delay or 0)
        fault = call.take(*_REQUEST_FAULTS)
        if fault is None:
            return await handler(call)
        spec = fault.spec
        match spec.fault:
            case Name.STATUS:
                raise self._refusal_by(call, spec)
            case Name.LATE_EFFECT:
                await call.request.read()
                task = asyncio.ensure_future(self._later(call, handler, spec.delay or 0))
                self._late.add(task)
                task.add_done_callback(self._late.discard)
                if spec.status is not None:
                    raise self._refusal_by(call, spec)
            case Name.LOST_ANSWER:
                with suppress(ApiError):  # a refusal is lost as well
                    await handler(call)
            case Name.TOOLBOX_DOWN:
                raise EmptyAnswer(502)
        raise Dropped

    async def _later(self, call: Call, handler: Handler, delay: float) -> None:
        await asyncio.sleep(delay)
        late = replace(call, fault=Name.LATE_EFFECT)
        began = asyncio.get_running_loop().time()
        response = await self._guarded(late, handler(late))
        self._write_down(late, response.status, began)

    def _refusal_by(self, call: Call, spec: FaultSpec) -> ApiError:
        status = spec.status or 503
        if status == 429 and call.bucket is not None:
            return too_many(call.bucket, spec.retry_after)
        return self._error(status, spec.message or _MESSAGES.get(status, "Service unavailable"))

    def _write_down(self, call: Call, status: int | None, began: float) -> None:
        key, row = call.key, call.row()
        self._simulation.journal.write(
            "request",
            identity=f"{key.organization}/{key.label}" if key else None,
            kind=call.kind,
            method=call.request.method,
            path=call.request.path,
            status=status,
            sandbox=row.id if row else None,
            name=call.name,
            effect=call.effect,
            fault=call.fault,
            client=call.request.headers.get("User-Agent"),
            dur_ms=round((asyncio.get_running_loop().time() - began) * 1000, 3),
        )
