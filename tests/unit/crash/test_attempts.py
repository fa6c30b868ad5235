"""How many sandboxes one run may use up, and what gives a resource new attempts."""

from __future__ import annotations

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


def reason(world: World) -> str:
    body = world.kube.find(*PLACE)
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
