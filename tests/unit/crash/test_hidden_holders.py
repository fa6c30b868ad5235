"""Where the API server does not show whom a sandbox belongs to, that is said, and nothing done."""

from __future__ import annotations

import pytest
from tests.fakes.operator_process import INSTALLATION
from tests.fakes.wire import Fate
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create

from issuesandbox.domain.naming import Identity

NAME = "claude-issue-7"


@pytest.mark.parametrize("fate", [Fate.DENIED, Fate.FAILS, Fate.THROTTLED])
def test_it_is_not_told_as_trouble_of_daytonas(fate: Fate) -> None:
    world = World()
    gone = Identity(INSTALLATION, "far", "away", "uid-gone", "octo/hello", 7)
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    world.daytona.plant(NAME, gone.labels(NAME, 1))
    world.daytona.witness = judge
    (row,) = world.daytona.live()
    row.foreign = False
    before = row.view
    world.operators[0].line.faults = {"read": fate}
    create(world)
    world.live(10.0)
    body = world.kube.find(*PLACE)
    assert body is not None
    said = next(each for each in body["status"]["conditions"] if each["type"] == "Synced")
    assert (said["status"], said["reason"]) == ("False", "HolderUnknown")
    assert "API server does not show far/away" in said["message"]
    assert "Daytona" not in said["message"]
    assert row.view == before, "nothing is proven, so nothing is changed"
    world.settle()
    assert [each.view.id for each in world.daytona.live()] == [before.id]
