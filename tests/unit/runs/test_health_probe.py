"""The health probe: one miss proves nothing, then a restart, then another sandbox."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.clock import SystemClock
from issuesandbox.domain.cleanup import effective
from issuesandbox.domain.model import Memory, Want
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.health import Cure, cure_of
from issuesandbox.domain.runs.moves import Move, Scene, next_move
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn, facts_of, wanted
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.probing import MUTE, Health, probe
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.toolbox import Executed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
QUICK = Timings(probe_timeout=timedelta(milliseconds=200), settle_check=timedelta(milliseconds=10))


class Patient:
    """A toolbox that answers after some failures."""

    def __init__(self, *failures: Unavailable, git: bool = True) -> None:
        self.failures = list(failures)
        self.git = git

    async def home(self, sandbox_id: str) -> str:
        return f"/home/{sandbox_id}"

    async def execute(self, sandbox_id: str, command: str, **_: Any) -> Executed:
        if self.failures:
            raise self.failures.pop(0)
        return Executed(0 if self.git else 1, "")


def outside(toolbox: Any, timings: Timings = QUICK) -> Outside:
    nothing: Any = None
    return Outside(
        toolbox=toolbox,
        github=None,
        remote=nothing,
        ledgers=nothing,
        resources=nothing,
        clock=SystemClock(),
        timings=timings,
        namespace="ours",
    )


async def test_a_sandbox_that_needs_a_moment_is_healthy() -> None:
    # R61, R67
    patient = Timings(settle_check=QUICK.settle_check)
    blip, bare = Patient(Unavailable("502"), Unavailable("502")), Patient(git=False)
    assert await probe("sb", outside(blip, patient)) == Health("/home/sb", has_git=True)
    assert await probe("sb", outside(bare, patient)) == Health("/home/sb", has_git=False)


async def test_one_that_never_answers_is_a_miss_and_one_that_does_not_run_is_none() -> None:
    silent = Patient(*[Unavailable("502")] * 1000)
    with pytest.raises(Unavailable, match=r"did not answer within 0.2 s: 502") as caught:
        await probe("sb", outside(silent))
    assert caught.value.code == MUTE
    stopped = Patient(Unavailable("400", code="NotRunning"))
    with pytest.raises(Unavailable) as told:
        await probe("sb", outside(stopped))
    assert told.value.code == "NotRunning"


def resource(phase: str = "Preparing", **run: Any) -> IssueSandbox:
    whole = {
        "id": "r1",
        "attempt": 1,
        "phase": phase,
        "trigger": "1",
        "startedAt": "2030-01-01T00:00:00Z",
        **run,
    }
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
        "spec": {"issue": {"repository": "octo/hello", "number": 1}, "run": {"trigger": "1"}},
        "status": {"run": whole, "sandbox": {"id": "sb-1", "attempt": 1, "state": "started"}},
    }
    return IssueSandbox.model_validate(body)


def want(seen: IssueSandbox) -> Want:
    memory = Memory(sandbox_id=SandboxId("sb-1"), state="started", state_since=NOW, attempt=1)
    facts = facts_of(seen, memory, effective(None), Timings(), admitted=True)
    return wanted(facts, Timings(), NOW).want


def move(seen: IssueSandbox, *, still: bool = False) -> Move:
    there = None if still else SandboxId("sb-1")
    return next_move(Scene(seen, Turn.ADMITTED, NOW, sandbox_id=there, attempt=1, still=still))


def test_two_misses_restart_the_sandbox_and_two_more_replace_it() -> None:
    # R63, R67
    once = resource(probeMisses=1)
    assert (cure_of(once.status.run, 1), want(once), move(once)) == (
        Cure.NONE,
        Want.RUNNING,
        Move.PREPARE,
    )
    twice = resource(probeMisses=2)
    assert (cure_of(twice.status.run, 1), want(twice)) == (Cure.RESTART, Want.STOPPED)
    assert move(twice, still=True) is Move.TRY_AGAIN
    again = chapters.restarted(twice.status).run
    assert again is not None
    assert (cure_of(again, 1), again.restarts) == (Cure.NONE, 1)
    hopeless = resource(probeMisses=2, restarts=1)
    assert (cure_of(hopeless.status.run, 1), want(hopeless)) == (Cure.REPLACEMENT, Want.RUNNING)
    assert cure_of(hopeless.status.run, 2) is Cure.NONE, "what replaced it is another one"
    fresh = chapters.start_over(hopeless.status, 2).run
    assert fresh is not None
    assert (fresh.probe_misses, fresh.restarts) == (0, 0)


def test_an_agent_at_work_is_never_restarted_away() -> None:
    working = resource("Executing", probeMisses=2)
    assert (cure_of(working.status.run, 1), want(working)) == (Cure.NONE, Want.RUNNING)
