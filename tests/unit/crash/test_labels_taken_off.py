"""A sandbox whose labels people took off is still ours by its id, and gets them back."""

from __future__ import annotations

import pytest
from tests.fakes.daytona import Row
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create, delete, want_stopped

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_NUMBER, LABEL_UID


def stripped(*labels: str) -> tuple[World, Row]:
    world = World()
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    kept = {name: text for name, text in row.view.labels.items() if name not in labels}
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    world.daytona.relabel(row.view.id, kept)
    world.daytona.witness = judge
    return world, row


@pytest.mark.parametrize(
    "labels", [(LABEL_UID,), (LABEL_INSTALLATION,), (LABEL_INSTALLATION, LABEL_UID, LABEL_NUMBER)]
)
def test_it_is_not_made_a_second_time_and_gets_its_labels_back(labels: tuple[str, ...]) -> None:
    # R10
    world, row = stripped(*labels)
    before = len(world.daytona.rows)
    world.settle()
    assert len(world.daytona.rows) == before
    assert set(labels) <= set(row.view.labels)


def test_it_is_stopped_and_deleted_as_any_other() -> None:
    world, row = stripped(LABEL_INSTALLATION)
    want_stopped(world)
    world.settle()
    assert row.view.state == "stopped"
    world, row = stripped(LABEL_INSTALLATION)
    delete(world)
    world.settle()
    assert not row.live
    assert world.kube.find(*PLACE) is None
