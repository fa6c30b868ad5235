"""What the feed says brings passes forward, of our own resources, and not too often."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

import pytest
import pytest_asyncio

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_UID
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.hearsay import Hearsay
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.state_events import StateEvent

KEY = ResourceKey("default", "one", "uid-1")
BODY = {
    "metadata": {"namespace": "default", "name": "one", "uid": "uid-1", "resourceVersion": "1"},
    "spec": {},
    "status": {"sandbox": {"id": "sb-1", "state": "started"}},
}


class Ear:
    """A hearsay with one resource, and those it woke."""

    def __init__(self, gap: float) -> None:
        self.woken: list[ResourceKey] = []
        cache = ResourceCache()
        cache.put(BODY)
        timings = Timings(event_gap=timedelta(seconds=gap))
        known = {KEY.uid: KEY}
        self.hearsay = Hearsay("ours", timings, cache, known.get, self.woken.append)

    def hears(
        self, state: str, sandbox: str = "sb-1", installation: str = "ours", uid: str = "uid-1"
    ) -> None:
        labels = {LABEL_INSTALLATION: installation, LABEL_UID: uid, "more": "labels"}
        self.hearsay.hear(StateEvent(sandbox, state, labels))

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def ear() -> AsyncIterator[Ear]:
    made = Ear(gap=0.05)
    task = asyncio.create_task(made.hearsay.run())
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_change_wakes_its_resource_at_once(ear: Ear) -> None:
    ear.hears("stopped")
    await ear.settle()
    assert ear.woken == [KEY]


@pytest.mark.parametrize(
    "event",
    [
        {"state": "started"},
        {"state": "stopped", "installation": "theirs"},
        {"state": "stopped", "uid": "nobody"},
        {"state": "stopped", "uid": ""},
    ],
    ids=["known already", "another installation", "no such resource", "no uid"],
)
async def test_what_is_no_news_or_not_ours_wakes_nobody(ear: Ear, event: dict[str, str]) -> None:
    ear.hears(**event)
    await ear.settle()
    assert ear.woken == []


async def test_the_state_of_another_sandbox_is_news(ear: Ear) -> None:
    ear.hears("started", sandbox="sb-2")
    await ear.settle()
    assert ear.woken == [KEY]


async def test_a_flood_wakes_once_per_gap(ear: Ear) -> None:
    ear.hears("stopping")
    await ear.settle()
    for _ in range(1000):
        ear.hears("stopped")
    await ear.settle()
    assert len(ear.woken) == 1
    async with asyncio.timeout(5):
        while len(ear.woken) < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert len(ear.woken) == 2


async def test_of_a_flood_only_the_last_word_counts(ear: Ear) -> None:
    ear.hears("stopping")
    ear.hears("started")
    await ear.settle()
    assert ear.woken == []
