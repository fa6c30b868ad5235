"""Moves sandboxes from state to state over time and tells everybody who asked.

Every change of a row's state happens here, whoever caused it, so that the journal is complete.
Knows no HTTP; what is legal is decided before (model.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from issuesandbox.local.daytona.config import Timings
from issuesandbox.local.daytona.model import (
    ERRORED,
    Desired,
    Plan,
    Sandbox,
    SandboxId,
    State,
    Step,
)
from issuesandbox.local.daytona.store import Store
from issuesandbox.local.daytona.timeline import Appointment, Timeline

HIDDEN = "hidden"

# The service gives up on these after so many seconds and shows an error; on others never.
_DEADLINES = {
    State.CREATING: 900.0,
    State.STARTING: 300.0,
    State.RESTORING: 1800.0,
    State.PULLING_SNAPSHOT: 1800.0,
    State.BUILDING_SNAPSHOT: 3600.0,
}
_FOREVER = 1e12


class Power(Protocol):
    """What the lifecycle needs of the machines behind the rows."""

    async def off(self, sandbox: SandboxId) -> None:
        """End every process of a sandbox."""

    async def pause(self, sandbox: SandboxId) -> None:
        """Freeze every process of a sandbox."""

    async def resume(self, sandbox: SandboxId) -> None:
        """Let frozen processes go on."""

    async def discard(self, sandbox: SandboxId) -> None:
        """End every process of a sandbox and remove its folder."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of one sandbox, as seen from outside (`before`, `after`) and in the row."""

    sandbox: Sandbox
    before: str | None
    after: str
    old_state: State
    old_desired: Desired
    cause: str


Observer = Callable[[Change], None]


def visible_state(sandbox: Sandbox) -> str:
    """Return the state GET shows, or `hidden` where GET answers 404 but the row exists."""
    if sandbox.hidden and sandbox.state is not State.DESTROYED:
        return HIDDEN
    return sandbox.shown_state


class Lifecycle:
    """The only writer of `state`, `desired` and `plan`."""

    def __init__(self, store: Store, timeline: Timeline, timings: Timings, power: Power) -> None:
        self._store = store
        self._timeline = timeline
        self.timings = timings
        self._power = power
        self._appointments: dict[SandboxId, Appointment] = {}
        self._waiting: dict[SandboxId, list[asyncio.Future[None]]] = {}
        self.observers: list[Observer] = []

    def resume(self) -> None:
        """Go on with the transitions that a restart interrupted."""
        for sandbox in self._store:
            if sandbox.plan is not None:
                self._appoint(sandbox, sandbox.plan.due_at)

    def add(self, sandbox: Sandbox, cause: str = "api") -> None:
        """Insert a new row as it is."""
        self._store.insert(sandbox)
        self._tell(
            Change(sandbox, None, visible_state(sandbox), sandbox.state, sandbox.desired, cause)
        )

    def create(self, sandbox: Sandbox, *, build: bool, end: State = State.STARTED) -> None:
        """Insert a new row and start it, building its image first if there is one."""
        times = self.timings
        steps = [Step(State.CREATING, times.creating)]
        if build:
            steps[:0] = [
                Step(State.PENDING_BUILD, times.pending_build),
                Step(State.BUILDING_SNAPSHOT, times.building),
            ]
        elif times.pulling_snapshot:
            steps.insert(0, Step(State.PULLING_SNAPSHOT, times.pulling_snapshot))
        sandbox.state = State.PENDING_BUILD if build else State.UNKNOWN
        sandbox.plan = Plan(steps, end, self._timeline.now())
        self.add(sandbox)
        self._next_step(sandbox, sandbox.desired)

    def start(self, sandbox: Sandbox, end: State = State.STARTED) -> None:
        """Start a stopped, paused or archived sandbox, or recover a broken one."""
        times = self.timings
        if sandbox.state is State.ARCHIVED:
            # For a moment GET still says archived while the list says restoring.
            steps = [
                Step(State.ARCHIVED, times.restoring / 4),
                Step(State.RESTORING, times.restoring * 3 / 4),
            ]
        elif sandbox.state is State.PAUSED:
            steps = [Step(State.RESUMING, times.resuming)]
        else:
            steps = [Step(State.STARTING, times.starting)]
        self._begin(sandbox, Desired.STARTED, Plan(steps, end, 0.0))

    def stop(self, sandbox: Sandbox, *, force: bool = False, cause: str = "api") -> None:
        """Stop a running sandbox; ephemeral ones are deleted instead."""
        if sandbox.ephemeral:
            self.delete(sandbox, cause=cause)
            return
        steps = [Step(State.STOPPING, 0.0 if force else self.timings.stopping)]
        self._begin(sandbox, Desired.STOPPED, Plan(steps, State.STOPPED, 0.0, cause=cause))

    def pause(self, sandbox: Sandbox, cause: str = "api") -> None:
        """Freeze a running virtual machine."""
        steps = [Step(State.PAUSING, self.timings.pausing)]
        self._begin(sandbox, Desired.PAUSED, Plan(steps, State.PAUSED, 0.0, cause=cause))

    def archive(self, sandbox: Sandbox, cause: str = "api") -> None:
        """Back a stopped sandbox up and free its disk."""
        sandbox.backup_state = "InProgress"
        steps = [Step(State.ARCHIVING, self.timings.archiving)]
        self._begin(sandbox, Desired.ARCHIVED, Plan(steps, State.ARCHIVED, 0.0, cause=cause))

    def delete(
        self,
        sandbox: Sandbox,
        *,
        rename: bool = True,
        end: State = State.DESTROYED,
        cause: str = "api",
    ) -> None:
        """Free the name at once and destroy the sandbox after a while."""
        if rename:
            milliseconds = int(self._timeline.now() * 1000)
            self._store.rename(sandbox, f"DESTROYED_{sandbox.name}_{milliseconds}")
        if sandbox.state in ERRORED:
            # The row keeps its state, lookups answer 404 from now on.
            steps = [Step(sandbox.state, self.timings.destroying)]
        elif sandbox.state in (State.ARCHIVED, State.PENDING_BUILD):
            steps = [Step(State.DESTROYING, 0.0)]
        else:
            steps = [Step(State.DESTROYING, self.timings.destroying)]
        self._begin(sandbox, Desired.DESTROYED, Plan(steps, end, 0.0, cause=cause))

    async def place(self, sandbox: Sandbox, state: State, desired: Desired, cause: str) -> None:
        """Put a sandbox into a state at once, without a transition."""
        self._drop_plan(sandbox)
        await self._arrive(sandbox, state, desired, cause)

    def hold(self, sandbox: Sandbox, seconds: float | None, at: State | None = None) -> None:
        """Keep the transition under way from ending: for a while, or until the service gives up.

        The present step is held, or the one still to come that shows the state `at`.
        """
        if sandbox.plan is None:
            return
        if at not in (None, sandbox.state):
            for step in sandbox.plan.steps:
                if step.state is at:
                    step.stuck = seconds is None
                    step.seconds = step.seconds if seconds is None else seconds
            self._store.save(sandbox)
            return
        sandbox.plan.stuck = seconds is None
        if seconds is None:
            seconds = _DEADLINES.get(sandbox.listed_state, _FOREVER)
        sandbox.plan.due_at = self._timeline.now() + seconds
        self._store.save(sandbox)
        self._appoint(sandbox, sandbox.plan.due_at)

    def release(self, sandbox: Sandbox) -> None:
        """Let a held transition go on now."""
        if sandbox.plan is not None:
            sandbox.plan.stuck = False
            self._appoint(sandbox, self._timeline.now())

    async def settled(self, sandbox: Sandbox) -> None:
        """Wait until no transition is under way, at most as long as the service would."""
        if sandbox.plan is None:
            return
        done = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sandbox.id, []).append(done)
        try:
            async with asyncio.timeout(self.timings.answer_hold):
                await done
        except TimeoutError:
            return

    def touch(self, sandbox: Sandbox) -> None:
        """Note a change of settings that leaves the state alone."""
        sandbox.updated_at = self._timeline.now()
        self._store.save(sandbox)
        state = visible_state(sandbox)
        self._tell(Change(sandbox, state, state, sandbox.state, sandbox.desired, "api"))

    def _begin(self, sandbox: Sandbox, desired: Desired, plan: Plan) -> None:
        self._drop_plan(sandbox)
        sandbox.plan = plan
        self._next_step(sandbox, desired)

    def _next_step(self, sandbox: Sandbox, desired: Desired) -> None:
        plan = sandbox.plan
        assert plan is not None
        step = plan.steps.pop(0)
        plan.due_at = self._timeline.now() + step.seconds
        self._enter(sandbox, step.state, desired, plan.cause)
        self._appoint(sandbox, plan.due_at)
        if step.stuck:
            self.hold(sandbox, None)

    def _appoint(self, sandbox: Sandbox, due: float) -> None:
        earlier = self._appointments.pop(sandbox.id, None)
        if earlier is not None:
            earlier.cancel()
        action = partial(self._go_on, sandbox, sandbox.plan)
        self._appointments[sandbox.id] = self._timeline.call_at(due, action)

    async def _go_on(self, sandbox: Sandbox, plan: Plan | None) -> None:
        if plan is None or sandbox.plan is not plan:
            return
        if plan.stuck:
            sandbox.error_reason = f"Timeout while {sandbox.listed_state} sandbox"
            sandbox.recoverable = sandbox.recoverable_after_timeout
            building = sandbox.state is State.BUILDING_SNAPSHOT
            plan.steps, plan.end = [], State.BUILD_FAILED if building else State.ERROR
        if plan.steps:
            self._next_step(sandbox, sandbox.desired)
            return
        await self._arrive(sandbox, plan.end, sandbox.desired, plan.cause)

    async def _arrive(self, sandbox: Sandbox, state: State, desired: Desired, cause: str) -> None:
        plan = sandbox.plan
        sandbox.container_lives = sandbox.container_lives and state is State.ERROR
        await self._switch_power(sandbox, state)
        if sandbox.plan is not plan or self._store.get(sandbox.id) is not sandbox:
            return  # somebody else moved it while its processes were ending
        if state is State.ARCHIVED:
            sandbox.backup_state, sandbox.backup_at = "Completed", self._timeline.now()
        if state is State.STARTED:
            sandbox.error_reason, sandbox.recoverable, sandbox.container_gone = None, False, False
        self._drop_plan(sandbox)
        self._enter(sandbox, state, desired, cause)
        if state is State.DESTROYED:
            self._store.remove(sandbox)
        for waiting in self._waiting.pop(sandbox.id, []):
            if not waiting.done():
                waiting.set_result(None)

    async def _switch_power(self, sandbox: Sandbox, state: State) -> None:
        if state is State.DESTROYED:
            await self._power.discard(sandbox.id)
        elif state is State.PAUSED:
            await self._power.pause(sandbox.id)
        elif state is not State.STARTED and not sandbox.container_lives:
            await self._power.off(sandbox.id)
        elif sandbox.state is State.RESUMING:
            await self._power.resume(sandbox.id)

    def _enter(self, sandbox: Sandbox, state: State, desired: Desired, cause: str) -> None:
        change = Change(sandbox, visible_state(sandbox), "", sandbox.state, sandbox.desired, cause)
        now = self._timeline.now()
        if sandbox.state is not state:
            sandbox.last_activity_at = now
        sandbox.state, sandbox.desired, sandbox.updated_at = state, desired, now
        self._store.save(sandbox)
        self._tell(replace(change, after=visible_state(sandbox)))

    def _drop_plan(self, sandbox: Sandbox) -> None:
        sandbox.plan = None
        appointment = self._appointments.pop(sandbox.id, None)
        if appointment is not None:
            appointment.cancel()

    def _tell(self, change: Change) -> None:
        for observer in self.observers:
            observer(change)
