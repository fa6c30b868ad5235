"""How many sandboxes one run may use up, and what gives a resource new attempts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create

BETTER = {"spec": {"sandbox": {"snapshot": "better"}}}
ANOTHER_RUN = {"spec": {"run": {"trigger": "2"}}}


def used_up(attempts: int, **spec: Any) -> World:
    """Have a resource whose sandboxes all broke while they booted."""
    world = World()
    world.daytona.cursed = True
    create(world, recovery={"maxAttempts": attempts}, **spec)
    world.live(600.0)
    assert reason(world) == "AttemptsExhausted"
    assert len(world.daytona.rows) == attempts
    if "run" in spec:
        world.kube.finish_run(*PLACE, "Failed")
    world.live(60.0)
    assert len(world.daytona.rows) == attempts, "nothing is tried before it is asked for"
    return world


def reason(world: World, place: tuple[str, str] = PLACE) -> str:
    body = world.kube.find(*place)
    assert body is not None
    found: str = next(
        each["reason"] for each in body["status"]["conditions"] if each["type"] == "Ready"
    )
    return found


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_corrected_sandbox_has_all_attempts_again(attempts: int) -> None:
    # R20
    world = used_up(attempts)
    world.kube.edit(*PLACE, BETTER)
    world.live(600.0)
    assert reason(world) == "AttemptsExhausted"
    assert len(world.daytona.rows) == 2 * attempts
    world.daytona.cursed = False
    world.kube.edit(*PLACE, {"spec": {"sandbox": {"snapshot": "best"}}})
    world.settle()
    assert [row.view.state for row in world.daytona.live()] == ["started"]


@pytest.mark.parametrize("attempts", [1, 3])
def test_another_run_has_all_attempts_again(attempts: int) -> None:
    # R20
    world = used_up(attempts, run={"trigger": "1"})
    world.kube.edit(*PLACE, ANOTHER_RUN)
    world.live(600.0)
    assert reason(world) == "AttemptsExhausted"
    assert len(world.daytona.rows) == 2 * attempts


def test_the_more_of_them_broke_the_longer_the_next_one_waits() -> None:
    # R22
    world = used_up(4)
    at = [each.at for each in world.network.journal if each.verb == "create"]
    first, second, third = (later - sooner for sooner, later in pairwise(at))
    pause = world.timings.create_retry.total_seconds()
    assert first < pause <= second < 2 * pause <= third < 3 * pause


def test_sandboxes_lost_during_the_run_count_as_well() -> None:
    world = World()
    create(world, run={"trigger": "1"})
    world.settle()
    body = world.kube.find(*PLACE)
    assert body is not None
    begun = {"id": "r1", "phase": "Executing", "trigger": "1", "attempt": 1, "recreations": 2}
    begun["startedAt"] = world.time.now().isoformat().replace("+00:00", "Z")
    world.kube.edit(*PLACE, {"status": {"run": begun}})
    (row,) = world.daytona.live()
    world.daytona.break_down(row, recoverable=False)
    world.live(60.0)
    assert reason(world) == "AttemptsExhausted"
    assert len(world.daytona.rows) == 1, "it was the third"


def crowd(world: World, size: int, **spec: Any) -> list[tuple[str, str]]:
    """Make so many resources, each for an issue of its own; return where they are."""
    places = [("team", f"issue-{number}") for number in range(1, size + 1)]
    for number, place in enumerate(places, 1):
        issue = {"repository": "octo/hello", "number": number}
        world.kube.create(*place, {"issue": issue, **spec})
    return places


def test_many_that_were_ordered_wrongly_all_run_once_they_are_ordered_better() -> None:
    world = World()
    world.daytona.cursed = True
    places = crowd(world, 6)
    world.live(600.0)
    assert {reason(world, each) for each in places} <= {"AttemptsExhausted", "BreakerOpen"}
    world.daytona.cursed = False
    for place in places:
        world.kube.edit(*place, BETTER)
    world.settle()
    assert len(world.daytona.live()) == len(places)


def test_the_broken_ones_that_are_kept_after_their_runs_hold_nobody_back() -> None:
    world = World()
    places = crowd(world, 6, run={"trigger": "1"})
    world.settle()
    for place in places[1:]:
        world.kube.finish_run(*place, "Failed")
    world.settle()
    old = world.daytona.live()
    for row in old:
        world.daytona.break_down(row, recoverable=False)
    world.live(60.0)
    kept = [row for row in old if row.live]
    assert (len(kept), len(world.daytona.live())) == (5, 6), "the one that is wanted was replaced"


@pytest.mark.parametrize("edit", [{}, BETTER], ids=["untouched", "edited in peace"])
def test_many_that_ran_and_break_at_once_are_all_held(edit: dict[str, Any]) -> None:
    world = World()
    places = crowd(world, 6)
    world.settle()
    for place in places:
        world.kube.edit(*place, edit)
    world.settle()
    for row in world.daytona.live():
        world.daytona.break_down(row, recoverable=False)
    world.operators[0].refresh_fleet()
    world.live(600.0)
    assert {reason(world, each) for each in places} == {"BreakerOpen"}
    assert len(world.daytona.rows) == len(places), "no disk was given up"
