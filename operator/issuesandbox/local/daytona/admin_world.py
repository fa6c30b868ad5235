"""The administrator's calls about the service as a whole: `/_sim/...`.

Time, faults, settings and the journal. They need no key: the simulator listens on the loopback
address. Off with `--no-admin`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import msgspec
from aiohttp import web

from issuesandbox.local.daytona.admin_requests import Seconds, read, refusing, whole_number
from issuesandbox.local.daytona.config import Quota, RateLimits
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.faults import Fault, FaultSpec, Name
from issuesandbox.local.daytona.gate import answer
from issuesandbox.local.daytona.simulation import Simulation

_CHUNK = 1 << 16


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What may be changed while the simulator runs; what is missing stays as it is."""

    lookup_cache_seconds: float | None = None
    warm: bool | None = None
    timings: dict[str, float] | None = None
    quotas: dict[str, Quota] | None = None
    # False switches them off.
    rate_limits: RateLimits | Literal[False] | None = None


class AdminWorldCalls:
    """Handlers of the calls about everything at once."""

    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        plain = [
            web.get("/_sim/health", self._health),
            web.get("/_sim/journal", self._journal),
            web.get("/_sim/faults", self._faults),
            web.post("/_sim/faults", self._add_fault),
            web.delete("/_sim/faults", self._clear_faults),
            web.delete("/_sim/faults/{fault}", self._remove_fault),
            web.post("/_sim/advance", self._advance),
            web.patch("/_sim/settings", self._settings),
            web.get("/_sim/processes", self._processes),
        ]
        timeline = self._sim.timeline
        return [
            web.route(route.method, route.path, refusing(timeline, route.handler))
            for route in plain
        ]

    async def _health(self, request: web.Request) -> web.Response:
        return answer({"sandboxes": len(self._sim.store), "seq": self._sim.journal.last})

    async def _journal(self, request: web.Request) -> web.StreamResponse:
        since, limit = (whole_number(request, name) for name in ("since", "limit"))
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        batch = bytearray()
        for line in self._sim.journal.lines(since or 0, limit):
            batch += line
            if len(batch) > _CHUNK:
                await response.write(bytes(batch))
                batch.clear()
        await response.write(bytes(batch))
        await response.write_eof()
        return response

    async def _faults(self, request: web.Request) -> web.Response:
        return answer([_fault_view(fault) for fault in self._sim.faults.all()])

    async def _add_fault(self, request: web.Request) -> web.Response:
        spec = await read(request, FaultSpec)
        if spec.fault in (Name.STALE_LIST, Name.FLAPPING_LIST):
            self._sim.listing.remember()
        fault = self._sim.faults.add(spec, self._sim.timeline.now())
        return answer(_fault_view(fault), 201)

    async def _clear_faults(self, request: web.Request) -> web.Response:
        self._sim.faults.clear()
        return web.Response(status=204)

    async def _remove_fault(self, request: web.Request) -> web.Response:
        self._sim.faults.remove(request.match_info["fault"])
        return web.Response(status=204)

    async def _advance(self, request: web.Request) -> web.Response:
        wanted = await read(request, Seconds)
        if wanted.seconds < 0:
            raise ApiError(400, "time only goes forward")
        await self._sim.timeline.advance(wanted.seconds)
        return answer({"now": self._sim.timeline.now()})

    async def _settings(self, request: web.Request) -> web.Response:
        new = await read(request, Settings)
        if new.timings is not None:
            try:
                self._sim.lifecycle.timings = replace(self._sim.lifecycle.timings, **new.timings)
            except TypeError as error:
                raise ApiError(400, "timings has a name that does not exist") from error
        if new.lookup_cache_seconds is not None:
            self._sim.lookup.switch(new.lookup_cache_seconds)
        if new.warm is not None:
            self._sim.warm = new.warm
        if new.quotas is not None:
            self._sim.quotas.update(new.quotas)
        if new.rate_limits is not None:
            self._sim.limiter.switch(new.rate_limits or None)
        return web.Response(status=204)

    async def _processes(self, request: web.Request) -> web.Response:
        return answer(await self._sim.machines.process_ids())


def _fault_view(fault: Fault) -> dict[str, Any]:
    counters = {"id": fault.id, "left": fault.left, "struck": fault.struck}
    return {**counters, **msgspec.to_builtins(fault.spec)}
