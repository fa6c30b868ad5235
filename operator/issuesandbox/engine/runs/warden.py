"""Talking to the supervisors in sandboxes: ask and kill. One call each, in the usual case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from issuesandbox.domain.buckets import Priority
from issuesandbox.domain.supervision import (
    MISSING,
    Pulse,
    PulseError,
    RunPaths,
    RunState,
    kill_command,
    parse_pulse,
    supervisor_file,
)
from issuesandbox.engine.rates import on_behalf_of
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.resources import ResourceKey


def pulse_of(output: str) -> Pulse:
    """Return what a supervisor answered; `Unavailable` if that is no whole answer."""
    try:
        return parse_pulse(output)
    except PulseError as error:
        raise Unavailable(f"the sandbox gave no usable answer: {error}") from error


class Warden:
    """Knows where the supervisor of each run lies, and what to tell it."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._homes: dict[ResourceKey, tuple[str, str]] = {}
        self._equipped: dict[ResourceKey, str] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop what is known of a resource's sandbox."""
        self._homes.pop(key, None)
        self._equipped.pop(key, None)

    async def paths(self, assignment: Assignment) -> RunPaths:
        """Return where everything of the run lies."""
        known, home = self._homes.get(assignment.key, ("", ""))
        if known != assignment.sandbox_id:
            home = await self._outside.toolbox.home(assignment.sandbox_id)
            self.lodge(assignment, home)
        return RunPaths(home, assignment.run.id)

    def lodge(self, assignment: Assignment, home: str) -> None:
        """Take note of the sandbox's home directory."""
        self._homes[assignment.key] = (assignment.sandbox_id, home)

    async def _ask(self, assignment: Assignment, paths: RunPaths, command: str) -> Pulse:
        pulse = await self._answer(assignment, command)
        sandbox_id = assignment.sandbox_id
        if pulse.problem != MISSING or self._equipped.get(assignment.key) == sandbox_id:
            return pulse
        # An operator of another version began this, or the agent removed it: bring it once.
        self._equipped[assignment.key] = sandbox_id
        await self._outside.toolbox.upload(sandbox_id, supervisor_file(paths))
        return await self._answer(assignment, command)

    async def _answer(
        self, assignment: Assignment, command: str, env: Mapping[str, str] | None = None
    ) -> Pulse:
        timings = self._outside.timings
        seconds = (timings.toolbox_timeout + timings.run_tick).total_seconds()
        done = await self._outside.toolbox.execute(
            assignment.sandbox_id, command, seconds=seconds, env=env
        )
        return pulse_of(done.output)

    async def kill(self, assignment: Assignment) -> None:
        """Kill the agent and all that descends from it; raise unless nothing is left."""
        limit = self._outside.timings.kill_timeout.total_seconds()
        try:
            with on_behalf_of(Priority.KILL):
                async with asyncio.timeout(limit):
                    paths = await self.paths(assignment)
                    pulse = await self._ask(assignment, paths, kill_command(paths))
        except TimeoutError:
            raise Unavailable(f"the agent was not killed within {limit:g} s") from None
        if pulse.state is not RunState.ENDED or pulse.survivors != 0:
            raise Unavailable(pulse.problem or "something of the agent is left")
        self._outside.books.stops.agent_dead(assignment.key, self._outside.clock.now())
