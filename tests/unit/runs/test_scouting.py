"""What GitHub was asked ahead of a run: used once, while it is fresh, and never kept for long."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.crew import Crew
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.scouting import Scouts
from issuesandbox.engine.runs.sources import Hopeless
from issuesandbox.ports.errors import CallError, NotFound, Unavailable
from issuesandbox.ports.github import IssueView, RepositoryView, Token
from issuesandbox.ports.resources import ResourceKey

KEY = ResourceKey("team", "one", "u-1")
COMMIT = "c" * 40


class Hub:
    """A GitHub that counts how often it is asked for tokens, and may fail."""

    def __init__(self) -> None:
        self.failure: CallError | None = None
        self.minted = 0
        self.asked = 0

    async def repository(self, name: str) -> RepositoryView:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return RepositoryView(name, "main", "https://github.example/octo/hello.git")

    async def branch_tip(self, _: str, branch: str) -> str | None:
        return COMMIT if branch == "main" else None

    async def open_pull(self, *_: str) -> None:
        return None

    async def read_token(self, _: str) -> Token:
        self.minted += 1
        return Token(f"token-{self.minted}")

    async def issue(self, *_: Any) -> IssueView:
        raise AssertionError("the resource has the issue's text")


class Stage:
    """Scouts, and a clock that a test sets."""

    def __init__(self, timings: Timings | None = None) -> None:
        self.time, self.hub = FakeTime(), Hub()
        nothing: Any = None
        hub: Any = self.hub
        self.outside = Outside(
            toolbox=nothing,
            github=hub,
            remote=nothing,
            ledgers=nothing,
            resources=nothing,
            clock=FakeClock(self.time),
            timings=timings or Timings(),
            namespace="ours",
        )
        self.scouts = Scouts(self.outside)

    async def report(self, assignment: Assignment) -> tuple[str, str | None]:
        """Return the branch that was found, and the token."""
        source = (await self.scouts.report(assignment)).source
        return source.branch, source.credential.value if source.credential is not None else None


def assignment(generation: int = 1, branch: str = "work") -> Assignment:
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1", "generation": generation},
        "spec": {
            "issue": {
                "repository": "octo/hello",
                "number": 1,
                "title": "Do",
                "body": "It",
                "labels": [],
            },
            "run": {"trigger": "1", "publish": {"branch": branch}},
        },
    }
    resource = IssueSandbox.model_validate(body)
    return Assignment(KEY, resource, resource.status, "", RunLimits())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_was_found_is_used_once() -> None:
    stage = Stage()
    for _ in range(2):
        stage.scouts.send(assignment())
    await settle()
    assert stage.hub.minted == 1, "one asks at a time"
    assert await stage.report(assignment()) == ("work", "token-1")
    assert await stage.report(assignment()) == ("work", "token-2")


async def test_one_that_is_still_asking_is_waited_for() -> None:
    stage = Stage()
    stage.scouts.send(assignment())
    assert await stage.report(assignment()) == ("work", "token-1")


async def test_an_edit_meanwhile_is_heeded() -> None:
    stage = Stage()
    stage.scouts.send(assignment())
    await settle()
    assert await stage.report(assignment(2, "other")) == ("other", "token-2")
    assert len(stage.scouts) == 0


@pytest.mark.parametrize(("seconds", "token"), [(30, "token-1"), (31, "token-2")])
async def test_what_is_too_old_is_asked_anew(seconds: float, token: str) -> None:
    stage = Stage()
    stage.scouts.send(assignment())
    await settle()
    stage.time.seconds += seconds
    assert await stage.report(assignment()) == ("work", token)


@pytest.mark.parametrize("failure", [NotFound("no such repository"), Unavailable("502")])
async def test_what_went_wrong_is_told_by_the_run_itself(failure: CallError) -> None:
    stage = Stage()
    stage.hub.failure = failure
    stage.scouts.send(assignment())
    await settle()
    assert stage.hub.asked == 1
    with pytest.raises(Hopeless if isinstance(failure, NotFound) else Unavailable):
        await stage.report(assignment())
    assert stage.hub.asked == 2
    stage.hub.failure = None
    stage.scouts.send(assignment())
    assert await stage.report(assignment()) == ("work", "token-1")


async def test_a_token_that_nobody_comes_for_is_not_kept_on_a_quiet_operator() -> None:
    stage = Stage(Timings(scout_use=timedelta(milliseconds=20)))
    stage.scouts.send(assignment())
    async with asyncio.timeout(10):
        while len(stage.scouts):
            await asyncio.sleep(0.01)


async def test_nothing_is_kept_for_a_resource_that_others_act_for() -> None:
    stage = Stage()
    crew = Crew(stage.outside, lambda _: None)
    driver = RunDriver(crew, lambda _: None, Timings(), RunLimits())
    scene = Scene(assignment().resource, Turn.ADMITTED, stage.time.now())
    driver.scout(KEY, scene)
    await settle()
    driver.advance(KEY, Scene(scene.resource, Turn.ADMITTED, scene.now, SandboxId("sb"), 1))
    assert len(crew._scouts) == 1, "a run that begins needs it"
    driver.drop(KEY)
    assert len(crew._scouts) == 0
