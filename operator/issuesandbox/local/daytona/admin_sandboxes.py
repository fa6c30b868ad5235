"""The administrator's calls about sandboxes: `/_sim/sandboxes/...` and `/_sim/wipe`.

What happens behind every caller's back: things appear, stop, break and vanish.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.admin_requests import Seconds, read, refusing
from issuesandbox.local.daytona.gate import answer
from issuesandbox.local.daytona.lifecycle import visible_state
from issuesandbox.local.daytona.model import Desired, Sandbox, SandboxId, State
from issuesandbox.local.daytona.simulation import Simulation

_CAUSE = "admin"
# Where a sandbox in such a state was told to go; in all others it keeps the wish it had.
_HEADED_FOR = {
    State.STARTED: Desired.STARTED,
    State.STOPPING: Desired.STOPPED,
    State.STOPPED: Desired.STOPPED,
    State.ARCHIVING: Desired.ARCHIVED,
    State.ARCHIVED: Desired.ARCHIVED,
    State.PAUSING: Desired.PAUSED,
    State.PAUSED: Desired.PAUSED,
    State.DESTROYING: Desired.DESTROYED,
    State.DESTROYED: Desired.DESTROYED,
}


class Plant(msgspec.Struct, forbid_unknown_fields=True):
    """Sandboxes that appear from nowhere; `{n}` in the name is the number of the copy."""

    organization: str
    name: str | None = None
    count: int = 1
    state: State = State.STARTED
    desired: Desired | None = None
    labels: dict[str, str] = {}
    env: dict[str, str] = {}
    snapshot: str | None = None
    # Seconds since its creation.
    age: float = 0.0
    auto_stop: int = 15
    error_reason: str | None = None
    recoverable: bool = False


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """A state to put a sandbox into."""

    state: State
    desired: Desired | None = None
    reason: str | None = None
    recoverable: bool = False
    # Of an error: what runs in the sandbox goes on, and its toolbox answers.
    alive: bool = False


class Wipe(msgspec.Struct, forbid_unknown_fields=True):
    """What to wipe; without an organisation everything."""

    organization: str | None = None


class AdminSandboxCalls:
    """Handlers of the calls about single sandboxes."""

    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        one = "/_sim/sandboxes/{reference}"
        plain = [
            web.get("/_sim/sandboxes", self._all),
            web.post("/_sim/sandboxes", self._plant),
            web.post("/_sim/wipe", self._wipe),
            web.post(f"{one}/stop", self._stop),
            web.post(f"{one}/destroy", self._destroy),
            web.post(f"{one}/state", self._place),
            web.post(f"{one}/idle", self._idle),
            web.post(f"{one}/release", self._release),
            web.post(f"{one}/lose-container", self._lose_container),
            web.post(f"{one}/restart-daemon", self._restart_daemon),
        ]
        timeline = self._sim.timeline
        return [
            web.route(route.method, route.path, refusing(timeline, route.handler))
            for route in plain
        ]

    async def _all(self, request: web.Request) -> web.Response:
        return answer([self._view(sandbox) for sandbox in self._sim.store])

    async def _plant(self, request: web.Request) -> web.Response:
        wanted = await read(request, Plant)
        rows = [self._row(wanted, number) for number in range(wanted.count)]
        for row in rows:
            self._sim.lifecycle.add(row, _CAUSE)
        return answer([{"id": row.id, "name": row.name} for row in rows], 201)

    async def _wipe(self, request: web.Request) -> web.Response:
        wanted = await read(request, Wipe)
        gone = 0
        for sandbox in self._sim.store:
            if wanted.organization in (None, sandbox.organization):
                await self._put(sandbox, State.DESTROYED, Desired.DESTROYED)
                gone += 1
        return answer({"destroyed": gone})

    async def _stop(self, request: web.Request) -> web.Response:
        # The runner reports what it sees and the service makes it the wish: stopped, stopped.
        return await self._put(self._find(request), State.STOPPED, Desired.STOPPED)

    async def _destroy(self, request: web.Request) -> web.Response:
        return await self._put(self._find(request), State.DESTROYED, Desired.DESTROYED)

    async def _place(self, request: web.Request) -> web.Response:
        wanted = await read(request, Place)
        sandbox = self._find(request)
        sandbox.error_reason, sandbox.recoverable = wanted.reason, wanted.recoverable
        sandbox.container_lives = wanted.alive and wanted.state is State.ERROR
        desired = wanted.desired or _HEADED_FOR.get(wanted.state, sandbox.desired)
        return await self._put(sandbox, wanted.state, desired)

    async def _idle(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        wanted = await read(request, Seconds)
        sandbox.last_activity_at = self._sim.timeline.now() - wanted.seconds
        self._sim.lifecycle.touch(sandbox)
        return answer(self._view(sandbox))

    async def _release(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        self._sim.lifecycle.release(sandbox)
        return answer(self._view(sandbox))

    async def _lose_container(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        await self._sim.machines.discard(sandbox.id)
        sandbox.container_gone = True
        self._sim.store.save(sandbox)
        return answer(self._view(sandbox))

    async def _restart_daemon(self, request: web.Request) -> web.Response:
        sandbox = self._find(request)
        await self._sim.machines.of(sandbox).forget_sessions()
        return answer(self._view(sandbox))

    async def _put(self, sandbox: Sandbox, state: State, desired: Desired) -> web.Response:
        await self._sim.lifecycle.place(sandbox, state, desired, _CAUSE)
        return answer(self._view(sandbox))

    def _find(self, request: web.Request) -> Sandbox:
        return self._sim.store.find_anywhere(request.match_info["reference"])

    def _row(self, wanted: Plant, number: int) -> Sandbox:
        sandbox = SandboxId(str(uuid.uuid4()))
        now = self._sim.timeline.now()
        return Sandbox(
            id=sandbox,
            organization=wanted.organization,
            name=sandbox if wanted.name is None else wanted.name.replace("{n}", str(number)),
            state=wanted.state,
            desired=wanted.desired or _HEADED_FOR.get(wanted.state, Desired.STARTED),
            created_at=now - wanted.age,
            updated_at=now,
            last_activity_at=now,
            snapshot=wanted.snapshot or self._sim.config.snapshots[0].name,
            labels=wanted.labels,
            env=wanted.env,
            auto_stop=wanted.auto_stop,
            error_reason=wanted.error_reason,
            recoverable=wanted.recoverable,
        )

    def _view(self, sandbox: Sandbox) -> dict[str, Any]:
        view = views.sandbox_view(sandbox, self._sim.toolbox_url)
        return {**view, "visibleState": visible_state(sandbox), "busy": sandbox.busy}
