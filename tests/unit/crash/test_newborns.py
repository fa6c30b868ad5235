"""A sandbox that the resource's maker announced is asked for at once, and never twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create, create_announced

from issuesandbox.api.names import ANNOTATION_ANNOUNCED
from issuesandbox.domain.model import ANNOUNCED
from issuesandbox.engine.candidates import asks, holds_slot
from issuesandbox.engine.newborns import Newborns

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MARGIN = timedelta(seconds=5)
NAME = "claude-issue-7"


def calls_after(world: World, begin: int) -> list[str]:
    """Return what was asked for the one resource, lists of all left out."""
    return [each.verb for each in world.network.journal[begin:] if each.verb != "list"]


def test_the_first_call_for_an_announced_resource_is_its_create() -> None:
    world = World()
    world.live(60.0)
    begin = len(world.network.journal)
    world.kube.create(*PLACE, _spec(), announced=NAME)
    world.work()
    assert calls_after(world, begin)[0] == "create"


def test_what_nobody_announced_is_announced_before_its_create() -> None:
    world = World()
    world.live(60.0)
    begin = len(world.network.journal)
    create(world)
    world.work()
    assert calls_after(world, begin)[:2] == ["patch", "create"]


@pytest.mark.parametrize("operators", [1, 2])
def test_who_may_have_been_served_by_another_operator_is_looked_for_first(operators: int) -> None:
    world = World(operators)
    if operators == 2:
        world.live(60.0)
    begin = len(world.network.journal)
    world.kube.create(*PLACE, _spec(), announced=NAME)
    world.work()
    assert calls_after(world, begin)[0] == "get"
    world.settle()


def test_an_announcement_of_another_name_counts_for_nothing() -> None:
    world = World()
    world.live(60.0)
    world.kube.create(*PLACE, _spec(), announced="somebody-elses")
    world.settle()
    assert [row.view.name for row in world.daytona.live()] == [NAME]


def test_a_wiped_status_does_not_make_a_resource_new_again() -> None:
    world = World()
    create_announced(world)
    world.settle()
    begin = len(world.network.journal)
    world.kube.edit(*PLACE, {"status": None})
    world.settle()
    assert "create" not in calls_after(world, begin)


def test_a_resource_that_goes_before_it_was_served_is_let_go_at_once() -> None:
    world = World()
    world.live(60.0)
    begin = len(world.network.journal)
    world.kube.create(*PLACE, _spec(), announced=NAME)
    world.kube.delete(*PLACE)
    world.work()
    assert world.kube.find(*PLACE) is None
    assert calls_after(world, begin) == ["patch"]


def test_only_what_was_made_well_after_a_replica_took_charge_is_new_to_all() -> None:
    since: list[datetime | None] = [NOON]
    newborns = Newborns(lambda _: since[0], MARGIN)
    early, late = NOON + MARGIN - timedelta(seconds=1), NOON + MARGIN
    for uid, made_at in (("early", early), ("late", late)):
        newborns.hear(_made(uid, made_at))
    assert not newborns.knows("early", "octo/hello", early)
    assert newborns.knows("late", "octo/hello", late)
    since[0] = NOON + timedelta(minutes=1)
    assert not newborns.knows("late", "octo/hello", late), "another replica may have acted"
    since[0] = None
    assert not newborns.knows("late", "octo/hello", late)


def test_what_only_its_maker_announced_holds_no_place_in_the_queue() -> None:
    body = _made("one", NOON)
    body["status"] = {"intent": {"kind": "Create", "reason": ANNOUNCED}}
    assert asks(body)
    assert not holds_slot(body)
    body["status"] = {"intent": {"kind": "Create"}}
    assert holds_slot(body)


def _spec() -> dict[str, Any]:
    return {"issue": {"repository": "octo/hello", "number": 7}}


def _made(uid: str, at: datetime) -> dict[str, Any]:
    metadata = {
        "uid": uid,
        "creationTimestamp": at.isoformat(),
        "annotations": {ANNOTATION_ANNOUNCED: NAME},
    }
    return {"metadata": metadata, "spec": _spec()}
