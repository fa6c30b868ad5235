"""An operator whose watch died unseen: what it writes or sends shows it how things are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.wire import Fate
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create, delete, want_stopped

from issuesandbox.ports.errors import NotFound


def creates(world: World) -> int:
    return len([each for each in world.network.journal if each.verb == "create"])


def test_a_create_is_not_repeated_for_a_resource_that_was_deleted_unseen() -> None:
    world = World(operators=2)
    deaf, other = world.operators
    create(world)
    deaf.receive_events()
    (key,) = deaf.known()
    for _ in range(3):
        deaf.line.faults["create"] = Fate.REQUEST_LOST
        deaf.make_pass(key)
        world.pass_time(1.0)
    sent = creates(world)
    assert sent == 3, "an announced create is sent again"
    deaf.deaf = True
    delete(world)
    while world.kube.find(*PLACE) is not None:
        other.work()
        world.pass_time(max(1.0, other.next_due()))
    deaf.make_pass(key)
    assert creates(world) == sent
    assert not world.daytona.live()


def test_a_write_that_is_refused_shows_the_stop_that_was_not_heard() -> None:
    world = World()
    create(world)
    world.settle()
    world.operators[0].deaf = True
    want_stopped(world)
    (row,) = world.daytona.live()
    world.daytona.vanish(row)
    world.live(120.0)
    body = world.kube.find(*PLACE)
    assert body is not None
    assert body["status"]["phase"] == "Stopped"
    assert not world.daytona.live()


def test_a_resource_is_served_although_one_write_did_not_find_it() -> None:
    world = World()
    merge: Callable[..., Any] = world.kube.merge_status
    missed: list[str] = []

    def once(*given: Any) -> Any:
        if missed:
            return merge(*given)
        missed.append("status")
        raise NotFound("page not found")

    world.kube.merge_status = once  # type: ignore[method-assign]
    create(world)
    world.operators[0].receive_events()
    world.operators[0].deaf = True
    world.settle()
    assert missed
    assert [each.view.state for each in world.daytona.live()] == ["started"]
