"""The auditor of pushes: asks the remote, trusts nobody who pushes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.domain import numbers
from issuesandbox.domain.audit import RefChange
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.auditor import Auditor
from issuesandbox.engine.tally import Tally
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.resources import ResourceKey

KEY = ResourceKey("team", "one", "uid")
BOT = "bot[bot]"
OURS, THEIRS = "a" * 40, "b" * 40


class Hub:
    """A remote that remembers when its branches were moved."""

    def __init__(self) -> None:
        self.changes: list[RefChange] = []
        self.away = False

    async def own_login(self) -> str:
        return BOT

    async def ref_changes(self, repository: str, branch: str) -> Sequence[RefChange]:
        if self.away:
            raise Unavailable("GitHub is away")
        assert (repository, branch) == ("octo/hello", "claude-fix-issue-1")
        return self.changes


class Stage:
    """One run that ended, and whoever looks at it a minute later."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.clock = FakeClock(self.time)
        self.hub, self.tally = Hub(), Tally()
        self.auditor = Auditor(self.hub, self.tally, self.clock, Timings())
        self.stopped_at = self.clock.now()

    def after(self, seconds: float) -> datetime:
        return self.stopped_at + timedelta(seconds=seconds)

    def end(
        self,
        outcome: str = "Cancelled",
        key: ResourceKey = KEY,
        clone_url: str | None = None,
        **run: Any,
    ) -> None:
        base = {
            "id": "r1",
            "phase": "Finished",
            "branch": "claude-fix-issue-1",
            "startedAt": text(self.after(-100)),
            "finishedAt": text(self.after(5)),
            "outcome": outcome,
        }
        if outcome == "Cancelled":
            base["stopRequestedAt"] = text(self.stopped_at)
        metadata = {"name": "one", "namespace": "team", "uid": "uid"}
        spec: dict[str, Any] = {"issue": {"repository": "octo/hello", "number": 1}, "run": {}}
        if clone_url is not None:
            spec["repository"] = {"cloneURL": clone_url}
        body = {"metadata": metadata, "spec": spec, "status": {"run": base | run}}
        self.auditor.hear(key, body)

    async def look_later(self, seconds: float = 70) -> dict[str, int]:
        self.time.seconds += seconds
        await self.auditor.look()
        found = {values[0]: count for values, count in self.tally.counts(numbers.AUDITS)}
        found["stop"] = dict(self.tally.counts(numbers.PUSH_AFTER_STOP))[()]
        found["timeout"] = dict(self.tally.counts(numbers.PUSH_AFTER_TIMEOUT))[()]
        return {name: count for name, count in found.items() if count}


def text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_run_that_was_stopped_and_not_pushed_is_clean(stage: Stage) -> None:  # R56
    stage.end()
    stage.hub.changes = [RefChange(THEIRS, stage.after(-50), BOT)]
    assert await stage.look_later() == {"clean": 1}
    assert await stage.look_later() == {"clean": 1}, "each run is looked at once"


async def test_a_push_later_than_the_stop_is_counted(stage: Stage) -> None:
    stage.end()
    stage.hub.changes = [RefChange(THEIRS, stage.after(4), BOT)]
    assert await stage.look_later() == {"pushed": 1, "stop": 1}


async def test_a_push_later_than_the_time_out_is_counted_apart(stage: Stage) -> None:  # R73
    stage.end("TimedOut", reason="AgentTimeout")
    stage.hub.changes = [RefChange(THEIRS, stage.after(9), BOT)]
    assert await stage.look_later() == {"pushed": 1, "timeout": 1}


async def test_the_runs_own_commit_is_a_fault_whenever_it_was_pushed(stage: Stage) -> None:
    stage.end(commit=OURS)
    stage.hub.changes = [RefChange(OURS, stage.after(1), "somebody")]
    assert await stage.look_later() == {"pushed": 1, "stop": 1}


async def test_a_push_that_was_decided_before_the_stop_is_none(stage: Stage) -> None:
    publish = {"commit": OURS, "old": "0" * 40, "at": text(stage.after(-1))}
    stage.end(commit=OURS, publish=publish, reason="TooLateToStop")
    stage.hub.changes = [RefChange(OURS, stage.after(3), BOT)]
    assert await stage.look_later() == {"clean": 1}


async def test_a_push_that_was_decided_after_the_stop_is_one(stage: Stage) -> None:
    publish = {"commit": OURS, "old": "0" * 40, "at": text(stage.after(1))}
    stage.end(commit=OURS, publish=publish)
    stage.hub.changes = [RefChange(OURS, stage.after(3), BOT)]
    assert await stage.look_later() == {"pushed": 1, "stop": 1}


async def test_what_people_and_later_runs_push_is_theirs(stage: Stage) -> None:
    stage.end()
    stage.hub.changes = [
        RefChange(THEIRS, stage.after(4), "octocat"),
        RefChange(THEIRS, stage.after(600), BOT),
    ]
    assert await stage.look_later(700) == {"clean": 1}


async def test_an_outage_is_waited_out_and_then_told(stage: Stage) -> None:
    stage.end()
    stage.hub.away = True
    assert await stage.look_later() == {}
    for _ in range(3):
        assert await stage.look_later() == {}
    assert await stage.look_later() == {"unknown": 1}


async def test_nothing_is_looked_at_that_may_push_or_ended_long_ago(stage: Stage) -> None:
    stage.end("Succeeded")
    stage.end("Cancelled", branch=None)
    assert await stage.look_later() == {}
    stage.time.seconds += 4000
    stage.end()
    assert await stage.look_later() == {}


async def test_a_standby_forgets_what_others_have_looked_at(stage: Stage) -> None:
    # It hears of every run, but only the one in charge looks.
    timings = Timings(audit_delay=timedelta(milliseconds=2))
    stage.auditor = Auditor(stage.hub, stage.tally, stage.clock, timings)
    stage.end()
    waiting = asyncio.create_task(stage.auditor.run(lambda: False))
    try:
        await asyncio.sleep(0.01)
        assert stage.auditor.waiting == 1, "it may be in charge soon"
        stage.time.seconds += 2 * 3600
        async with asyncio.timeout(5):
            while stage.auditor.waiting:
                await asyncio.sleep(0.001)
    finally:
        waiting.cancel()
    assert await stage.look_later() == {}


def test_of_too_many_the_newest_are_looked_at(stage: Stage) -> None:
    for number in range(1100):
        stage.end(key=ResourceKey("team", f"r{number}", f"uid-{number}"))
    assert stage.auditor.waiting == 1000


@pytest.mark.parametrize(
    ("clone_url", "found"),
    [
        ("https://github.com/Octo/Hello.git", {"pushed": 1, "stop": 1}),
        ("https://github.com/octo/hello/", {"pushed": 1, "stop": 1}),
        ("https://github.com/octo/other.git", {}),
        ("https://github.com/not-octo/hello", {}),
    ],
)
async def test_the_own_repository_is_looked_at_also_where_its_address_is_given(
    clone_url: str, found: dict[str, int], stage: Stage
) -> None:
    stage.end(commit=OURS, clone_url=clone_url)
    stage.hub.changes = [RefChange(OURS, stage.after(1), BOT)]
    assert await stage.look_later() == found
