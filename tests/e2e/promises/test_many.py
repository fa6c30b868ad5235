"""Many resources at once: a wiped platform, and a leader that goes."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from operator_stage import Stage

from issuesandbox.domain.sharding import shard_of

SHARDS = 16
# One repository for each shard.
REPOSITORIES = [
    next(f"octo/{n}" for n in range(1000) if shard_of(f"octo/{n}", SHARDS) == shard)
    for shard in range(SHARDS)
]


@pytest.mark.timeout(300)
async def test_a_wiped_platform_is_filled_again_without_an_error(stage: Stage) -> None:
    # R19, R29
    count = 200
    await stage.start_operator()
    await asyncio.gather(*(stage.apply(f"issue-{n}", n) for n in range(1, count + 1)))

    async def all_idle(attempt: int) -> bool:
        items = (await stage.api("GET", stage.path()))["items"]
        return all(
            each.get("status", {}).get("phase") == "Idle"
            and each["status"]["sandbox"].get("attempt") == attempt
            for each in items
        )

    await stage.until(lambda: all_idle(1), "200 sandboxes", 120)
    before = {each["id"] for each in await stage.sandboxes()}
    await stage.admin("POST", "wipe", {})
    await stage.until(lambda: all_idle(2), "200 new sandboxes", 120)
    after = {each["id"] for each in await stage.sandboxes()}
    assert len(after) == count
    assert not before & after
    items = await stage.api("GET", stage.path())
    events = await stage.api("GET", f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events")
    logs = "".join(each.log.read_text() for each in stage.operators)
    assert "sandbox is not running" not in f"{items}{events}{logs}".lower()


@pytest.mark.parametrize(
    ("number", "limit"), [(signal.SIGKILL, 20), (signal.SIGTERM, 3)], ids=["SIGKILL", "SIGTERM"]
)
async def test_a_standby_takes_over(stage: Stage, number: signal.Signals, limit: float) -> None:
    real = {"lease_duration": "15s", "lease_hold": "10s", "lease_retry": "2s"}
    settings = stage.timings(**real)
    leader = await stage.start_operator(ISSUESANDBOX_TIMINGS=settings)
    await stage.apply("before", 1)
    await stage.until_phase("before", "Idle")
    await stage.start_operator(ISSUESANDBOX_TIMINGS=settings)
    stage.operators.remove(leader)
    os.kill(leader.pid, number)
    killed_at = time.monotonic()
    await leader.wait()
    await stage.apply("after", 2)

    async def served() -> bool:
        return any(each.get("name") == "claude-issue-2" for each in await stage.journal())

    await stage.until(served, "the standby to act")
    took = time.monotonic() - killed_at
    print(f"served {took:.1f} s after {number.name}")
    assert took <= limit


async def one_per_shard(stage: Stage, first: int) -> None:
    """Let every shard have one more resource, and wait until all are served."""
    numbers = range(first, first + SHARDS)
    for number, repository in zip(numbers, REPOSITORIES, strict=True):
        await stage.apply(f"issue-{number}", number, issue={"repository": repository})
    for number in numbers:
        await stage.until_phase(f"issue-{number}", "Idle")


async def test_replicas_share_the_shards_and_the_rest_take_over_a_dead_ones(stage: Stage) -> None:
    settings = {"ISSUESANDBOX_SHARDS": str(SHARDS)}
    first = await stage.start_operator(**settings)
    second = await stage.start_operator(**settings)

    async def shared() -> bool:
        held = []
        for url in stage.probe_urls:
            async with stage.http.get(f"{url}/metrics") as answer:
                lines = (await answer.text()).splitlines()
            held.append({line for line in lines if 'lease="shard-' in line and " 1.0" in line})
        return all(held) and len(held[0] | held[1]) == SHARDS and not held[0] & held[1]

    await stage.until(shared, "both to have shards")
    await one_per_shard(stage, 1)
    acted = [each.log.read_text().count('"action":"create"') for each in (first, second)]
    assert min(acted) >= 1, f"one of them did nothing: {acted}"
    stage.operators.remove(second)
    os.kill(second.pid, signal.SIGKILL)
    await second.wait()
    await one_per_shard(stage, SHARDS + 1)
    created = [each for each in await stage.journal() if each.get("effect") == "created"]
    assert len(created) == 2 * SHARDS
