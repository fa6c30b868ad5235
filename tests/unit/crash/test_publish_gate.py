"""The gate before a push, in whole passes: first the write that decides it, then the push."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from tests.fakes.kube import FakeKube
from tests.fakes.wire import Fate
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create_for_runs, delete, want_stopped

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.status import Comment
from issuesandbox.api.status_run import Outcome, Parent
from issuesandbox.domain.runs.chapters import Ending, Harvest, Preparation
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.steps import AgentEnd, Collected, Published, Rescued, Signs
from issuesandbox.ports.resources import ResourceKey

COMMIT = "c" * 40


class Hands:
    """`Steps` that all succeed at once, and see whether the push was decided before it is sent."""

    kube: FakeKube

    def __init__(self, *, quick: bool = False) -> None:
        self.asked: list[str] = []
        self._collected = Collected(Harvest(COMMIT), 1) if quick else None

    def scout(self, _: Assignment) -> None:
        return

    def recall(self, _: ResourceKey) -> None:
        return

    def approach(self, _: Assignment) -> None:
        return

    async def prepare(self, _: Assignment) -> Preparation | Ending:
        parent = Parent(commit="a" * 40, ref="main", branch_existed=False)
        return Preparation(parent, "work", "session", "hash")

    async def follow(self, _: Assignment) -> AgentEnd:
        self.asked.append("follow")
        return AgentEnd(0, "It ended.", collected=self._collected)

    def signs(self, _: ResourceKey) -> Signs | None:
        return None

    def heard(self, _: Assignment) -> Harvest | None:
        return None

    async def kill(self, _: Assignment) -> None:
        return

    async def collect(self, _: Assignment) -> Harvest | Ending:
        self.asked.append("collect")
        return Harvest(COMMIT)

    async def publish(self, assignment: Assignment) -> Published:
        self.asked.append("publish")
        written = self.kube.read(assignment.key)["status"]["run"]
        assert written["publish"]["commit"] == COMMIT, "pushed before that was written down"
        assert assignment.run.publish is not None
        return Published(Ending(Outcome.SUCCEEDED, "Pushed", "There."), pushed=True)

    async def rescue(self, _: Assignment) -> Rescued:
        return Rescued(Harvest())

    async def tell(self, _: Assignment) -> Comment | None:
        return None

    def digest(self, _: Assignment) -> str:
        return ""

    def forget(self, _: ResourceKey) -> None:
        return


@dataclass(frozen=True)
class Stage:
    """A world with one run in it."""

    world: World
    hands: Hands

    @property
    def run(self) -> dict[str, Any]:
        """Return the run as it is written down."""
        body = self.world.kube.find(*PLACE) or {}
        run: dict[str, Any] = body.get("status", {}).get("run", {})
        return run

    @property
    def pushes(self) -> int:
        """Return how many pushes were begun."""
        return self.hands.asked.count("publish")

    async def decide(self) -> None:
        """Make the pass that decides the push, on what the operator has heard so far."""
        operator = self.world.operators[0]
        (key,) = operator.known()
        operator.make_pass(key)
        await settle()

    async def live(self, until: Callable[[], bool], rounds: int = 200) -> None:
        """Let the operator work."""
        for _ in range(rounds):
            self.world.work()
            await settle()
            if until():
                return
            self.world.pass_time(0.5)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def stage_of(hands: Hands) -> Stage:
    stage = Stage(World(steps=hands), hands)
    hands.kube = stage.world.kube
    create_for_runs(stage.world)
    return stage


@pytest_asyncio.fixture(params=[False, True], ids=["collected later", "collected at once"])
async def stage(request: pytest.FixtureRequest) -> Stage:
    """A run whose work has just been collected; no pass has seen that yet."""
    stage = stage_of(Hands(quick=request.param))
    errand, phase = ("follow", "Executing") if request.param else ("collect", "Collecting")
    await stage.live(lambda: errand in stage.hands.asked)
    assert (stage.run["phase"], stage.pushes) == (phase, 0)
    return stage


def pause(world: World, value: str | None = "true") -> None:
    world.kube.edit(*PLACE, {"metadata": {"annotations": {ANNOTATION_PAUSED: value}}})


async def test_the_push_follows_the_write_that_decides_it_at_once_and_once(stage: Stage) -> None:
    # R56
    await stage.decide()
    assert (stage.run["publish"]["commit"], stage.pushes) == (COMMIT, 1)
    await stage.live(lambda: stage.run.get("phase") == "Finished")
    assert (stage.run["outcome"], stage.pushes) == ("Succeeded", 1)


@pytest.mark.parametrize("change", [want_stopped, pause, delete])
async def test_nothing_is_pushed_if_somebody_wrote_before_the_decision(
    change: Callable[[World], None], stage: Stage
) -> None:
    # R49, R56
    change(stage.world)
    await stage.decide()
    assert ("publish" in stage.run, stage.pushes) == (False, 0)
    ended = ("Cancelled", "Finished")
    await stage.live(lambda: (stage.run.get("outcome"), stage.run.get("phase")) == ended, 60)
    assert ("publish" in stage.run, stage.pushes) == (False, 0)
    if change is pause:
        pause(stage.world, None)
        await stage.live(lambda: stage.run.get("phase") == "Finished")
        assert (stage.run["outcome"], stage.pushes) == ("Succeeded", 1)


@pytest.mark.parametrize(
    "fate", [Fate.REFUSED, Fate.FAILS, Fate.REQUEST_LOST, Fate.ANSWER_LOST, Fate.LANDS_SOON]
)
async def test_a_decision_without_an_answer_is_no_leave_to_push(fate: Fate, stage: Stage) -> None:
    stage.world.operators[0].line.faults["patch_status"] = fate
    await stage.decide()
    assert ("publish" in stage.run, stage.pushes) == (fate is Fate.ANSWER_LOST, 0)
    await stage.live(lambda: stage.run.get("phase") == "Finished")
    assert (stage.run["outcome"], stage.pushes) == ("Succeeded", 1)


async def test_what_is_collected_at_once_is_told_with_the_end_of_its_agent() -> None:
    stage = stage_of(Hands(quick=True))
    await stage.live(lambda: stage.run.get("phase") == "Finished")
    assert "collect" not in stage.hands.asked
    told = [each.reason for each in stage.world.kube.events]
    assert told.index("AgentCompleted") + 1 == told.index("Publishing")


async def test_a_run_begins_at_once_in_a_sandbox_whose_create_was_never_answered() -> None:
    stage = stage_of(Hands())
    stage.world.operators[0].line.faults["create"] = Fate.ANSWER_LOST
    await stage.live(lambda: bool(stage.world.daytona.live()))

    def is_known() -> bool:
        body = stage.world.kube.find(*PLACE) or {}
        return "id" in body.get("status", {}).get("sandbox", {})

    await stage.live(is_known)
    found = stage.world.time.seconds
    await stage.live(lambda: bool(stage.run))
    assert stage.run
    assert stage.world.time.seconds - found < stage.world.timings.fleet_tick.total_seconds() / 2


async def test_what_was_collected_before_an_edit_is_looked_at_anew() -> None:
    stage = stage_of(Hands(quick=True))
    await stage.live(lambda: "follow" in stage.hands.asked)
    stage.world.kube.edit(*PLACE, {"spec": {"run": {"publish": {"enabled": False}}}})
    await stage.live(lambda: stage.run.get("phase") == "Finished")
    assert (stage.run["reason"], stage.pushes) == ("PublishDisabled", 0)
    assert "collect" in stage.hands.asked
