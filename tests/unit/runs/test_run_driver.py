"""Passes of the driver with errands that a test holds in its hands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from issuesandbox.api.conditions import ConditionType, find
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Comment, Usage
from issuesandbox.api.status_run import Outcome, TokenUsage
from issuesandbox.domain.cleanup import CleanupPolicy
from issuesandbox.domain.defaults import RecoveryPolicy
from issuesandbox.domain.runs.chapters import Ending, Harvest, Preparation
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.supervision import RunPaths
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.following import Follower
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.probing import MUTE
from issuesandbox.engine.runs.steps import AgentEnd, Published, Rescued, Signs
from issuesandbox.ports.errors import CallError, Invalid, Throttled, Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.toolbox import Executed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ResourceKey("team", "one", "u-1")


class Hands:
    """`Steps` that go on for ever, unless told to fail."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.seen: list[Assignment] = []
        self.failure: Exception | None = None
        self.published: Published | None = None
        """What becomes of every push."""
        self.dies = False
        """The agent is dead as soon as it is killed."""
        self.harvest: Harvest | None = None
        """What is found in every work tree."""
        self.told = 0

    async def prepare(self, assignment: Assignment) -> Preparation | Ending:
        return await self._go("prepare", assignment)

    async def follow(self, assignment: Assignment) -> AgentEnd:
        return await self._go("follow", assignment)

    def heard(self, assignment: Assignment) -> Harvest | None:
        return Harvest(usage=TokenUsage(input_tokens=7), transcript="log")

    async def kill(self, assignment: Assignment) -> None:
        if not self.dies:
            await self._go("kill", assignment)

    async def collect(self, assignment: Assignment) -> Harvest | Ending:
        return self.harvest or await self._go("collect", assignment)

    async def publish(self, assignment: Assignment) -> Published:
        if self.published is not None and self.failure is None:
            return self.published
        return await self._go("publish", assignment)

    async def rescue(self, assignment: Assignment) -> Rescued:
        return await self._go("rescue", assignment)

    async def salvage(self, assignment: Assignment) -> Rescued:
        return await self._go("salvage", assignment)

    async def tell(self, assignment: Assignment) -> Comment | None:
        self.told += 1
        await asyncio.Event().wait()
        return None

    def signs(self, key: ResourceKey) -> Signs | None:
        return None

    def digest(self, assignment: Assignment) -> str:
        return ""

    def forget(self, key: ResourceKey) -> None:
        return

    def recall(self, key: ResourceKey) -> None:
        return

    async def _go(self, what: str, assignment: Assignment) -> Any:
        self.asked.append(what)
        self.seen.append(assignment)
        if self.failure is not None:
            raise self.failure
        await asyncio.Event().wait()


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def scene(phase: str, spec: dict[str, Any] | None = None, **run: Any) -> Scene:
    started = NOW - timedelta(minutes=1)
    whole = {
        "id": "r1",
        "attempt": 1,
        "phase": phase,
        "trigger": "1",
        "startedAt": stamp(started),
        "deadlines": {"run": stamp(started + timedelta(minutes=15))},
        **run,
    }
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": "1"},
            **(spec or {}),
        },
        "status": {"run": whole, "sandbox": {"id": "sb-1", "attempt": 1}},
    }
    resource = IssueSandbox.model_validate(body)
    return Scene(resource, Turn.ADMITTED, NOW, sandbox_id=SandboxId("sb-1"), attempt=1)


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def driver(hands: Hands) -> RunDriver:
    timings = Timings(comment_delay=timedelta(0))
    return RunDriver(hands, lambda _: None, timings, RunLimits())


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_work_waits_for_a_sandbox_that_is_brought_back(
    hands: Hands, driver: RunDriver
) -> None:
    ended = {"outcome": "Failed", "finishedAt": stamp(NOW), "agentStartedAt": stamp(NOW)}
    parent = {"commit": "0" * 40, "branchExisted": False}
    seen = replace(scene("Collecting", parent=parent, **ended), sandbox_id=None, still=True)
    waits = driver.advance(KEY, replace(seen, returning=True)).status.run
    assert waits is not None
    assert waits.phase.value == "Collecting"
    await settle()
    assert hands.asked == ["rescue"]
    # What was collected before can be pushed without it.
    under_way = driver.advance(KEY, seen).status.run
    assert under_way is not None
    assert under_way.phase.value == "Collecting"
    driver.drop(KEY)
    told = driver.advance(KEY, seen)
    assert told.status.run is not None
    assert told.status.run.phase.value == "Finalizing"
    assert told.event is not None
    assert (told.event.reason, told.event.warning) == ("WorkspaceLost", True)
    driver.drop(KEY)


async def test_a_stop_kills_also_an_agent_whose_start_is_not_written_down_yet(
    hands: Hands, driver: RunDriver
) -> None:
    driver.advance(KEY, scene("Executing"))
    await settle()
    driver.advance(KEY, scene("Executing", {"desiredState": "Stopped"}))
    await settle()
    assert hands.asked == ["follow", "kill"]
    driver.drop(KEY)


@pytest.mark.parametrize(
    ("phase", "asked"), [("Preparing", []), ("Executing", ["kill"]), ("Collecting", ["kill"])]
)
async def test_the_kill_begins_before_daytona_is_asked_and_is_repeated_until_it_works(
    phase: str, asked: list[str], hands: Hands, driver: RunDriver
) -> None:
    stop = scene(phase, {"desiredState": "Stopped"})
    unseen = replace(stop, sandbox_id=None)
    hands.failure = Unavailable("502")
    driver.hurry(KEY, replace(unseen, resource=scene(phase).resource))
    driver.hurry(KEY, unseen)
    await settle()
    assert hands.asked == asked
    driver.advance(KEY, stop)
    hands.failure = None
    for _ in range(2):
        driver.hurry(KEY, unseen)
        driver.advance(KEY, stop)
        await settle()
    assert hands.asked == asked * 2
    driver.drop(KEY)


@pytest.mark.parametrize("phase", ["Preparing", "Executing", "Collecting"])
async def test_edited_limits_are_written_down_at_once(
    phase: str, hands: Hands, driver: RunDriver
) -> None:
    driver.advance(KEY, scene(phase))
    limits = {"agent": "30s", "inactivity": "30s", "run": "90s"}
    edited = {"run": {"trigger": "1", "limits": limits}}
    progress = driver.advance(KEY, scene(phase, edited))
    run = progress.status.run
    assert run is not None
    assert run.deadlines is not None
    assert run.deadlines.run == NOW + timedelta(seconds=30)
    # A fifth of a short limit before the end people are warned.
    assert progress.next_check == timedelta(seconds=12)
    driver.drop(KEY)


PAUSED = {"issuesandbox.dev/paused": "true"}


def paused(at: Scene) -> Scene:
    return replace(
        at,
        resource=at.resource.model_copy(
            update={"metadata": at.resource.metadata.model_copy(update={"annotations": PAUSED})}
        ),
    )


def without_a_sandbox(at: Scene) -> Scene:
    return replace(at, sandbox_id=None, returning=True)


@pytest.mark.parametrize("hinder", [paused, without_a_sandbox])
@pytest.mark.parametrize("phase", ["Preparing", "Executing", "Collecting"])
async def test_a_limit_that_is_raised_in_time_holds_also_where_nothing_can_be_done(
    phase: str, hinder: Callable[[Scene], Scene], driver: RunDriver
) -> None:
    longer = {"run": {"trigger": "1", "limits": {"run": "2h"}}}
    at = replace(hinder(scene(phase, longer)), now=NOW + timedelta(minutes=14))
    progress = driver.advance(KEY, at)
    run = progress.status.run
    assert run is not None
    assert run.outcome is None
    assert run.deadlines is not None
    assert run.deadlines.run == NOW + timedelta(minutes=119)
    assert run.effective is not None
    assert run.effective.limits is not None
    assert str(run.effective.limits.run) == "2h"
    short = {"agent": "30s", "inactivity": "30s", "run": "30s"}
    lowered = {"run": {"trigger": "1", "limits": short}}
    over = driver.advance(KEY, hinder(scene(phase, lowered))).status.run
    assert over is not None
    assert (over.outcome, over.reason) == (Outcome.TIMED_OUT, "RunTimeout")


@pytest.mark.parametrize("ahead", [True, False])
async def test_no_push_is_decided_past_an_end_that_was_just_brought_forward(
    ahead: bool, hands: Hands, driver: RunDriver
) -> None:
    hands.harvest = Harvest(commit="c" * 40)
    driver.advance(KEY, scene("Collecting"))
    await settle()
    limits = {"agent": "30s", "inactivity": "30s", "run": "45s"}
    lowered = scene("Collecting", {"run": {"trigger": "1", "limits": limits}})
    if ahead:
        assert not driver.look_ahead(KEY, lowered)
    run = driver.advance(KEY, lowered).status.run
    assert run is not None
    assert (run.outcome, run.publish) == (Outcome.TIMED_OUT, None)
    # The same work in time is pushed.
    driver.advance(KEY, scene("Collecting"))
    await settle()
    run = driver.advance(KEY, scene("Collecting")).status.run
    assert run is not None
    assert run.publish is not None
    driver.drop(KEY)


async def test_what_rules_the_sandbox_is_written_down_and_reaches_whoever_saves_the_work(
    hands: Hands, driver: RunDriver
) -> None:
    policy, recovery = CleanupPolicy(retention=timedelta(hours=2)), RecoveryPolicy(max_attempts=4)
    at = replace(scene("Executing"), policy=policy, recovery=recovery)
    run = driver.advance(KEY, at).status.run
    assert run is not None
    assert run.effective is not None
    assert run.effective.cleanup == policy.recorded()
    assert run.effective.recovery == recovery.recorded()
    await settle()
    assert [each.recovery for each in hands.seen] == [recovery]
    driver.drop(KEY)


async def test_edited_limits_reach_whoever_follows_the_agent(
    hands: Hands, driver: RunDriver
) -> None:
    driver.advance(KEY, scene("Executing"))
    await settle()
    edited = {"run": {"trigger": "1", "limits": {"agent": "30s"}}}
    driver.advance(KEY, scene("Executing", edited))
    await settle()
    assert [each.limits.agent for each in hands.seen] == [
        timedelta(minutes=5),
        timedelta(seconds=30),
    ]
    driver.drop(KEY)


@pytest.mark.parametrize(
    ("failure", "phase"), [(Unavailable("502"), "Collecting"), (Invalid("no"), "Finalizing")]
)
async def test_work_is_saved_in_a_second_try_unless_that_is_hopeless(
    failure: CallError, phase: str, hands: Hands, driver: RunDriver
) -> None:
    hands.failure = failure
    parent = {"commit": "a" * 40, "ref": "main", "branchExisted": False}
    ended = scene(
        "Collecting",
        outcome="Failed",
        finishedAt=stamp(NOW),
        agentStartedAt=stamp(NOW),
        parent=parent,
    )
    driver.advance(KEY, ended)
    await settle()
    run = driver.advance(KEY, ended).status.run
    assert run is not None
    assert run.phase.value == phase
    driver.drop(KEY)


@pytest.mark.parametrize(("before", "total"), [(None, 7), (5, 12)])
async def test_what_a_cancelled_run_used_is_counted(
    before: int | None, total: int, driver: RunDriver
) -> None:
    at = scene("Executing", {"desiredState": "Stopped"})
    known = Usage(input_tokens=before) if before is not None else None
    noted = at.resource.status.model_copy(update={"stop_requested_at": NOW, "usage": known})
    resource = at.resource.model_copy(update={"status": noted})
    status = driver.advance(KEY, replace(at, resource=resource, still=True)).status
    assert status.run is not None
    assert (status.run.outcome, status.run.transcript) == (Outcome.CANCELLED, "log")
    assert status.usage is not None
    assert status.usage.input_tokens == total
    driver.drop(KEY)


async def test_a_sandbox_is_left_behind_only_after_the_kill(
    hands: Hands, driver: RunDriver
) -> None:
    resource = scene("Executing").resource
    metadata = resource.metadata.model_copy(update={"deletion_timestamp": NOW})
    going = replace(scene("Executing"), resource=resource.model_copy(update={"metadata": metadata}))
    hands.failure = Unavailable("502")
    for works in (False, True):
        assert not driver.may_be_left(KEY, going)
        driver.hurry(KEY, going)
        await settle()
        assert driver.may_be_left(KEY, going) is works
        driver.hurry(KEY, going)
        hands.failure, hands.dies = None, True
    assert driver.may_be_left(KEY, scene("Executing"))
    driver.drop(KEY)


def gated(state: str = "Running", **more: Any) -> Scene:
    push = {"commit": "a" * 40, "old": "0" * 40, "at": stamp(NOW - timedelta(minutes=1))}
    return scene("Publishing", {"desiredState": state}, publish={**push, **more}, branch="work")


@pytest.mark.parametrize(("state", "phase"), [("Running", "Collecting"), ("Stopped", "Finalizing")])
@pytest.mark.parametrize("is_bug", [False, True])
async def test_work_whose_push_fails_is_saved_unless_a_stop_came(
    is_bug: bool, state: str, phase: str, hands: Hands, driver: RunDriver
) -> None:
    hands.published = Published(Ending(Outcome.FAILED, "PublishFailed", "502"))
    hands.failure = ValueError("a bug") if is_bug else None
    driver.advance(KEY, gated(state))
    await settle()
    run = driver.advance(KEY, gated(state)).status.run
    assert run is not None
    assert (run.reason, run.phase.value) == ("PublishFailed", phase)
    driver.drop(KEY)


async def test_a_push_is_tried_again_however_long_ago_it_was_decided(
    hands: Hands, driver: RunDriver
) -> None:
    hands.failure = Unavailable("502")
    for _ in range(3):
        run = driver.advance(KEY, gated()).status.run
        await settle()
        assert run is not None
        assert run.outcome is None
    assert hands.asked == ["publish"] * 2
    driver.drop(KEY)


@pytest.mark.parametrize(
    ("seconds_before_the_end", "asked", "pause"),
    [(600, 40, 40), (600, None, 1), (30, 40, 30), (-5, 40, 1)],
)
async def test_a_pull_request_is_tried_again_when_github_says_or_at_the_end_of_the_run(
    seconds_before_the_end: int, asked: float | None, pause: int, hands: Hands, driver: RunDriver
) -> None:
    setback = Throttled("secondary rate limit", retry_after=asked)
    hands.published = Published(None, pushed=True, setback=setback)
    at = gated()
    assert at.run is not None
    end = at.run.started_at + RunLimits().run
    late = replace(at, now=end - timedelta(seconds=seconds_before_the_end))
    driver.advance(KEY, late)
    await settle()
    progress = driver.advance(KEY, late)
    run = progress.status.run
    assert run is not None
    assert run.publish is not None
    assert (run.outcome, run.publish.confirmed_at) == (None, late.now)
    assert progress.next_check == timedelta(seconds=pause)
    assert progress.event is not None
    assert progress.event.reason == "PullRequestDelayed"
    driver.drop(KEY)
    await settle()


async def test_the_wait_for_a_pull_request_grows_and_is_told_once(
    hands: Hands, driver: RunDriver
) -> None:
    hands.published = Published(None, pushed=True, setback=Unavailable("502"))
    for seconds, pause in ((3, 3), (8, 8), (40, 15)):
        confirmed = stamp(NOW - timedelta(seconds=seconds))
        driver.advance(KEY, gated(confirmedAt=confirmed))
        await settle()
        progress = driver.advance(KEY, gated(confirmedAt=confirmed))
        assert progress.next_check == timedelta(seconds=pause)
        assert progress.event is None
    driver.drop(KEY)
    await settle()


async def test_work_on_a_host_without_pull_requests_is_published(
    hands: Hands, driver: RunDriver
) -> None:
    # R37
    hands.published = Published(Ending(Outcome.SUCCEEDED, "Pushed", "There."), pushed=True)
    driver.advance(KEY, gated())
    await settle()
    status = driver.advance(KEY, gated()).status
    condition = find(status.conditions, ConditionType.PUBLISHED)
    assert condition is not None
    assert (condition.status.value, condition.reason) == ("True", "Pushed")
    driver.drop(KEY)


async def test_a_replica_that_comes_late_tries_once_to_save_the_work(
    hands: Hands, driver: RunDriver
) -> None:
    parent = {"commit": "a" * 40, "ref": "main", "branchExisted": False}
    long_ago = stamp(NOW - timedelta(minutes=10))
    ended = {"outcome": "Failed", "finishedAt": long_ago, "agentStartedAt": long_ago}
    late = scene("Collecting", parent=parent, **ended)
    hands.failure = Unavailable("502")
    for phase in ("Collecting", "Finalizing"):
        run = driver.advance(KEY, late).status.run
        await settle()
        assert run is not None
        assert run.phase.value == phase
    assert hands.asked == ["rescue"]
    driver.drop(KEY)


async def test_the_comment_is_refreshed_within_a_long_phase(
    hands: Hands, driver: RunDriver
) -> None:
    at = scene("Executing")
    for seconds, told in ((0, 1), (20, 1), (61, 2), (119, 2), (121, 3)):
        later = replace(at, now=NOW + timedelta(seconds=seconds))
        check = driver.advance(KEY, later).next_check
        await settle()
        assert hands.told == told, f"after {seconds} s"
        assert check is not None
        assert check <= timedelta(seconds=60 - seconds % 60)
    driver.drop(KEY)


async def test_what_the_agent_did_last_is_known_while_it_is_followed() -> None:
    listener: Any = Listener()
    outside = Outside(listener, None, listener, listener, listener, listener, Timings(), "ours")
    at = scene("Executing")
    assignment = Assignment(KEY, at.resource, at.resource.status, "sb-1", RunLimits())
    follower = Follower(outside)
    assert follower.activity(KEY) is None
    watch = follower.watch(assignment)
    watch.redactor = watch.redactor.with_secrets(["sk-planted-in-a-name"])
    for name, shown in (("Bash", "Bash"), ("mcp__sk-planted-in-a-name", "mcp__")):
        block = {"type": "tool_use", "id": "t", "name": name}
        message = {"id": name, "content": [block]}
        watch.reader.feed(json.dumps({"type": "assistant", "message": message}).encode() + b"\n")
        activity = follower.activity(KEY)
        assert activity is not None
        assert activity.tool is not None
        assert activity.tool.startswith(shown)
        assert "planted" not in activity.tool


class Listener:
    """A toolbox that remembers what it was asked, at a clock that goes on."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.elapsed = timedelta(0)

    async def execute(self, sandbox_id: str, command: str, **_: Any) -> Executed:
        self.commands.append(command)
        return Executed(0, "issuesandbox-pulse\nstate RUNNING\nend\n")

    def now(self) -> datetime:
        return NOW + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed.total_seconds()


async def test_the_limit_of_the_whole_run_does_not_shrink_while_the_agent_is_followed() -> None:
    listener: Any = Listener()
    outside = Outside(listener, None, listener, listener, listener, listener, Timings(), "ours")
    at = scene("Executing")
    assignment = Assignment(KEY, at.resource, at.resource.status, "sb-1", RunLimits())
    follower, paths = Follower(outside), RunPaths("/home/agent", "r1")
    watch = follower.watch(assignment)
    for minutes in (0, 3):
        listener.elapsed = timedelta(minutes=minutes)
        pulse = await follower.poll(assignment, paths, 0, 0)
        watch.take(replace(pulse, started_ago=minutes * 60), listener.now())
    first, second = listener.commands
    assert first == second


async def test_people_are_warned_once_a_minute_before_the_end(driver: RunDriver) -> None:
    # R76
    started = NOW - timedelta(minutes=4)
    limits = {"run": {"trigger": "1", "limits": {"agent": "5m", "inactivity": "5m"}}}
    own = {
        "agentStartedAt": stamp(started),
        "deadlines": {
            "agent": stamp(started + timedelta(minutes=5)),
            "run": stamp(NOW + timedelta(minutes=14)),
        },
    }
    early = replace(scene("Executing", limits, **own), now=NOW - timedelta(seconds=10))
    quiet = driver.advance(KEY, early)
    assert (quiet.event, quiet.next_check) == (None, timedelta(seconds=10))
    told = driver.advance(KEY, scene("Executing", limits, **own))
    assert told.event is not None
    assert (told.event.reason, told.event.warning) == ("DeadlineNear", True)
    assert "in 60 s" in told.event.message
    assert "spec.run.limits.agent" in told.event.message
    assert told.status.run is not None
    own["warnedOf"] = stamp(told.status.run.warned_of or NOW)
    assert driver.advance(KEY, scene("Executing", limits, **own)).event is None
    # Another end is another warning.
    longer = {"run": {"trigger": "1", "limits": {"agent": "6m", "inactivity": "5m"}}}
    later = replace(scene("Executing", longer, **own), now=NOW + timedelta(minutes=1))
    again = driver.advance(KEY, later)
    assert again.event is not None
    assert again.event.reason == "DeadlineNear"
    driver.drop(KEY)
    await settle()


async def test_a_workspace_is_tried_four_times_and_a_missed_probe_is_no_try(
    hands: Hands, driver: RunDriver
) -> None:
    # R25
    hands.failure = Unavailable("the sandbox did not answer", code=MUTE)
    driver.advance(KEY, scene("Preparing"))
    await settle()
    missed = driver.advance(KEY, scene("Preparing")).status.run
    assert missed is not None
    assert (missed.probe_misses, missed.clone_attempts) == (1, 0)
    hands.failure = Unavailable("the clone broke off")
    for tries in range(4):
        at = scene("Preparing", cloneAttempts=tries, probeMisses=1)
        driver.advance(KEY, at)
        await settle()
        run = driver.advance(KEY, at).status.run
        assert run is not None
        over = tries == 3
        assert (run.outcome is not None) is over, tries
        assert over or run.clone_attempts == tries + 1
    assert (run.outcome, run.reason) == (Outcome.FAILED, "PrepareFailed")
    driver.drop(KEY)
    await settle()
