"""An agent that may still run: its sandbox is stopped, whatever the policy says."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.conditions import ConditionStatus, ConditionType, find
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec_cleanup import CleanupAction
from issuesandbox.api.status import Comment, Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.clock import SystemClock
from issuesandbox.domain.cleanup import CleanupPolicy
from issuesandbox.domain.collection import CollectError
from issuesandbox.domain.model import Memory, Want
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Move, Scene, next_move
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn, facts_of, is_unsafe, wanted
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.collecting import Collector
from issuesandbox.engine.runs.crew import Crew as RealCrew
from issuesandbox.engine.runs.endings import Endings
from issuesandbox.engine.runs.errands import Errands
from issuesandbox.engine.runs.following import SURVIVES, Follower
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.switches import Switches
from issuesandbox.ports.errors import Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.toolbox import Executed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ResourceKey("team", "one", "u-1")
RETAIN = CleanupPolicy(on_failure=CleanupAction.RETAIN)
SECRET = "sk-ant-planted-0123456789"
REFUSED = b'{"type": "system", "subtype": "api_retry", "error_status": 401}\n'
BASE64 = b64encode(REFUSED).decode()


def a_resource(phase: str = "Executing", profile: str = "custom", **run: Any) -> IssueSandbox:
    agent: dict[str, Any] = {"profile": profile, "envFrom": [{"secretRef": {"name": "s"}}]}
    if profile == "custom":
        agent["command"] = ["agent"]
    told = {"id": "r1", "attempt": 1, "phase": phase, "trigger": "1", "startedAt": NOW.isoformat()}
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": "1", "agent": agent},
        },
        "status": {
            "sandbox": {"id": "sb-1", "state": "started"},
            "run": {**told, "agentStartedAt": NOW.isoformat(), **run},
        },
    }
    return IssueSandbox.model_validate(body)


def ended(outcome: Outcome, *, doubted: bool) -> IssueSandbox:
    resource = a_resource()
    status = chapters.agent_ended(resource.status, 1, "It ended.", NOW)
    if doubted:
        status = chapters.doubted(status, SURVIVES, "Who knows?", NOW)
    ending = chapters.Ending(outcome, "Some")
    status = chapters.ended(status, ending, RunPhase.FINALIZING, NOW)
    return resource.model_copy(update={"status": status})


def assignment(resource: IssueSandbox) -> Assignment:
    return Assignment(KEY, resource, resource.status, "sb-1", RunLimits())


class Sandbox:
    """A toolbox whose every command answers with the next of some pulses."""

    def __init__(self, *pulses: str) -> None:
        self._pulses = list(pulses)

    async def home(self, _: str) -> str:
        return "/home/u"

    async def upload(self, *_: Any) -> None:
        pass

    async def execute(self, *_: Any, **__: Any) -> Executed:
        told = self._pulses.pop(0) if len(self._pulses) > 1 else self._pulses[0]
        return Executed(0, f"issuesandbox-pulse\n{told}\nend\n")


class Secrets:
    """The Secret of an agent, as it is at each look; None: it is gone."""

    def __init__(self, *looks: str | None) -> None:
        self._looks = list(looks)

    async def secret(self, *_: str) -> Mapping[str, str]:
        value = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if value is None:
            raise NotFound("no such Secret")
        return {"KEY": value}


def outside(sandbox: Sandbox, secrets: Secrets | None = None) -> Outside:
    parts: Any = SimpleNamespace(toolbox=sandbox, ledgers=secrets or Secrets(SECRET))
    return Outside(
        parts.toolbox, None, parts, parts.ledgers, parts, SystemClock(), Timings(), "own"
    )


@pytest.mark.parametrize(
    ("outcome", "doubted", "stops"),
    [
        (Outcome.FAILED, False, False),
        (Outcome.FAILED, True, True),
        (Outcome.TIMED_OUT, False, True),
    ],
)
def test_only_a_stop_of_the_sandbox_settles_a_doubt(
    outcome: Outcome, doubted: bool, stops: bool
) -> None:
    resource = ended(outcome, doubted=doubted)
    assert is_unsafe(resource.status) is stops
    memory = Memory(sandbox_id=SandboxId("sb-1"), state="started", state_since=NOW)
    facts = facts_of(resource, memory, RETAIN, Timings(), admitted=False)
    assert (wanted(facts, Timings(), NOW).want is Want.STOPPED) is stops
    scene = Scene(resource, Turn.NONE, NOW, SandboxId("sb-1"), 1)
    assert next_move(scene) is (Move.KILL if stops else Move.TELL)
    still = Scene(resource, Turn.NONE, NOW, None, 1, still=True)
    assert next_move(still) is Move.TELL


@pytest.mark.parametrize(
    ("pulse", "reason", "sure"),
    [
        (f"state LOST\nproblem gone with {SECRET}", "SupervisorLost", False),
        ("state ABSENT", "SupervisorLost", False),
        ("state ENDED\nexit 0\nsize 0\nsurvivors 0", None, True),
        ("state ENDED\nexit 0\nsize 0\nsurvivors 2", SURVIVES, False),
        ("state ENDED\nexit 3\nsize 0\nsurvivors 0", "AgentFailed", True),
        ("state ENDED\nexit 3\nsize 0\nsurvivors 1", "AgentFailed", False),
        # Whoever saves the work kills the agent, after the outcome was written.
        (f"state RUNNING\nsize {len(REFUSED)}\nbase64 0\n{BASE64}", "AgentUnauthorized", False),
    ],
)
async def test_an_end_that_was_not_seen_is_not_sure(
    pulse: str, reason: str | None, sure: bool
) -> None:
    follower = Follower(outside(Sandbox(pulse)))
    if reason == "SupervisorLost":
        # A sandbox that is being destroyed looks the same, so Daytona is asked in between.
        with pytest.raises(Unavailable):
            await follower.follow(assignment(a_resource()))
    end = await follower.follow(assignment(a_resource()))
    assert (end.ending.reason if end.ending else None, end.sure) == (reason, sure)
    assert SECRET not in end.words


async def test_only_a_stop_that_was_asked_for_cancels() -> None:
    # R57: an agent may write down that it was stopped.
    stopped = Sandbox("state ENDED\nexit 143\nended Stop\nsize 0\nsurvivors 0")
    told = a_resource()
    asked = told.status.model_copy(update={"stop_requested_at": NOW})
    for resource, ending in (
        (told, (Outcome.FAILED, "AgentKilled")),
        (told.model_copy(update={"status": asked}), (Outcome.CANCELLED, "StopRequested")),
    ):
        end = await Follower(outside(stopped)).follow(assignment(resource))
        assert end.ending is not None
        assert (end.ending.outcome, end.ending.reason) == ending


@pytest.mark.parametrize("ended", ["Agent", "Inactivity", "Run"])
async def test_a_refused_key_is_a_failure_whatever_ended_the_agent(ended: str) -> None:
    told = f"state ENDED\nexit 143\nended {ended}\nsize {len(REFUSED)}\nsurvivors 0"
    sandbox = Sandbox(f"{told}\nbase64 0\n{BASE64}")
    end = await Follower(outside(sandbox)).follow(assignment(a_resource()))
    assert end.ending is not None
    assert (end.ending.outcome, end.ending.reason) == (Outcome.FAILED, "AgentUnauthorized")


@pytest.mark.parametrize(
    ("profile", "named", "kept"),
    [
        ("custom", "own-1", "own-1"),
        ("custom", "a" * 64, "a" * 64),
        # The status has no room for it.
        ("custom", "a" * 65, None),
        # It is the agent's key, or looks like one.
        ("custom", SECRET, None),
        ("custom", "ghp_0123456789abcdef0123", None),
        ("cursor", "own-1", "own-1"),
        # Its session is of our choice.
        ("claude", "own-1", None),
    ],
)
async def test_only_a_session_that_an_agent_may_name_is_taken(
    profile: str, named: str, kept: str | None
) -> None:
    line = f'{{"type":"result","is_error":false,"session_id":"{named}"}}\n'.encode()
    pulse = f"state ENDED\nexit 0\nsize {len(line)}\nsurvivors 0\nbase64 0"
    sandbox = Sandbox(f"{pulse}\n{b64encode(line).decode()}")
    end = await Follower(outside(sandbox)).follow(assignment(a_resource(profile=profile)))
    assert (end.ending, end.session_id) == (None, kept)


@pytest.mark.parametrize(
    "forged",
    [
        f"age {10**15}\nsilent {10**15}\nsize {10**15}\nexit {10**14}",
        f"age -{10**15}\nsilent -5\nsize 0\nexit 256",
    ],
)
async def test_forged_figures_break_neither_the_look_nor_the_status(forged: str) -> None:
    follower = Follower(outside(Sandbox(f"state ENDED\n{forged}\nsurvivors {10**15}")))
    end = await follower.follow(assignment(a_resource()))
    assert (end.exit_code, end.sure) == (None, False)
    signs = follower.signs(KEY)
    assert signs is not None
    assert signs.started_at.year > 2000
    assert signs.last_output_at <= SystemClock().now()


class Mute(Sandbox):
    """A toolbox that gives no answer while it is down."""

    down = True

    async def home(self, sandbox_id: str) -> str:
        if self.down:
            raise Unavailable("no answer")
        return await super().home(sandbox_id)


@pytest.mark.parametrize(("comes_back", "reason"), [(False, "AgentTimeout"), (True, None)])
async def test_an_agent_over_its_limit_is_given_up_where_nobody_answers(
    comes_back: bool, reason: str | None
) -> None:
    # R71: but one that ended well while nobody looked is still found by whoever comes late.
    time, sandbox = FakeTime(), Mute("state ENDED\nexit 0\nsize 0\nsurvivors 0")
    follower = Follower(replace(outside(sandbox), clock=FakeClock(time)))
    asked = assignment(a_resource(agentStartedAt=time.now().isoformat()))
    grace = Timings().agent_grace.total_seconds()
    time.seconds += RunLimits().agent.total_seconds() + grace
    for _ in range(2):
        with pytest.raises(Unavailable):
            await follower.follow(asked)
        time.seconds += grace / 2
    sandbox.down = not comes_back
    end = await follower.follow(asked)
    assert (end.ending.reason if end.ending else None, end.sure) == (reason, comes_back)
    assert end.ending is None or end.ending.outcome is Outcome.TIMED_OUT


async def test_an_agent_within_its_limit_is_waited_for_however_long_nobody_answers() -> None:
    time = FakeTime()
    follower = Follower(replace(outside(Mute("state ABSENT")), clock=FakeClock(time)))
    asked = assignment(a_resource(agentStartedAt=time.now().isoformat()))
    for _ in range(5):
        with pytest.raises(Unavailable):
            await follower.follow(asked)
        time.seconds += RunLimits().agent.total_seconds() / 5


@pytest.mark.parametrize(
    ("answer", "works"),
    [
        ("state ENDED\nsurvivors 0", True),
        ("state ENDED\nsurvivors 2", False),
        ("state RUNNING", False),
        ("state LOST\nproblem changed", False),
    ],
)
async def test_a_kill_works_only_if_nothing_is_left(answer: str, works: bool) -> None:
    with nullcontext() if works else pytest.raises(Unavailable):
        await Follower(outside(Sandbox(answer))).kill(assignment(a_resource()))


async def test_an_agent_whose_secret_is_gone_may_run_all_the_same() -> None:
    crew = RealCrew(outside(Sandbox("state ABSENT"), Secrets(None)), lambda _: None)
    end = await crew.follow(assignment(a_resource(agentStartedAt=None)))
    assert end.ending is not None
    assert (end.ending.reason, end.sure) == ("SecretNotFound", False)


@pytest.mark.parametrize("swept", ["state ENDED\nsurvivors 1", "state LOST\nproblem changed"])
async def test_nothing_is_collected_beside_an_agent_that_may_live(swept: str) -> None:
    world = outside(Sandbox(swept))
    parent = {"commit": "a" * 40, "branchExisted": False}
    with pytest.raises(CollectError) as refused:
        await Collector(world, Follower(world)).work(assignment(a_resource(parent=parent)))
    assert refused.value.code == SURVIVES


async def test_an_answer_that_was_cut_off_is_asked_for_again() -> None:
    world = outside(Sandbox("state ENDED\nsurvivors 0"))
    parent = {"commit": "a" * 40, "branchExisted": False}
    with pytest.raises(Unavailable, match="incomplete"):
        await Collector(world, Follower(world)).collect(assignment(a_resource(parent=parent)))


async def test_a_secret_that_changes_or_goes_during_the_run_is_still_hidden() -> None:
    other = "sk-other-9876543210"
    follower = Follower(outside(Sandbox("state ABSENT"), Secrets(SECRET, other, None)))
    for _ in range(3):
        watch = await follower.informed_watch(assignment(a_resource()))
    assert watch.redactor.redact(f"{SECRET} {other}") == "*** ***"


class Crew:
    """Does every errand the same way: badly."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    async def fail(self, _: Assignment) -> Any:
        raise self._failure

    rescue = tell = fail

    def heard(self, _: Assignment) -> None:
        return None

    def digest(self, _: Assignment) -> str:
        return "d"

    def forget(self, _: ResourceKey) -> None:
        pass


async def moved(crew: Crew, move: str, resource: IssueSandbox) -> tuple[Status, timedelta | None]:
    woken = asyncio.Event()
    steps: Any = crew
    endings = Endings(steps, Errands(lambda _: woken.set()), Timings(), RunLimits(), Switches())
    scene = Scene(resource, Turn.NONE, NOW, SandboxId("sb-1"), 1)
    getattr(endings, move)(KEY, scene)
    await woken.wait()
    progress = getattr(endings, move)(KEY, scene)
    return progress.status, progress.next_check


async def test_a_rescue_that_finds_survivors_leaves_a_doubt() -> None:
    parent = {"commit": "a" * 40, "branchExisted": False}
    failed = {"outcome": "Failed", "finishedAt": NOW.isoformat(), "parent": parent}
    resource = a_resource("Collecting", **failed)
    for code, doubted in ((SURVIVES, True), ("NoSpace", False)):
        status, _ = await moved(Crew(Invalid("left", code=code)), "rescue", resource)
        condition = find(status.conditions, ConditionType.AGENT_COMPLETED)
        assert (condition is not None) is doubted
        assert condition is None or condition.status is ConditionStatus.FALSE


async def test_github_is_not_asked_every_second_to_change_its_mind() -> None:
    resource = ended(Outcome.FAILED, doubted=False)
    _, soon = await moved(Crew(Unavailable("down")), "tell", resource)
    assert soon == Timings().settle_check
    for refusal in (Denied("locked"), NotFound("gone")):
        _, later = await moved(Crew(refusal), "tell", resource)
        assert later == Timings().tell_limit / 4


async def test_a_last_word_that_github_did_not_take_in_time_is_tried_again() -> None:
    """Without a comment nobody knows how the run ended, unless GitHub wants none."""
    resource = ended(Outcome.FAILED, doubted=False)
    _, later = await moved(Crew(Unavailable("down")), "retell", resource)
    assert later == Timings().refused_check
    for refusal in (Denied("locked"), NotFound("gone")):
        _, never = await moved(Crew(refusal), "retell", resource)
        assert never is None
    told = resource.status.model_copy(update={"comment": Comment(id=1, digest="d")})
    steps: Any = Crew(Unavailable("down"))
    endings = Endings(steps, Errands(lambda _: None), Timings(), RunLimits(), Switches())
    for status, is_told in ((resource.status, False), (told, True)):
        seen = resource.model_copy(update={"status": status})
        assert endings.has_told(KEY, Scene(seen, Turn.NONE, NOW)) is is_told
