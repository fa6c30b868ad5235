"""The calls that make, move and end sandboxes.

Reads requests and shows rows; rules are in model.py, transitions in lifecycle.py.
"""

from __future__ import annotations

from aiohttp import web

from issuesandbox.local.daytona import model, views
from issuesandbox.local.daytona.config import DELETE, WRITE
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.faults import Fault, Name
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.model import Desired, Sandbox, State
from issuesandbox.local.daytona.new_sandbox import read_new_sandbox
from issuesandbox.local.daytona.quota import Usage, check_room, check_size
from issuesandbox.local.daytona.rate_limit import Bucket
from issuesandbox.local.daytona.simulation import Simulation

_DEFAULT_REASON = "Failed to start the container"
_NOT_DESTROYED = "Failed to destroy the container"


class LifecycleCalls:
    """Handlers of the calls that change a sandbox's state."""

    def __init__(self, simulation: Simulation, gate: Gate) -> None:
        self._sim = simulation
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        wrap, bucket = self._gate.wrap, Bucket.LIFECYCLE
        one = "/api/sandbox/{reference}"
        return [
            web.post("/api/sandbox", wrap("sandbox.create", self._create, Bucket.CREATE)),
            web.delete(one, wrap("sandbox.delete", self._delete, bucket)),
            web.post(f"{one}/start", wrap("sandbox.start", self._start, bucket)),
            web.post(f"{one}/stop", wrap("sandbox.stop", self._stop, bucket)),
            web.post(f"{one}/recover", wrap("sandbox.recover", self._recover, bucket)),
            web.post(f"{one}/archive", wrap("sandbox.archive", self._archive, bucket)),
            web.post(f"{one}/pause", wrap("sandbox.pause", self._pause, bucket)),
        ]

    async def _create(self, call: Call) -> web.Response:
        call.need(WRITE)
        now = self._sim.timeline.now()
        new = read_new_sandbox(await call.json(), call.organization, self._sim.config, now)
        sandbox = new.sandbox
        quota = self._sim.quota_of(call.organization)
        check_size(quota, sandbox.cpu, sandbox.memory, sandbox.disk)
        self._check_room(sandbox)
        broken = call.take(Name.ROW_EXISTS_400)
        if self._sim.warm and not new.build and broken is None:
            sandbox.state = State.STARTED
            self._sim.lifecycle.add(sandbox)
        else:
            self._sim.lifecycle.create(sandbox, build=new.build, end=_end(sandbox, broken))
        call.concerns(sandbox)
        self._took_effect(call, "created")
        # The answer shows the row as it was inserted, however long the caller had to wait.
        inserted = self._shown(sandbox)
        if not new.build:
            await self._wait_for_start(sandbox)
        return inserted

    async def _delete(self, call: Call) -> web.Response:
        sandbox = call.find(DELETE)
        model.check_delete(sandbox)
        # Some paths of the service forget the rename, and the name stays taken for a while. The job
        # behind an accepted delete may fail: an errored row is left that nobody can see.
        failed = call.take(Name.FAILED_DESTROY)
        self._sim.lifecycle.delete(
            sandbox,
            rename=call.take(Name.KEPT_NAME) is None,
            end=State.DESTROYED if failed is None else State.ERROR,
        )
        if failed is not None:
            sandbox.error_reason = failed.spec.reason or _NOT_DESTROYED
        self._took_effect(call, "deleted")
        return self._shown(sandbox)

    async def _start(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        if model.check_start(sandbox):
            await self._bring_up(call, sandbox, "started")
        return self._shown(sandbox)

    async def _recover(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        now = self._sim.timeline.now()
        model.check_recover(sandbox, now)
        sandbox.recovered_at, sandbox.recoverable, sandbox.error_reason = now, False, None
        if call.request.query.get("skipStart") == "true":
            await self._sim.lifecycle.place(sandbox, State.STOPPED, Desired.STOPPED, "api")
            call.effect = "recovered"
        else:
            await self._bring_up(call, sandbox, "recovered")
        return self._shown(sandbox)

    async def _stop(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        model.check_stop(sandbox)
        force = call.request.query.get("force") == "true"
        self._sim.lifecycle.stop(sandbox, force=force)
        self._took_effect(call, "stopped")
        if not force:
            await self._sim.machines.terminate(sandbox.id)
        return self._shown(sandbox)

    async def _archive(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        model.check_archive(sandbox)
        self._sim.lifecycle.archive(sandbox)
        self._took_effect(call, "archived")
        return self._shown(sandbox)

    async def _pause(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        model.check_pause(sandbox)
        self._sim.lifecycle.pause(sandbox)
        self._took_effect(call, "paused")
        return self._shown(sandbox)

    async def _bring_up(self, call: Call, sandbox: Sandbox, effect: str) -> None:
        self._check_room(sandbox)
        broken = call.take(Name.ROW_EXISTS_400)
        self._sim.lifecycle.start(sandbox, end=_end(sandbox, broken))
        self._took_effect(call, effect)
        await self._wait_for_start(sandbox)

    async def _wait_for_start(self, sandbox: Sandbox) -> None:
        await self._sim.lifecycle.settled(sandbox)
        if sandbox.state in model.ERRORED:
            # The row stays, under its name, although the caller is told that the call failed.
            raise ApiError(400, f"Sandbox failed to start: {sandbox.error_reason}")

    def _took_effect(self, call: Call, effect: str) -> None:
        call.effect = effect
        stuck = call.take(Name.STUCK_TRANSITION)
        if stuck is not None and call.sandbox is not None:
            step = None if stuck.spec.state is None else State(stuck.spec.state)
            self._sim.lifecycle.hold(call.sandbox, stuck.spec.delay, step)

    def _check_room(self, sandbox: Sandbox) -> None:
        others = (row for row in self._sim.store.of(sandbox.organization) if row is not sandbox)
        wanted = Usage(sandbox.cpu, sandbox.memory, sandbox.disk)
        check_room(self._sim.quota_of(sandbox.organization), others, wanted)

    def _shown(self, sandbox: Sandbox) -> web.Response:
        return answer(views.sandbox_view(sandbox, self._sim.toolbox_url))


def _end(sandbox: Sandbox, broken: Fault | None) -> State:
    if broken is None:
        return State.STARTED
    sandbox.error_reason = broken.spec.reason or _DEFAULT_REASON
    sandbox.recoverable = broken.spec.recoverable
    return State(broken.spec.state or State.ERROR)
