"""Every action leaves one log line that says for whom, on what sight and why."""

from __future__ import annotations

import logging

import pytest
from tests.fakes.daytona import Outage
from tests.fakes.world import World
from tests.unit.crash.crash_stories import (
    create,
    create_for_runs,
    delete,
    grow_old,
    succeed,
    want_stopped,
)
from tests.unit.crash.test_retired_sandboxes import with_one_that_lives_on
from tests.unit.reaper.test_reaper_freeze import TIMINGS, OneOrphan

FIELDS = ("uid", "issue", "attempt", "observed", "action", "reason")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="issuesandbox")
    return caplog


def lines(log: pytest.LogCaptureFixture) -> list[tuple[object, ...]]:
    """Return what was logged of actions, and that it was of our resource."""
    told = [each.__dict__ for each in log.records if "action" in each.__dict__]
    assert all((each["uid"], each["issue"]) == ("uid-1", "octo/hello#7") for each in told)
    return [tuple(each[name] for name in FIELDS[2:]) for each in told]


def test_the_whole_life_of_a_resource(log: pytest.LogCaptureFixture) -> None:
    # R112
    world = World()
    create(world)
    world.settle()
    delete(world)
    world.settle()
    assert lines(log) == [
        (1, "absent", "create", "Creating"),
        (1, "started", "delete", "Deleting"),
        (1, "absent", "release the finalizer", "Released"),
    ]


def test_a_resource_that_expires(log: pytest.LogCaptureFixture) -> None:
    world = World()
    create_for_runs(world)
    world.settle()
    succeed(world)
    world.settle()
    grow_old(world)
    assert (1, "absent", "delete the resource", "Expired") in lines(log)


def test_a_retired_sandbox(log: pytest.LogCaptureFixture) -> None:
    world = World()
    with_one_that_lives_on(world)
    log.clear()
    world.settle()
    # While it boots Daytona refuses.
    assert lines(log) == [(1, each, "delete", "Retired") for each in ("creating", "started")]


def test_a_stop_that_is_sent_without_a_look(log: pytest.LogCaptureFixture) -> None:
    world = World()
    create(world)
    world.settle()
    log.clear()
    world.daytona.outage = Outage.THROTTLED
    want_stopped(world)
    world.live(1.0)
    assert lines(log) == [(1, "unknown", "stop", "Throttled")]


async def test_an_orphan(log: pytest.LogCaptureFixture) -> None:
    world = OneOrphan()
    reaper = world.reaper()
    await reaper.sweep()
    world.time.seconds += 2 * TIMINGS.orphan_gap.total_seconds()
    await reaper.sweep()
    (told,) = [each.__dict__ for each in log.records if "action" in each.__dict__]
    shown = [told[name] for name in FIELDS[:-1]]
    assert shown == ["uid-gone", "octo/hello#7", 2, "started", "delete"]
    assert told["reason"]
