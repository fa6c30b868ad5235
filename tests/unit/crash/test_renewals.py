"""Renewals keep Daytona from stopping what is wanted: each in its own time, after a restart too."""

from __future__ import annotations

from tests.fakes.world import World
from tests.unit.crash.crash_stories import create

HALF = 30 * 60.0


def renewals(world: World) -> list[float]:
    return [each.at for each in world.network.journal if each.verb == "renew"]


def test_a_renewal_is_sent_when_half_of_the_interval_has_passed() -> None:
    world = World()
    create(world)
    world.settle()
    world.live(3 * HALF)
    first, second = renewals(world)[:2]
    assert second - first >= HALF
    assert second - first < HALF + world.timings.fleet_tick.total_seconds() * 6


def test_a_restarted_operator_does_not_put_off_what_is_due_soon() -> None:
    world = World()
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    last = row.view.last_activity_at
    assert last is not None
    soon = HALF - (world.time.now() - last).total_seconds() - 20
    world.pass_time(soon)
    world.restart(world.operators[0])
    begin = world.time.seconds
    world.live(120.0)
    (sent,) = renewals(world)
    assert 19.0 <= sent - begin <= 21.0
