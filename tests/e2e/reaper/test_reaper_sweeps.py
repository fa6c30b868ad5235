"""The reaper kills what nobody owns, and never anything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from reaper_stage import Stage

from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.api import names
from issuesandbox.domain.naming import installation_labels
from issuesandbox.domain.orphans import OrphanRules, Verdict
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.reaper import Fate, Outside, Reaper, Sweep, suspicion
from issuesandbox.ports.resources import ResourceKey


async def seasoned(stage: Stage, reaper: Reaper) -> Sweep:
    """Sweep a second time, a minute after the first."""
    await reaper.sweep()
    stage.clock.moved += 61
    return await reaper.sweep()


async def test_an_orphan_is_killed_after_all_gates_and_not_before(stage: Stage) -> None:
    # R80, R84
    orphan = await stage.plant("gone", "uid-gone")
    reaper = stage.reaper()
    first = await reaper.sweep()
    assert first.summary == {"found": 1, "killed": 0, "skipped": 1, "errors": 0}
    assert await stage.live() == {orphan}
    stage.clock.moved += 30
    await reaper.sweep()
    assert await stage.live() == {orphan}
    stage.clock.moved += 31
    last = await reaper.sweep()
    assert last.summary == {"found": 1, "killed": 1, "skipped": 0, "errors": 0}
    assert await stage.live() == set()
    assert (reaper.orphans, reaper.fates[Fate.KILLED]) == (1, 1)
    stage.clock.moved += 61
    assert (await reaper.sweep()).summary["found"] == 0


async def test_nothing_else_is_ever_touched(stage: Stage) -> None:
    # R88
    owner = await stage.create("one")
    await stage.plant("one", owner)
    await stage.plant("young", "uid-young", age=60)
    await stage.plant("else", "uid-else", labels={names.LABEL_INSTALLATION: "elsewhere"})
    await stage.plant("far", "uid-far", labels={names.LABEL_NAMESPACE: "not-watched"})
    await stage.plant("unclear", "", labels={names.LABEL_UID: ""})
    await stage.plant_raw(name="claude-issue-1", labels={"made": "by somebody else"})
    strange = await stage.plant("strange", "uid-strange")
    await stage.fault(fault="unknown_state", sandbox=strange)
    before = await stage.live()
    sweep = await seasoned(stage, stage.reaper())
    assert await stage.live() == before
    assert await stage.deletes() == 0
    verdicts = sorted(each.verdict for each in sweep.assessment.findings)
    assert verdicts == [
        Verdict.HELD,
        Verdict.HELD,
        Verdict.OUTSIDE,
        Verdict.OWNED,
        Verdict.UNCLEAR,
    ]


async def test_a_namesake_does_not_own_the_sandbox_of_its_predecessor(stage: Stage) -> None:
    await stage.create("one")
    orphan = await stage.plant("one", "uid-of-its-predecessor")
    assert orphan in await stage.live()
    assert (await seasoned(stage, stage.reaper())).summary["killed"] == 1


async def test_a_sandbox_that_was_adopted_in_the_last_moment_is_spared(stage: Stage) -> None:
    orphan = await stage.plant("old", "uid-old")
    reaper = stage.reaper()
    await reaper.sweep()
    owner = await stage.create("new")
    stage.clock.moved += 61
    # The list lags behind: it still shows the old labels.
    await stage.fault(fault="stale_list")
    labels = {
        **installation_labels(stage.installation),
        names.LABEL_NAMESPACE: stage.namespace,
        names.LABEL_RESOURCE: "new",
        names.LABEL_UID: owner,
    }
    await stage.sandboxes.relabel(orphan, labels)
    sweep = await reaper.sweep()
    assert [each.fate for each in sweep.treated] == [Fate.SPARED]
    assert await stage.live() == {orphan}


async def test_a_resource_that_only_its_own_get_shows_keeps_its_sandbox(stage: Stage) -> None:
    owner = await stage.create("one")
    owned = await stage.plant("one", owner)

    class Forgetful(KubeResources):
        """A list that leaves everybody out."""

        async def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
            yield frozenset()

    registry = Forgetful(stage.requests, stage.clock, reporter="test")
    rules = OrphanRules(stage.scope, Timings())
    reaper = Reaper(Outside(stage.sandboxes, registry, stage.clock), rules)
    sweep = await seasoned(stage, reaper)
    assert [(each.fate, each.why) for each in sweep.treated] == [
        (Fate.SPARED, "its resource exists after all")
    ]
    assert await stage.live() == {owned}


async def test_a_list_that_still_shows_the_dead_kills_nobody(stage: Stage) -> None:
    orphan = await stage.plant("gone", "uid-gone")
    reaper = stage.reaper()
    await reaper.sweep()
    stage.clock.moved += 61
    await stage.fault(fault="stale_list")
    await stage.admin("POST", f"sandboxes/{orphan}/destroy", {})
    sweep = await reaper.sweep()
    assert [(each.fate, each.why) for each in sweep.treated] == [
        (Fate.SPARED, "it is gone already")
    ]
    assert await stage.deletes() == 0


async def test_too_many_orphans_stop_every_kill(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        await stage.plant(f"gone-{number}", f"uid-{number}")
    reaper = stage.reaper()
    sweep = await seasoned(stage, reaper)
    assert sweep.assessment.breaker == reaper.breaker
    assert reaper.breaker == "4 of 4 sandboxes look like orphans, too many to believe"
    assert await stage.deletes() == 0
    said = [each for each in caplog.records if each.message == "sweep stopped"]
    assert len(said) == 1, "the same news is told once"


async def test_a_failing_page_of_sandboxes_kills_nobody(stage: Stage) -> None:
    owner = await stage.create("one")
    await stage.plant("gone", "uid-gone")
    labels = {
        **installation_labels(stage.installation),
        names.LABEL_NAMESPACE: stage.namespace,
        names.LABEL_RESOURCE: "one",
        names.LABEL_UID: owner,
    }
    await stage.plant_raw(name="owned-{n}", count=210, labels=labels, state="stopped")
    reaper = stage.reaper()
    await reaper.sweep()
    stage.clock.moved += 61
    await stage.fault(fault="failing_page", page=2)
    blind = await reaper.sweep()
    assert blind.assessment.breaker is not None
    assert blind.assessment.breaker.startswith("a list failed: Daytona answered 500")
    assert await stage.deletes() == 0
    await stage.admin("DELETE", "faults")
    assert (await reaper.sweep()).summary["killed"] == 1, "what was seen before still counts"


async def test_without_the_api_server_nobody_is_killed(stage: Stage) -> None:
    await stage.plant("gone", "uid-gone")
    away = stage.kubernetes("https://127.0.0.1:1")
    sweep = await seasoned(stage, stage.reaper(away))
    await away.close()
    assert sweep.assessment.breaker is not None
    assert "cannot be reached" in sweep.assessment.breaker
    assert await stage.deletes() == 0


async def test_without_the_definition_of_the_resource_nobody_is_killed(stage: Stage) -> None:
    await stage.plant("gone", "uid-gone")
    # To the API server an unknown path is what a missing definition is: 404 for everything.
    lost = stage.kubernetes(f"{stage.access.server}/nowhere")
    sweep = await seasoned(stage, stage.reaper(lost))
    await lost.close()
    assert sweep.assessment.breaker is not None
    assert sweep.assessment.breaker.startswith("IssueSandbox resources are not served")
    assert await stage.deletes() == 0


async def test_a_dry_run_goes_through_all_gates_and_kills_nobody(stage: Stage) -> None:
    # R88
    orphan = await stage.plant("gone", "uid-gone")
    sweep = await seasoned(stage, stage.reaper(dry_run=True))
    assert [each.fate for each in sweep.treated] == [Fate.WOULD]
    assert await stage.live() == {orphan}
    assert await stage.deletes() == 0


async def test_who_lost_the_lease_kills_nobody(stage: Stage) -> None:
    await stage.plant("gone", "uid-gone")
    sweep = await seasoned(stage, stage.reaper(may_sweep=lambda: False))
    assert [each.fate for each in sweep.treated] == [Fate.SPARED]
    assert await stage.deletes() == 0


async def test_one_failure_does_not_save_the_others(stage: Stage) -> None:
    # R84
    owner = await stage.create("one")
    for number in range(80):
        await stage.plant("one", owner, name=f"owned-{number}")
    orphans = [await stage.plant(f"gone-{n}", f"uid-{n}", name=f"gone-{n}") for n in range(14)]
    await stage.fault(fault="status", status=500, kind="sandbox.delete", sandbox=orphans[3])
    await stage.fault(fault="status", status=503, kind="sandbox.get", sandbox=orphans[11])
    busy = orphans[7]
    text = "Sandbox state change in progress"
    await stage.fault(fault="status", status=409, kind="sandbox.delete", sandbox=busy, message=text)
    sweep = await seasoned(stage, stage.reaper())
    assert sweep.summary == {"found": 14, "killed": 11, "skipped": 1, "errors": 2}
    left = await stage.live() & set(orphans)
    assert left == {orphans[3], orphans[7], orphans[11]}
    await stage.admin("DELETE", "faults")


async def test_the_loop_sweeps_by_itself(stage: Stage) -> None:
    orphan = await stage.plant("gone", "uid-gone")
    async with sweeping(stage, lambda: True), asyncio.timeout(10):
        while orphan in await stage.live():
            await asyncio.sleep(0.02)


async def test_the_loop_costs_nothing_while_nobody_is_suspected_or_another_is_in_charge(
    stage: Stage,
) -> None:
    await stage.plant("gone", "uid-gone")
    async with sweeping(stage, lambda: False):
        await asyncio.sleep(0.1)
    async with sweeping(stage, lambda: True, may_sweep=lambda: False):
        await asyncio.sleep(0.1)
    assert "sandbox.list" not in await stage.admin("GET", "journal")


async def test_whoever_the_fleet_view_shows_without_a_resource_is_suspected(stage: Stage) -> None:
    owner = await stage.create("one")
    await stage.plant("one", owner)
    await stage.plant("far", "uid-far", labels={names.LABEL_NAMESPACE: "not-watched"})
    cache = ResourceCache()
    fleet = Fleet(stage.sandboxes, stage.installation, Timings(), stage.clock)
    suspects = suspicion(fleet, cache, stage.scope)
    assert suspects(), "without a view everybody may be an orphan"
    await fleet.refresh(lambda uid: None)
    assert suspects()
    cache.put(json.loads(await stage.requests.send("GET", stage.path("one"))))
    assert not suspects()


@asynccontextmanager
async def sweeping(
    stage: Stage, suspects: Callable[[], bool], **options: Any
) -> AsyncIterator[None]:
    """Run the reaper's own loop, with short times."""
    timings = Timings(reap_tick=timedelta(milliseconds=20), orphan_gap=timedelta(milliseconds=100))
    task = asyncio.create_task(stage.reaper(timings=timings, **options).run(suspects))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_all_resources_are_listed_in_chunks_of_their_metadata_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {await stage.create(f"issue-{number}", number) for number in range(1, 6)}
    answers: list[bytes] = []
    send = stage.requests.send

    async def heard(*args: Any, **options: Any) -> bytes:
        answers.append(await send(*args, **options))
        return answers[-1]

    monkeypatch.setattr(stage.requests, "send", heard)
    monkeypatch.setattr("issuesandbox.adapters.kube.resources._CHUNK", 2)
    resources = KubeResources(stage.requests, stage.clock, reporter="test")
    chunks = [chunk async for chunk in resources.uids((stage.namespace,))]
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    assert {key.uid for chunk in chunks for key in chunk} == made
    assert len(answers) == len(chunks)
    assert not any(b'"spec"' in each for each in answers)
