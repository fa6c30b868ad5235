"""A fleet view that is older than what Daytona itself said."""

from __future__ import annotations

from tests.fakes.world import World
from tests.unit.crash.crash_stories import create


def test_a_view_from_before_it_vanished_does_not_bring_a_sandbox_back() -> None:
    world = World()
    create(world)
    world.settle()
    (operator,) = world.operators
    operator.refresh_fleet()
    (row,) = world.daytona.live()
    world.daytona.vanish(row)
    (key,) = operator.known()
    operator.hear_of(key)
    operator.make_pass(key)
    # For what comes in between, such as the echo of that pass's own write.
    operator.make_pass(key)
    world.live(60.0)
    (replacement,) = world.daytona.live()
    assert replacement.view.id != row.view.id
