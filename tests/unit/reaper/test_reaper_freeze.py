"""A freeze stops the reaper at once, whatever it has seen before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.names import (
    LABEL_ATTEMPT,
    LABEL_INSTALLATION,
    LABEL_NAMESPACE,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_RESOURCE,
    LABEL_UID,
)
from issuesandbox.domain.orphans import OrphanRules, Scope
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.rates import RateGate
from issuesandbox.engine.reaper import Outside, Reaper
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes

TIMINGS = Timings(reap_tick=timedelta(milliseconds=1))


class OneOrphan:
    """A Daytona with one old orphan, and a cluster without resources."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.frozen = self.freezes_late = False
        self.freezes_in_line = False
        self._gate = RateGate(FakeClock(self.time), TIMINGS)
        self.lists, self.deleted = 0, list[str]()
        labels = {
            LABEL_INSTALLATION: "ours",
            LABEL_NAMESPACE: "team",
            LABEL_RESOURCE: "gone",
            LABEL_UID: "uid-gone",
            LABEL_REPOSITORY: "octo/hello",
            LABEL_NUMBER: "7",
            LABEL_ATTEMPT: "2",
        }
        made = self.time.now() - timedelta(hours=1)
        self._orphan = SandboxView(
            id=SandboxId("orphan"), name="x", state="started", labels=labels, created_at=made
        )

    def reaper(self) -> Reaper:
        outside = Outside(cast("Sandboxes", self), self, FakeClock(self.time))
        rules = OrphanRules(Scope("ours"), TIMINGS)
        return Reaper(outside, rules, may_sweep=lambda: not self.frozen)

    async def list_owned(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        self.lists += 1
        return (self._orphan,)

    async def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
        yield frozenset[ResourceKey]()

    async def get(self, key: object) -> Any:
        if isinstance(key, ResourceKey):
            self.frozen = self.freezes_late
            raise NotFound("there is no such resource")
        return self._orphan

    async def delete(self, sandbox_id: str) -> None:
        # As the real one: it waits for its turn, and only then is the last look.
        self.frozen = self.frozen or self.freezes_in_line
        self._gate.last_look()
        self.deleted.append(sandbox_id)


async def run_for_a_moment(reaper: Reaper) -> None:
    """Let the reaper begin by itself: it sweeps first, and only then waits for its tick."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await reaper.run()


async def test_what_was_seen_before_a_freeze_is_not_killed_in_it() -> None:
    # R135
    world = OneOrphan()
    reaper = world.reaper()
    await reaper.sweep()
    world.frozen, sweeps = True, world.lists
    world.time.seconds += 2 * TIMINGS.orphan_gap.total_seconds()
    await run_for_a_moment(reaper)
    assert (world.lists, world.deleted) == (sweeps, []), "frozen, it does not even look"
    world.frozen = False
    await reaper.sweep()
    assert world.deleted == ["orphan"]


@pytest.mark.parametrize("moment", ["freezes_late", "freezes_in_line"])
async def test_a_freeze_that_comes_during_a_sweep_stops_its_kills(moment: str) -> None:
    world = OneOrphan()
    reaper = world.reaper()
    await reaper.sweep()
    world.time.seconds += 2 * TIMINGS.orphan_gap.total_seconds()
    setattr(world, moment, True)
    sweep = await reaper.sweep()
    assert world.deleted == []
    assert "frozen" in sweep.treated[0].why
