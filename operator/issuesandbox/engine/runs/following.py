"""Executing: the agent is started once, followed by one call per tick, and killed for sure.

What the agent printed is read as it comes, so nothing of it has to be kept: after a restart it
is read again from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from issuesandbox.api.spec_agent import AgentProfile
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.agents.facts import AgentFacts
from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.agents.verdict import judge
from issuesandbox.domain.comment import Activity
from issuesandbox.domain.runs.chapters import Ending, Harvest
from issuesandbox.domain.supervision import (
    EndedBy,
    Pulse,
    RunPaths,
    RunState,
    poll_command,
    start_command,
    supervisor_sent,
)
from issuesandbox.domain.usage import own_usage
from issuesandbox.engine.runs.agents import (
    agent_of,
    environment_of,
    hidden_values,
    launch_of,
    limits_of,
)
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import Beside, unattended
from issuesandbox.engine.runs.live_log import LiveLog
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.steps import AgentEnd, Signs
from issuesandbox.engine.runs.warden import Warden
from issuesandbox.engine.runs.watch import Watch
from issuesandbox.ports.errors import CallError, Unavailable
from issuesandbox.ports.resources import ResourceKey

# What is shown of an agent's last words, in characters.
_SHOWN = 350
# More than an agent prints in one tick, unless it prints without end.
_MOST = 512 * 1024
# The reason of a run whose agent could not be killed for sure.
SURVIVES = "AgentSurvives"


@dataclass(frozen=True, slots=True)
class _Expected:
    """An agent that is about to be started, and its environment, which is used only while new."""

    run_id: str
    until: float
    environment: asyncio.Task[Mapping[str, str]]


class Follower(Warden):
    """Follows the agents of all runs."""

    def __init__(
        self, outside: Outside, on_fresh: Callable[[Mapping[str, Any]], None] = lambda _: None
    ) -> None:
        super().__init__(outside)
        self._on_fresh = on_fresh
        self._watches: dict[ResourceKey, Watch] = {}
        self._expected: dict[ResourceKey, _Expected] = {}
        self._log = LiveLog(outside)

    def forget(self, key: ResourceKey) -> None:
        """Drop what is known of a resource's agent."""
        super().forget(key)
        self._watches.pop(key, None)
        if key in self._expected:
            self._expected.pop(key).environment.cancel()
        self._log.forget(key)

    def signs(self, key: ResourceKey) -> Signs | None:
        """Return the signs of life of the agent that is followed."""
        watch = self._watches.get(key)
        if watch is None or watch.started_at is None or watch.last_output_at is None:
            return None
        return Signs(watch.started_at, watch.last_output_at)

    def activity(self, key: ResourceKey) -> Activity | None:
        """Return what the agent that is followed did last."""
        watch = self._watches.get(key)
        if watch is None:
            return None
        facts = watch.reader.facts
        return Activity(watch.redactor.redact(facts.last_tool or "") or None, facts.turns)

    def whole_output(self, assignment: Assignment) -> bytes | None:
        """Return all that an agent printed, if it has ended and this process still holds all."""
        watch = self.watch(assignment)
        return self._log.all_until(assignment, watch.offset) if watch.complete else None

    def shows_output(self, assignment: Assignment) -> bool:
        """Tell whether a part of an agent's output is where people read it."""
        return self._log.is_kept(assignment)

    def heard(self, assignment: Assignment) -> Harvest | None:
        """Return what is known of an agent that nobody can ask any more."""
        watch = self._watches.get(assignment.key)
        if watch is None or watch.run_id != assignment.run.id:
            return None
        shown = assignment.transcript_name if self.shows_output(assignment) else None
        usage = own_usage(watch.reader.facts.usage, assignment.earlier_costs)
        return Harvest(usage=usage, transcript=shown)

    def watch(self, assignment: Assignment) -> Watch:
        """Return what is known of the agent, from nothing if it was not followed before."""
        known = self._watches.get(assignment.key)
        if known is None or known.run_id != assignment.run.id:
            known = Watch(assignment.run.id, StreamReader(agent_of(assignment).profile))
            self._watches[assignment.key] = known
        return known

    async def informed_watch(
        self, assignment: Assignment, environment: Mapping[str, str] | None = None
    ) -> Watch:
        """Return what is known of the agent, with the secrets that nothing of it may show."""
        watch = self.watch(assignment)
        if environment is None and watch.informed:
            # The agent has what was in the Secret at its start, whatever somebody put there since.
            return watch
        values = await hidden_values(assignment, self._outside, environment)
        watch.redactor, watch.informed = watch.redactor.with_secrets(*values), True
        return watch

    def expect(self, assignment: Assignment, home: str) -> None:
        """Get to know that an agent is about to be started; begin to read its environment."""
        self.lodge(assignment, home)
        reading = unattended(environment_of(assignment, self._outside))
        until = self._outside.clock.monotonic() + self._outside.timings.scout_use.total_seconds()
        self._expected[assignment.key] = _Expected(assignment.run.id, until, reading)

    async def _environment(self, assignment: Assignment) -> Mapping[str, str]:
        expected, now = self._expected.pop(assignment.key, None), self._outside.clock.monotonic()
        if expected is not None and expected.run_id == assignment.run.id and now < expected.until:
            return await expected.environment
        return await environment_of(assignment, self._outside)

    async def follow(self, assignment: Assignment) -> AgentEnd:
        """Start the agent unless it was started, and follow it to its end."""
        try:
            return await self._followed(assignment)
        except CallError:
            end = self._unheard(assignment)
            if end is None:
                raise
            return end

    async def _followed(self, assignment: Assignment) -> AgentEnd:
        paths = await self.paths(assignment)
        if assignment.run.agent_started_at is None:
            secrets = await self._environment(assignment)
            watch = await self.informed_watch(assignment, secrets)
            pulse = await self._start(assignment, paths, secrets)
            watch.take(pulse, self._outside.clock.now())
            # From now on nobody may start it again: the pass writes that down.
            self._on_news(assignment)
        else:
            watch = await self.informed_watch(assignment)
        async with Beside() as beside:
            end = await self._follow(assignment, paths, watch, beside)
            # A copy of the output that comes late would hide the whole transcript.
            await beside.settled()
        return end

    async def _follow(
        self, assignment: Assignment, paths: RunPaths, watch: Watch, beside: Beside
    ) -> AgentEnd:
        tick = self._outside.timings.run_tick.total_seconds()
        while True:
            began = self._outside.clock.monotonic()
            if assignment.flags.cancellation_checks:
                # While the sandbox waits for news, so that neither waits for the other.
                beside.begin("resource", lambda: self._refresh(assignment))
            pulse = await self.poll(assignment, paths, watch.offset, tick)
            watch.take(pulse, self._outside.clock.now())
            worth_keeping = self._log.take(assignment, pulse)
            if pulse.size - watch.offset > _MOST and pulse.state is RunState.RUNNING:
                # It prints faster than anybody needs to read: only the newest counts.
                watch.offset = pulse.size - _MOST
            end = await self._end(assignment, paths, watch, pulse)
            if end is not None:
                return end
            if worth_keeping:
                beside.begin("log", lambda: self._log.keep(assignment, watch.redactor))
            spent = self._outside.clock.monotonic() - began
            await asyncio.sleep(max(0.0, tick - spent))

    async def keep_fresh(self, assignment: Assignment) -> None:
        """Look at the resource at every tick until cancelled, while no agent is followed."""
        while assignment.flags.cancellation_checks:
            await asyncio.sleep(self._outside.timings.run_tick.total_seconds())
            await self._refresh(assignment)

    async def _refresh(self, assignment: Assignment) -> None:
        """Look at the resource itself: a watch that died unseen must not delay a stop."""
        with suppress(CallError):
            self._on_fresh(await self._outside.resources.get(assignment.key))

    def _on_news(self, assignment: Assignment) -> None:
        self._outside.wake(assignment.key)

    async def _start(
        self, assignment: Assignment, paths: RunPaths, secrets: Mapping[str, str]
    ) -> Pulse:
        outside = self._outside
        launch = launch_of(assignment, paths, assignment.run.session_id or "", secrets)
        outside.check_charge(assignment)
        limits = limits_of(assignment, outside.clock.now())
        command = start_command(paths, limits, launch.argv, launch.stdin_path)
        return await self._answer(assignment, command, {**launch.env, **supervisor_sent()})

    async def poll(
        self, assignment: Assignment, paths: RunPaths, offset: int, wait: float
    ) -> Pulse:
        """Look at the agent once; returns at its end or after `wait` seconds."""
        started_at = self.watch(assignment).started_at
        limits = limits_of(assignment, started_at or self._outside.clock.now())
        return await self._ask(assignment, paths, poll_command(paths, offset, wait, _MOST, limits))

    async def _end(
        self, assignment: Assignment, paths: RunPaths, watch: Watch, pulse: Pulse
    ) -> AgentEnd | None:
        facts = watch.reader.facts
        watch.missed = watch.missed and pulse.state is not RunState.RUNNING
        if pulse.state in (RunState.ABSENT, RunState.LOST):
            if not watch.missed:
                # A sandbox that is being destroyed looks the same: Daytona is asked first.
                watch.missed = True
                raise Unavailable("the agent's supervisor does not answer")
            words = "The agent's supervisor or its files are gone; the sandbox is stopped."
            if pulse.problem:
                words += f" It said: {watch.redactor.redact(pulse.problem)}"
            ending = Ending(Outcome.FAILED, "SupervisorLost", words)
            return AgentEnd(None, words, ending, sure=False)
        if pulse.state is not RunState.ENDED:
            return self._overdue(assignment, watch) or _refused(facts)
        if not watch.complete:
            await self._read_on(assignment, paths, watch)
        return _end_of(assignment, pulse, watch)

    def _unheard(self, assignment: Assignment) -> AgentEnd | None:
        """Return the end of an agent that is over its limit in a sandbox that does not answer.

        It may be the agent that lets nobody ask. One call that failed proves nothing: what ended
        in time while nobody looked is still found.
        """
        watch, now = self.watch(assignment), self._outside.clock.now()
        watch.unheard_since = watch.unheard_since or now
        patient = now - watch.unheard_since < self._outside.timings.agent_grace
        return None if patient else self._overdue(assignment, watch)

    def _overdue(self, assignment: Assignment, watch: Watch) -> AgentEnd | None:
        """Return the end of an agent that outlived its limit: it may have changed the file."""
        started = assignment.run.agent_started_at or watch.started_at
        if started is None or not assignment.flags.authoritative_timeout:
            return None
        limit = assignment.limits.agent + self._outside.timings.agent_grace
        if self._outside.clock.now() - started < limit:
            return None
        words = "The agent ran for longer than limits.agent although its supervisor was to end it."
        return _unfinished(Ending(Outcome.TIMED_OUT, "AgentTimeout", words))

    async def facts(self, assignment: Assignment) -> AgentFacts:
        """Return what the agent said, read again where another replica had followed it."""
        watch = self.watch(assignment)
        if not watch.complete:
            await self._read_on(assignment, await self.paths(assignment), watch)
        return watch.reader.facts

    async def _read_on(self, assignment: Assignment, paths: RunPaths, watch: Watch) -> None:
        while True:
            more = await self.poll(assignment, paths, watch.offset, 0)
            watch.take(more, self._outside.clock.now())
            if not more.chunk or watch.offset >= more.size:
                return


def _refused(facts: AgentFacts) -> AgentEnd | None:
    if not facts.unauthorized:
        return None
    words = "The model refuses the key: check the Secret of the agent."
    return _unfinished(Ending(Outcome.FAILED, "AgentUnauthorized", words))


def _unfinished(ending: Ending) -> AgentEnd:
    # The outcome is written first; whoever saves the work then kills the agent.
    return AgentEnd(None, ending.message or "", ending, sure=False)


def _end_of(assignment: Assignment, pulse: Pulse, watch: Watch) -> AgentEnd:
    # An agent may write down a stop that nobody asked for.
    forged = pulse.ended_by is EndedBy.STOP and not assignment.stop_asked
    ended_by = None if forged else pulse.ended_by
    verdict = judge(watch.reader.facts, pulse.exit_code, ended_by)
    # The agent's last words may hold anything that it could read.
    words = watch.redactor.redact(verdict.message)[:_SHOWN]
    sure, session_id = not pulse.survivors, _session(assignment, watch)
    if verdict.ok and sure:
        return AgentEnd(pulse.exit_code, words, session_id=session_id)
    if verdict.ok:
        words = f"{pulse.survivors} processes of the agent could not be killed."
        ending = Ending(Outcome.FAILED, SURVIVES, words)
        return AgentEnd(pulse.exit_code, words, ending, sure=False, session_id=session_id)
    ending = Ending(verdict.outcome, verdict.reason, words)
    return AgentEnd(pulse.exit_code, words, ending, sure, session_id)


def _session(assignment: Assignment, watch: Watch) -> str | None:
    """Return the session that the agent named, if it is the one who names it and it is no secret.

    Whatever an agent prints may hold its key, and this goes into the status as it is.
    """
    named = watch.reader.facts.session_id
    chosen = agent_of(assignment).profile is AgentProfile.CLAUDE
    return None if named is None or chosen or not watch.redactor.keeps(named) else named
