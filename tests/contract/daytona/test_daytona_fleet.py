"""The fleet view over the wire: every page of our own and nothing else, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from daytona_admin import KEY, Admin, eventually

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.api.names import LABEL_UID
from issuesandbox.clock import SystemClock
from issuesandbox.domain.naming import installation_labels
from issuesandbox.domain.sandbox import SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.fleet import Fleet
from issuesandbox.local.daytona.server import Simulator

# More than two pages.
OWN = 410


@pytest.fixture
async def fleet(simulator: Simulator, admin: Admin) -> AsyncIterator[Fleet]:
    ours, theirs = installation_labels("ours"), installation_labels("theirs")
    await admin.plant(name="own-{n}", count=OWN, labels={**ours, LABEL_UID: "uid-own"})
    await admin.plant(name="theirs-{n}", count=3, labels={**theirs, LABEL_UID: "uid-theirs"})
    await admin.plant(name="nobodys")
    sandboxes = DaytonaSandboxes(simulator.url, KEY, Timings())
    yield Fleet(sandboxes, "ours", Timings(), SystemClock())
    await sandboxes.close()


async def lists(admin: Admin) -> int:
    return len(await admin.journal(kind="sandbox.list"))


async def _more_than(admin: Admin, count: int) -> bool:
    return await lists(admin) > count


async def test_a_tick_costs_one_call_for_each_page_of_our_own(fleet: Fleet, admin: Admin) -> None:
    await fleet.refresh(lambda uid: None)
    assert await lists(admin) == 3
    view = fleet.view
    assert view is not None
    assert (view.size, set(view.by_uid)) == (OWN, {"uid-own"})
    assert len({each.id for each in view.by_uid["uid-own"]}) == OWN


@pytest.mark.parametrize("page", [1, 2, 3])
async def test_a_page_that_fails_voids_the_whole_view(
    fleet: Fleet, admin: Admin, page: int
) -> None:
    await fleet.refresh(lambda uid: None)
    before, woken = fleet.view, list[str]()
    await admin.call("POST", "/sandboxes/own-0/destroy")
    await admin.fault("failing_page", "sandbox.list", page=page, count=1)
    await fleet.refresh(woken.append)
    assert fleet.view is before, "neither a part nor an empty one"
    assert (fleet.failures, woken) == (1, [])
    await fleet.refresh(woken.append)
    assert fleet.view is not None
    assert (fleet.view.size, woken) == (OWN - 1, ["uid-own"])


async def test_who_was_looked_at_is_compared_with_the_next_view_once(
    fleet: Fleet, admin: Admin
) -> None:
    shown: dict[str, int] = {}

    def compare(uid: str, sandboxes: tuple[SandboxView, ...]) -> None:
        shown[uid] = len(sandboxes)

    await fleet.refresh(lambda uid: None)
    for uid in ("uid-own", "uid-never-listed"):
        fleet.expect(uid)
    await admin.fault("failing_page", "sandbox.list", page=1, count=1)
    await fleet.refresh(lambda uid: None, compare)
    assert shown == {}, "there is no view to compare with"
    await fleet.refresh(lambda uid: None, compare)
    assert shown == {"uid-own": OWN, "uid-never-listed": 0}
    shown.clear()
    await fleet.refresh(lambda uid: None, compare)
    assert shown == {}


async def test_what_is_known_to_be_missing_is_no_news_in_the_next_view(
    fleet: Fleet, admin: Admin
) -> None:
    woken: list[str] = []
    await fleet.refresh(woken.append)
    await admin.plant(name="more", labels={**installation_labels("ours"), LABEL_UID: "uid-more"})
    fleet.expect("uid-more", found=False)
    await fleet.refresh(woken.append)
    assert woken == ["uid-more"], "it is there after all"
    await admin.call("POST", "/sandboxes/more/destroy")
    fleet.expect("uid-more", found=False)
    fleet.expect("uid-never", found=False)
    await fleet.refresh(woken.append)
    assert woken == ["uid-more"], "whoever looked for them knows"


async def test_without_a_view_whoever_was_looked_at_looks_again(fleet: Fleet, admin: Admin) -> None:
    fleet.expect("uid-own")
    await admin.fault("failing_page", "sandbox.list", page=1, count=1)
    woken: list[str] = []
    await fleet.refresh(woken.append)
    assert woken == ["uid-own"]


async def test_a_view_cannot_be_changed(fleet: Fleet) -> None:
    await fleet.refresh(lambda uid: None)
    view = fleet.view
    assert view is not None
    with pytest.raises(TypeError):
        view.by_uid["uid-own"] = ()  # type: ignore[index]
    with pytest.raises(AttributeError):
        view.size = 0  # type: ignore[misc]


async def test_one_item_that_cannot_be_read_hides_no_other(fleet: Fleet, admin: Admin) -> None:
    await admin.fault("poison_item", "sandbox.list", how="type", count=1)
    await fleet.refresh(lambda uid: None)
    assert fleet.view is not None
    assert fleet.view.size == OWN - 1


async def test_only_one_list_is_under_way_however_slow_it_is(
    simulator: Simulator, admin: Admin
) -> None:
    await admin.fault("slow", "sandbox.list", delay=0.2)
    timings = replace(Timings(), fleet_tick=timedelta(milliseconds=20))
    sandboxes = DaytonaSandboxes(simulator.url, KEY, timings)
    fleet = Fleet(sandboxes, "ours", timings, SystemClock())
    running = asyncio.create_task(fleet.run(lambda uid: None))

    async def five() -> bool:
        fleet.hurry()
        return await lists(admin) >= 5

    try:
        await eventually(five)
    finally:
        await admin.clear()
        count = await lists(admin)
        # The one under way ends before the loop does.
        await eventually(lambda: _more_than(admin, count))
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await sandboxes.close()
    asked = await admin.journal(kind="sandbox.list")
    spans = [(each["at"] - each["dur_ms"] / 1000, each["at"]) for each in asked]
    assert all(end <= begin + 0.01 for (_, end), (begin, _) in pairwise(spans)), spans
