"""Settings in force: the last good ones stay, the freeze stands apart, everything is told once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from tests.fakes.clock import FakeClock, FakeTime
from tests.fakes.kept_logs import kept_logs

from issuesandbox.domain.flags import Flag
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.entry.tuned import build_tuning
from issuesandbox.ports.configuration import Opinion, Stored
from issuesandbox.ports.errors import IssueSandboxError, NotFound, Unavailable
from issuesandbox.ports.resources import EventNote


class BadNumber(IssueSandboxError):
    """What was stored is no number."""


def parse(stored: Mapping[str, str]) -> int:
    try:
        return int(stored.get("number", "1"))
    except ValueError:
        raise BadNumber("number: must be a number") from None


@dataclass
class StoredInMemory:
    """A cluster with one setting."""

    stored: Stored = field(default_factory=Stored)
    good: Mapping[str, str] = field(default_factory=dict)
    opinions: list[Opinion] = field(default_factory=list)
    events: list[EventNote] = field(default_factory=list)
    away: bool = False
    installed: bool = True

    async def read(self) -> Stored:
        if self.away:
            raise Unavailable("nobody answers")
        return self.stored

    async def accepted(self) -> Mapping[str, str]:
        return self.good

    async def report(self, opinion: Opinion) -> None:
        if not self.installed:
            raise NotFound("no such ConfigMap")
        self.opinions.append(opinion)

    async def note(self, event: EventNote) -> None:
        self.events.append(event)

    def put(self, **settings: str) -> None:
        self.stored = replace(self.stored, settings=settings)


@dataclass
class Heard:
    """What the listeners were told."""

    changes: list[int] = field(default_factory=list)
    freezes: list[bool] = field(default_factory=list)
    in_charge: bool = True

    def listeners(self) -> Listeners[int]:
        return Listeners(
            self.changes.append,
            self.freezes.append,
            lambda: self.in_charge,
            lambda number: ("that is a lot",) if number > 99 else (),
        )


@pytest.fixture
def cluster() -> StoredInMemory:
    return StoredInMemory()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def tuning(cluster: StoredInMemory, heard: Heard) -> Tuning[int]:
    return Tuning(cluster, parse, Timings(), FakeClock(FakeTime()), heard.listeners())


async def test_a_change_is_told_once(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    assert await tuning.start() == 1
    cluster.put(number="2")
    for _ in range(3):
        await tuning.refresh()
    assert tuning.current == 2
    assert heard.changes == [2]
    assert [each.valid for each in cluster.opinions] == [True]


async def test_wrong_settings_leave_the_last_good_ones_and_are_reported_once(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    cluster.put(number="2")
    await tuning.refresh()
    cluster.put(number="two")
    for _ in range(3):
        await tuning.refresh()
    assert tuning.current == 2
    assert tuning.problem == "number: must be a number"
    assert heard.changes == [2]
    assert [(each.valid, each.accepted) for each in cluster.opinions] == [
        (True, {"number": "2"}),
        (False, {"number": "2"}),
    ]
    assert [(each.reason, each.warning) for each in cluster.events] == [("InvalidSettings", True)]
    cluster.put(number="3")
    await tuning.refresh()
    assert tuning.current == 3
    assert cluster.opinions[-1].valid
    assert cluster.events[-1].reason == "Accepted"


async def test_a_restart_with_wrong_settings_goes_back_to_what_was_good(
    cluster: StoredInMemory, tuning: Tuning[int]
) -> None:
    cluster.put(number="two")
    cluster.good = {"number": "7"}
    assert await tuning.start() == 7
    await tuning.refresh()
    assert tuning.current == 7


async def test_the_freeze_holds_whatever_the_settings_look_like(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    cluster.stored = Stored({"number": "two"}, frozen="quota incident")
    await tuning.refresh()
    seen = [tuning.frozen]
    cluster.stored = Stored({"number": "two"})
    await tuning.refresh()
    assert [*seen, tuning.frozen] == ["quota incident", None]
    assert heard.freezes == [True, False]
    assert [each.reason for each in cluster.events] == ["Frozen", "InvalidSettings", "Unfrozen"]


async def test_an_outage_changes_nothing(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    cluster.stored = Stored({"number": "2"}, frozen="")
    await tuning.refresh()
    cluster.away = True
    await tuning.refresh()
    assert tuning.current == 2
    assert tuning.frozen == ""
    assert heard.freezes == [True]


async def test_only_the_replica_in_charge_reports_and_a_new_one_catches_up(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    heard.in_charge = False
    cluster.put(number="two")
    await tuning.refresh()
    assert cluster.opinions == []
    heard.in_charge = True
    await tuning.refresh()
    assert [each.valid for each in cluster.opinions] == [False]


async def test_what_is_unwise_holds_but_is_told(
    cluster: StoredInMemory, tuning: Tuning[int]
) -> None:
    cluster.put(number="100")
    await tuning.refresh()
    assert tuning.current == 100
    assert [(each.valid, each.reason, each.message) for each in cluster.opinions] == [
        (True, "AcceptedWithWarnings", "that is a lot")
    ]
    assert [(each.message, each.warning) for each in cluster.events] == [("that is a lot", True)]


async def test_a_missing_place_for_reports_stops_nothing(
    cluster: StoredInMemory, tuning: Tuning[int]
) -> None:
    cluster.installed = False
    cluster.put(number="2")
    await tuning.refresh()
    assert tuning.current == 2


async def test_a_setting_that_needs_a_restart_is_said_to(cluster: StoredInMemory) -> None:
    environment = {"DAYTONA_API_KEY": "dtn-secret-value"}
    with kept_logs():
        tuning = build_tuning(cluster, Timings(), FakeClock(FakeTime()), environment=environment)
        await tuning.refresh()
        cluster.put(ISSUESANDBOX_SHARDS="2", ENABLE_HEALTH_PROBE="false")
        await tuning.refresh()
    assert not tuning.current.flags.percent[Flag.HEALTH_PROBE]
    assert [each.message for each in cluster.opinions] == [
        "All settings are in force.",
        "ISSUESANDBOX_SHARDS takes effect at the next start of the operator",
    ]
