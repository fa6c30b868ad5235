"""Following agents: one call per tick, whatever else is slow, and a store that is not flooded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.clock import SystemClock
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.supervision import Pulse, RunState
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.crew import Crew
from issuesandbox.engine.runs.following import Follower
from issuesandbox.engine.runs.live_log import LiveLog
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.ports.errors import NotFound, Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.toolbox import Executed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=20)
LINE = "issuesandbox-pulse\nstate RUNNING\nsize 3\nage 1\nsilent 0\nbase64 0\nYWJj\nend\n"
END = "issuesandbox-pulse\nstate ENDED\nexit 0\nsize 3\nage 1\nsilent 0\nsurvivors 0\nend\n"


def an_assignment(name: str = "one") -> Assignment:
    run = {"id": "r1", "attempt": 1, "phase": "Executing", "trigger": "1", "startedAt": NOW}
    body = {
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": "1", "agent": {"profile": "custom", "command": ["agent"]}},
        },
        "status": {"sandbox": {"id": "sb-1"}, "run": {**run, "agentStartedAt": NOW}},
    }
    resource = IssueSandbox.model_validate(body)
    key = ResourceKey("team", name, name)
    return Assignment(key, resource, resource.status, "sb-1", RunLimits())


class SlowCluster:
    """An API server that answers when it is let, or never."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.asked: list[str] = []
        self.failure: Exception | None = None

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        return await self._ask("get", {"name": key.name})

    async def put(
        self, owner: ResourceKey, name: str, data: Mapping[str, str], *, new: bool = False
    ) -> None:
        await self._ask("put", {})

    async def secret(self, namespace: str, name: str) -> Mapping[str, str]:
        raise NotFound(name)

    async def _ask(self, what: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(what)
        await self.answers.wait()
        if self.failure is not None:
            raise self.failure
        return answer


class Talker:
    """A sandbox whose agent prints, and ends after some looks."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.calls: list[str] = []

    async def home(self, sandbox_id: str) -> str:
        self.calls.append("home")
        return "/home/agent"

    async def execute(self, sandbox_id: str, command: str, **_: Any) -> Executed:
        self.calls.append("execute")
        self.left -= 1
        return Executed(0, LINE if self.left > 0 else END)


def outside(cluster: SlowCluster, toolbox: Talker | None = None, **timings: Any) -> Outside:
    return Outside(
        toolbox=cast(Any, toolbox),
        github=None,
        remote=cast(Any, None),
        ledgers=cast(Any, cluster),
        resources=cast(Any, cluster),
        clock=SystemClock(),
        timings=Timings(run_tick=TICK, **timings),
        namespace="operators",
    )


async def test_a_look_waits_neither_for_the_resource_nor_for_the_log() -> None:
    cluster, toolbox = SlowCluster(), Talker(looks=6)
    following = asyncio.create_task(Follower(outside(cluster, toolbox)).follow(an_assignment()))
    async with asyncio.timeout(10):
        while toolbox.left > 0:
            await asyncio.sleep(0.01)
    # Six looks with one call each went by while nobody answered, and nothing was asked twice.
    assert toolbox.calls == ["home", *["execute"] * 6]
    assert sorted(cluster.asked) == ["get", "put"]
    await asyncio.sleep(0.05)
    assert not following.done(), "a copy of the log that is under way would hide the transcript"
    cluster.answers.set()
    assert (await following).exit_code == 0


async def test_what_a_look_at_the_resource_finds_is_passed_on_and_its_failure_ends_nothing() -> (
    None
):
    cluster, found = SlowCluster(), list[Mapping[str, Any]]()
    cluster.answers.set()
    follower = Follower(outside(cluster, Talker(looks=3)), found.append)
    assert (await follower.follow(an_assignment())).exit_code == 0
    assert {"name": "one"} in found
    cluster.failure = Unavailable("away")
    follower = Follower(outside(cluster, Talker(looks=3)), found.append)
    assert (await follower.follow(an_assignment())).exit_code == 0


async def test_a_resource_is_looked_at_also_while_its_workspace_is_prepared() -> None:
    cluster, found = SlowCluster(), asyncio.Queue[Mapping[str, Any]]()
    cluster.answers.set()

    class Hanging:
        def __getattr__(self, name: str) -> Any:
            return self._hang

        async def _hang(self, *_: Any, **__: Any) -> None:
            await asyncio.Event().wait()

    never = cast(Any, Hanging())
    crew = Crew(replace(outside(cluster, never), github=never), found.put_nowait)
    for work in (crew.prepare, crew.collect):
        busy = asyncio.create_task(work(an_assignment()))
        async with asyncio.timeout(5):
            assert await found.get() == {"name": "one"}
            await found.get()
        busy.cancel()
        await asyncio.gather(busy, return_exceptions=True)


@pytest.mark.parametrize(("agents", "again"), [(1, True), (40, False)])
async def test_many_agents_share_the_room_for_copies_of_their_output(
    agents: int, again: bool
) -> None:
    cluster = SlowCluster()
    cluster.answers.set()
    shares = {"live_log_gap": timedelta(0), "live_log_share": timedelta(milliseconds=250)}
    log, pulse = LiveLog(outside(cluster, **shares)), Pulse(RunState.RUNNING, chunk=b"abc")
    for each in [an_assignment(f"run-{number}") for number in range(agents)]:
        assert log.take(each, pulse), "the first output is shown at once"
        await log.keep(each, Redactor())
    async with asyncio.timeout(0.25 + 5):
        while not log.take(an_assignment("run-0"), pulse) and again:
            await asyncio.sleep(0.01)
    assert log.take(an_assignment("run-0"), pulse) is again
