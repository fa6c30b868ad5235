"""A retired sandbox is followed until it is gone, and only a key that could see it proves that."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.daytona import Outage
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create

from issuesandbox.api.names import LABEL_INSTALLATION
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.ports.sandboxes import SandboxOrder


def retired(world: World) -> list[dict[str, Any]]:
    body = world.kube.find(*PLACE)
    assert body is not None
    found: list[dict[str, Any]] = body["status"]["retired"]
    return found


def with_one_that_lives_on(world: World) -> str:
    """Have a resource whose earlier sandbox lives, though its deletion was accepted."""
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    earlier = world.daytona.create(SandboxOrder("claude-issue-7-earlier", row.view.labels))
    world.daytona.witness = judge
    given_up = {"id": earlier.id, "name": earlier.name, "reason": "Replaced", "at": stamp(world)}
    world.kube.edit(*PLACE, {"status": {"retired": [given_up]}})
    return earlier.id


def relabel(world: World, sandbox: str, labels: dict[str, str]) -> None:
    """Put these labels on a sandbox instead of its own, as people can."""
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    world.daytona.relabel(SandboxId(sandbox), labels)
    world.daytona.witness = judge


def stamp(world: World) -> str:
    return world.time.now().isoformat().replace("+00:00", "Z")


def start_anew(world: World, outage: Outage) -> None:
    world.daytona.outage = outage
    world.restart(world.operators[0])


def test_it_is_deleted_until_it_is_gone() -> None:
    # R20
    world = World()
    earlier = with_one_that_lives_on(world)
    world.settle()
    assert not world.daytona.rows[earlier].live
    assert "goneAt" in retired(world)[0]


@pytest.mark.parametrize("left", [{}, {"team": "a"}], ids=["none", "a person's own"])
def test_it_is_deleted_also_without_the_labels_that_people_took_off(left: dict[str, str]) -> None:
    world = World()
    earlier = with_one_that_lives_on(world)
    relabel(world, earlier, left)
    world.settle()
    assert not world.daytona.rows[earlier].live
    assert "goneAt" in retired(world)[0]


def test_it_is_left_alone_with_the_labels_of_others() -> None:
    world = World()
    earlier = with_one_that_lives_on(world)
    relabel(world, earlier, {LABEL_INSTALLATION: "theirs"})
    world.live(120.0)
    assert world.daytona.rows[earlier].live


def test_another_organisations_key_confirms_nothing() -> None:
    world = World()
    earlier = with_one_that_lives_on(world)
    start_anew(world, Outage.OTHER_ORGANIZATION)
    world.live(120.0)
    assert "goneAt" not in retired(world)[0]
    start_anew(world, Outage.NONE)
    world.settle()
    assert not world.daytona.rows[earlier].live


def test_the_organisation_is_remembered_also_while_there_is_no_sandbox() -> None:
    world = World()
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    world.daytona.quota = 0
    world.daytona.vanish(row)
    world.live(60.0)
    start_anew(world, Outage.OTHER_ORGANIZATION)
    world.daytona.quota = None
    world.live(120.0)
    assert world.daytona.live() == [], "none is made in the other organisation"
    start_anew(world, Outage.NONE)
    world.settle()
    assert [each.view.state for each in world.daytona.live()] == ["started"]
