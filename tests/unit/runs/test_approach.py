"""What begins while a run is being written down: nothing that disturbs, nothing that is kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.prompt import IssueFacts
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.approach import Approach
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.scouting import Scouted
from issuesandbox.engine.runs.sources import Hopeless, Source
from issuesandbox.ports.errors import Denied, NotFound, Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.toolbox import Clone, Executed


class Box:
    """A toolbox whose answers a test holds back."""

    def __init__(self) -> None:
        self.tools, self.clones = asyncio.Event(), list[Clone]()
        self.failure: Exception | None = None

    async def home(self, sandbox_id: str) -> str:
        return f"/home/{sandbox_id}"

    async def execute(self, _: str, command: str, **__: Any) -> Executed:
        assert "command -v" in command, "nothing but a question may be sent"
        await self.tools.wait()
        return Executed(0, "")

    async def clone(self, _: str, order: Clone, **__: Any) -> None:
        self.clones.append(order)
        if self.failure is not None:
            raise self.failure


class NoSecrets:
    async def secret(self, *_: str) -> dict[str, str]:
        raise NotFound("no such Secret")


class Scout:
    """GitHub's word on where the work comes from."""

    failure: Exception | None = None
    keyless: str | None = None

    async def report(self, _: Assignment) -> Scouted:
        if self.failure is not None:
            raise self.failure
        source = Source(
            "https://github.example/a/b.git",
            "main",
            "fix",
            branch_existed=False,
            keyless=self.keyless,
        )
        return Scouted(source, IssueFacts(number=1, title="", body="", labels=(), author=""))


class Stage:
    def __init__(self, *, acts: bool = True) -> None:
        self.box, self.scout, self.time = Box(), Scout(), FakeTime()
        box: Any = self.box
        nothing: Any = None
        ledgers: Any = NoSecrets()
        self.outside = Outside(
            toolbox=box,
            github=None,
            remote=nothing,
            ledgers=ledgers,
            resources=nothing,
            clock=FakeClock(self.time),
            timings=Timings(),
            namespace="ours",
            may_act_for=lambda _: acts,
        )

    def approach(self) -> Approach:
        resource = IssueSandbox.model_validate(
            {
                "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
                "spec": {"issue": {"repository": "octo/hello", "number": 1}, "run": {}},
            }
        )
        key = ResourceKey("team", "one", "u-1")
        assignment = Assignment(key, resource, resource.status, "sb", RunLimits())
        scout: Any = self.scout
        return Approach(assignment, self.outside, scout)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_clone_waits_for_the_home_alone_and_goes_into_a_folder_of_its_own() -> None:
    stage = Stage()
    approach = stage.approach()
    folder = await approach.cloned
    assert folder.startswith("/home/sb/work."), "what the run uses is not touched"
    assert [each.path for each in stage.box.clones] == [folder]
    assert not approach.health.done()
    stage.box.tools.set()
    assert (await approach.health).home == "/home/sb"


async def test_what_is_given_up_ends_and_leaves_nothing_running() -> None:
    stage = Stage()
    approach = stage.approach()
    await settle()
    approach.give_up()
    await approach.ended()
    assert approach.health.cancelled()


async def test_a_refusal_is_told_to_whoever_asks_and_to_nobody_else() -> None:
    stage = Stage()
    stage.scout.failure = Hopeless("RepositoryNotFound", "There is none.")
    approach = stage.approach()
    await settle()
    with pytest.raises(Hopeless, match="There is none"):
        await approach.scouted
    assert stage.box.clones == []
    approach.give_up()
    await approach.ended()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [(Denied("401"), "ReadTokenMissing"), (NotFound("404"), "RepositoryNotFound")],
)
async def test_a_clone_that_is_refused_without_a_credential_says_which_one_is_missing(
    failure: Exception, reason: str
) -> None:
    stage = Stage()
    stage.box.failure, stage.scout.keyless = failure, "Secret team/s has no key."
    approach = stage.approach()
    with pytest.raises(Hopeless, match=r"40[14]\. Secret team/s has no key\.") as refused:
        await approach.cloned
    assert refused.value.ending.reason == reason
    approach.give_up()
    await approach.ended()


@pytest.mark.parametrize(
    ("failure", "expected"),
    [(NotFound("no such branch"), Hopeless), (Unavailable("502"), Unavailable)],
)
async def test_a_clone_that_fails_says_whether_it_may_pass(
    failure: Exception, expected: type[Exception]
) -> None:
    stage = Stage()
    stage.box.failure = failure
    approach = stage.approach()
    with pytest.raises(expected):
        await approach.cloned
    approach.give_up()
    await approach.ended()


async def test_a_replica_that_lost_its_charge_clones_nothing() -> None:
    stage = Stage(acts=False)
    approach = stage.approach()
    with pytest.raises(Unavailable, match="another replica"):
        await approach.cloned
    assert stage.box.clones == []
    approach.give_up()
    await approach.ended()


async def test_it_counts_for_its_own_sandbox_and_only_for_a_moment() -> None:
    stage = Stage()
    approach = stage.approach()
    assert approach.is_fresh("sb")
    assert not approach.is_fresh("another")
    stage.time.seconds += 2
    assert not approach.is_fresh("sb")
    approach.give_up()
    await approach.ended()
