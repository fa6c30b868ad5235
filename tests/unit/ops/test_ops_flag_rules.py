"""What each flag changes in the rules of a run, over all 32 combinations, and what none changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.cleanup import effective
from issuesandbox.domain.flags import FlagSet, is_deaf
from issuesandbox.domain.model import Memory, Want
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Move, Scene, next_move
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn, facts_of, wanted
from issuesandbox.engine.runs.agents import limits_of
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.mover import until_news
from issuesandbox.engine.switches import Switches
from issuesandbox.ports.resources import ResourceKey

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MATRIX = [FlagSet(*values) for values in itertools.product((False, True), repeat=5)]
KEY = ResourceKey("team", "one", "uid")


def text(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def resource(stop: bool = False, deleting: bool = False, **run: Any) -> IssueSandbox:
    base = {
        "id": "r1",
        "phase": "Executing",
        "trigger": "1",
        "attempt": 1,
        "startedAt": text(-60),
        "agentStartedAt": text(-50),
        "deadlines": {"agent": text(250), "run": text(840)},
    }
    metadata: dict[str, Any] = {"name": "one", "namespace": "team", "uid": "uid"}
    if deleting:
        metadata["deletionTimestamp"] = text(-1)
    spec = {
        "issue": {"repository": "octo/hello", "number": 1},
        "run": {"trigger": "1"},
        "desiredState": "Stopped" if stop else "Running",
    }
    sandbox = {"id": "sb", "state": "started", "attempt": 1, "stateSince": text(-60)}
    body = {"metadata": metadata, "spec": spec, "status": {"run": base | run, "sandbox": sandbox}}
    return IssueSandbox.model_validate(body)


def move(seen: IssueSandbox, flags: FlagSet, *, here: bool = False, now: datetime = NOW) -> Move:
    deaf = is_deaf(flags, seen, begun_here=here)
    sandbox = SandboxId("sb")
    return next_move(
        Scene(seen, Turn.ADMITTED, now, sandbox_id=sandbox, attempt=1, flags=flags, deaf=deaf)
    )


def want(seen: IssueSandbox, flags: FlagSet, *, here: bool = False) -> Want:
    memory = Memory(sandbox_id=SandboxId("sb"), state="started", state_since=NOW, attempt=1)
    facts = facts_of(seen, memory, effective(None), Timings(), admitted=True)
    deaf = is_deaf(flags, seen, begun_here=here)
    facts = replace(facts, stop=facts.stop and not deaf, enforced=flags.authoritative_timeout)
    return wanted(facts, Timings(), NOW).want


@pytest.mark.parametrize("flags", MATRIX, ids=str)
@pytest.mark.parametrize("here", [True, False])
def test_a_stop_of_a_running_agent_is_heard_by_the_two_flags_alone(
    flags: FlagSet, here: bool
) -> None:  # R105
    heard = flags.cancellation_checks and (flags.db_backed_stop or here)
    stopped = resource(stop=True)
    assert move(stopped, flags, here=here) is (Move.NOTE_STOP if heard else Move.EXECUTE)
    assert want(stopped, flags, here=here) is (Want.STOPPED if heard else Want.RUNNING)


@pytest.mark.parametrize("flags", MATRIX, ids=str)
def test_no_flag_touches_the_gate_or_a_deletion(flags: FlagSet) -> None:
    # The agent has ended: nothing of a stopped run is published, whatever is switched off.
    assert move(resource(stop=True, phase="Collecting"), flags) is Move.NOTE_STOP
    assert move(resource(deleting=True), flags) is Move.NOTE_STOP
    assert want(resource(deleting=True), flags) is Want.GONE
    # What was decided is finished.
    publish = {"commit": "a" * 40, "old": "0" * 40, "at": text(-1)}
    assert move(resource(phase="Publishing", publish=publish), flags) is Move.PUBLISH


@pytest.mark.parametrize("flags", MATRIX, ids=str)
def test_a_stop_that_is_being_carried_out_goes_on_whatever_is_switched(flags: FlagSet) -> None:
    seen = resource(stop=True)
    status = seen.status.model_copy(update={"stop_requested_at": NOW})
    stopping = seen.model_copy(update={"status": status})
    assert move(stopping, flags) is Move.KILL
    assert want(stopping, flags) is Want.STOPPED


@pytest.mark.parametrize("flags", MATRIX, ids=str)
def test_only_the_time_out_flag_leaves_a_run_out_of_time_running(flags: FlagSet) -> None:
    late = NOW + timedelta(seconds=300)
    agent_late = move(resource(), flags, now=late)
    assert agent_late is (Move.EXECUTE if flags.authoritative_timeout else Move.TIME_OUT)
    assert move(resource(), flags, now=NOW + timedelta(seconds=900)) is Move.TIME_OUT
    over = resource(outcome="TimedOut", phase="Finalizing", finishedAt=text(0), reason="RunTimeout")
    assert (want(over, flags) is Want.STOPPED) == flags.authoritative_timeout
    told = resource(outcome="TimedOut", phase="Finished", finishedAt=text(0), reason="RunTimeout")
    assert want(told, flags) is (Want.STOPPED if flags.authoritative_timeout else Want.REST)
    cancelled = resource(outcome="Cancelled", phase="Finalizing", finishedAt=text(0))
    assert want(cancelled, flags) is Want.STOPPED


@pytest.mark.parametrize("flags", MATRIX, ids=str)
def test_the_supervisor_gets_the_limits_that_are_switched_on(flags: FlagSet) -> None:
    seen = resource()
    limits = limits_of(Assignment(KEY, seen, seen.status, "sb", RunLimits(), flags), NOW)
    assert (limits.inactivity is not None) == flags.inactivity_timeout
    assert (limits.agent is not None) == flags.authoritative_timeout
    assert (limits.run is not None) == flags.authoritative_timeout


def test_only_the_process_that_began_a_run_remembers_it() -> None:
    switches = Switches()
    own = {"spec": {"flags": {"dbBackedStop": False}}}
    seen = resource(stop=True)
    body = seen.model_dump(by_alias=True, mode="json", exclude_none=True)
    body["spec"] |= own["spec"]
    seen = IssueSandbox.model_validate(body)
    assert switches.is_deaf(seen)
    uid = seen.metadata.uid or ""
    switches.began(uid, "r0")
    assert switches.is_deaf(seen), "that was the run before"
    switches.began(uid, "r1")
    assert not switches.is_deaf(seen)
    switches.forget(uid)
    assert switches.is_deaf(seen)


@pytest.mark.parametrize(("phase", "waits"), [("Executing", 0.0), ("Collecting", 540.0)])
def test_a_limit_that_nobody_enforces_wakes_only_while_the_agent_runs(
    phase: str, waits: float
) -> None:
    seen, now = resource(phase=phase), NOW + timedelta(seconds=300)
    scene = Scene(seen, Turn.ADMITTED, now, flags=FlagSet(authoritative_timeout=False))
    wait = until_news(seen.status, scene)
    assert wait is not None
    assert wait.total_seconds() == waits
