"""Settings in force: the last good ones stay, the freeze stands apart, everything is told once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from tests.fakes.clock import FakeClock, FakeTime
from tests.fakes.kept_logs import kept_logs

from issuesandbox.domain.flags import Flag
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.entry.setting_fields import names
from issuesandbox.entry.tuned import attach, begin, build_tuning
from issuesandbox.ports.configuration import Opinion, Stored
from issuesandbox.ports.errors import IssueSandboxError, NotFound
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
    """A cluster with one setting; who follows it is told of every change."""

    stored: Stored = field(default_factory=Stored)
    good: Mapping[str, str] = field(default_factory=dict)
    opinions: list[Opinion] = field(default_factory=list)
    events: list[EventNote] = field(default_factory=list)
    installed: bool = True
    reports: int = 0
    followed: bool = False
    follower: Callable[[Mapping[str, str]], None] = lambda _: None
    frost: Callable[[str | None], None] = lambda _: None

    async def read(self) -> Stored:
        return self.stored

    async def follow(
        self, settings: Callable[[Mapping[str, str]], None], freeze: Callable[[str | None], None]
    ) -> None:
        self.follower, self.frost, self.followed = settings, freeze, True
        await asyncio.Event().wait()

    async def accepted(self) -> Mapping[str, str]:
        return self.good

    async def report(self, opinion: Opinion) -> None:
        self.reports += 1
        if not self.installed:
            raise NotFound("no such ConfigMap")
        self.opinions.append(opinion)

    async def note(self, event: EventNote) -> None:
        self.events.append(event)

    def put(self, **settings: str) -> None:
        self.stored = Stored(settings)


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
def time() -> FakeTime:
    return FakeTime()


@pytest_asyncio.fixture
async def tuning(cluster: StoredInMemory, heard: Heard, time: FakeTime) -> Tuning[int]:
    tuning = Tuning(cluster, parse, FakeClock(time))
    await tuning.start()
    tuning.listen(heard.listeners())
    return tuning


async def take(tuning: Tuning[Any], **settings: str) -> None:
    tuning.take(settings)
    await tuning.refresh()


async def test_a_change_is_told_once(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    assert tuning.current == 1
    for _ in range(3):
        await take(tuning, number="2")
    assert tuning.current == 2
    assert heard.changes == [2]
    assert [each.valid for each in cluster.opinions] == [True]


async def test_wrong_settings_leave_the_last_good_ones_and_are_reported_once(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    await take(tuning, number="2")
    for _ in range(3):
        await take(tuning, number="two")
    assert tuning.current == 2
    assert tuning.problem == "number: must be a number"
    assert heard.changes == [2]
    assert [(each.valid, each.accepted) for each in cluster.opinions] == [
        (True, {"number": "2"}),
        (False, {"number": "2"}),
    ]
    assert [(each.reason, each.warning) for each in cluster.events] == [("InvalidSettings", True)]
    await take(tuning, number="3")
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
    tuning.take({"number": "two"})
    tuning.freeze("quota incident")
    seen = [(tuning.frozen, list(heard.freezes))]  # in force before anybody had time to tell
    await tuning.refresh()
    tuning.freeze(None)
    await tuning.refresh()
    assert [*seen, (tuning.frozen, heard.freezes)] == [
        ("quota incident", [True]),
        (None, [True, False]),
    ]
    assert [each.reason for each in cluster.events] == ["Frozen", "InvalidSettings", "Unfrozen"]


async def test_what_the_cluster_tells_is_in_force_and_reported_without_waiting_for_a_tick(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    running = asyncio.create_task(tuning.run(timedelta(hours=1)))
    await until(lambda: cluster.followed and len(cluster.opinions) == 1)
    cluster.frost("quota incident")
    cluster.follower({"number": "5"})
    assert (tuning.current, heard.freezes) == (5, [True])
    await until(lambda: len(cluster.opinions) == 2)
    assert [each.reason for each in cluster.events] == ["Frozen", "Accepted"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def test_only_the_replica_in_charge_reports_and_a_new_one_catches_up(
    cluster: StoredInMemory, heard: Heard, tuning: Tuning[int]
) -> None:
    heard.in_charge = False
    await take(tuning, number="two")
    assert cluster.opinions == []
    heard.in_charge = True
    await tuning.refresh()
    assert [each.valid for each in cluster.opinions] == [False]


async def test_what_is_unwise_holds_but_is_told(
    cluster: StoredInMemory, tuning: Tuning[int]
) -> None:
    await take(tuning, number="100")
    assert tuning.current == 100
    assert [(each.valid, each.reason, each.message) for each in cluster.opinions] == [
        (True, "AcceptedWithWarnings", "that is a lot")
    ]
    assert [(each.message, each.warning) for each in cluster.events] == [("that is a lot", True)]


async def test_a_missing_place_for_reports_stops_nothing_and_is_used_once_it_is_there(
    cluster: StoredInMemory, tuning: Tuning[int], time: FakeTime
) -> None:
    cluster.installed = False
    for _ in range(5):
        await take(tuning, number="100")
    assert (tuning.current, cluster.reports) == (100, 1)
    cluster.installed = True
    time.seconds += 60
    await tuning.refresh()
    assert [each.message for each in cluster.opinions] == ["that is a lot"]
    assert len(cluster.events) == 1


ENVIRONMENT = {"DAYTONA_API_KEY": "dtn-secret-value"}


async def test_a_setting_that_needs_a_restart_is_said_to_until_the_restart(
    cluster: StoredInMemory,
) -> None:
    cluster.put(ISSUESANDBOX_LOG_LEVEL="DEBUG", ISSUESANDBOX_SHARDS="4")
    with kept_logs():
        tuning = build_tuning(cluster, FakeClock(FakeTime()), ENVIRONMENT)
        settings = await begin(tuning)
        assert logging.getLogger().level == logging.DEBUG
        assert settings.shards == 4
        attach(tuning, settings, Listeners(), ENVIRONMENT)
        await tuning.refresh()
        await take(tuning, ISSUESANDBOX_SHARDS="2", ENABLE_HEALTH_PROBE="false")
    assert not tuning.current.flags.percent[Flag.HEALTH_PROBE]
    assert [each.message for each in cluster.opinions] == [
        "All settings are in force.",
        "ISSUESANDBOX_SHARDS takes effect at the next start of the operator",
    ]


async def test_stored_settings_complete_an_environment_that_is_none_by_itself(
    cluster: StoredInMemory,
) -> None:
    cluster.put(AGENT_MAX_WAIT_TIME_MS="900000")
    environment = {**ENVIRONMENT, "AGENT_INACTIVITY_TIMEOUT_MS": "800000"}
    tuning = build_tuning(cluster, FakeClock(FakeTime()), environment)
    assert (await tuning.start()).agent_inactivity_ms == 800_000


NONSENSE = ("{", "no\x00thing", '["x"]', "-1", "9" * 5000, "[" * 100_000, "\u2028", '{"a": {}}')


@pytest.mark.parametrize("name", names())
async def test_nonsense_in_a_setting_ends_nothing_and_is_taken_or_refused_as_a_whole(
    cluster: StoredInMemory, name: str
) -> None:
    with kept_logs():
        tuning = build_tuning(cluster, FakeClock(FakeTime()), ENVIRONMENT)
        good = await tuning.start()
        for text in NONSENSE:
            await take(tuning, **{name: text})
            if tuning.problem is not None:
                assert name in tuning.problem
                assert tuning.current == good
                assert cluster.opinions[-1].accepted == {}
            await take(tuning)


async def test_a_flaw_in_the_reading_of_settings_ends_nothing_and_shows_no_value(
    cluster: StoredInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuning = build_tuning(cluster, FakeClock(FakeTime()), ENVIRONMENT)
    good = await tuning.start()

    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted-value")

    monkeypatch.setattr("issuesandbox.entry.tuned.load_settings", broken)
    await take(tuning, ISSUESANDBOX_SHARDS="2")
    assert tuning.current == good
    assert tuning.problem == "the settings cannot be read (ZeroDivisionError)"
