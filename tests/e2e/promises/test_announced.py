"""Resources whose maker announced their sandbox: asked for at once, and still never twice."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import datetime, timedelta
from typing import Any

import pytest
from operator_stage import CREATE_FAULTS, Stage, fault_id
from plain_api import create_namespace

from issuesandbox.clock import SystemClock

# Creation times are told in whole seconds.
TIMINGS = Stage.timings(newborn_margin="1s")
LEASES = "/apis/coordination.k8s.io/v1/namespaces"


async def in_charge(stage: Stage, home: str | None = None) -> None:
    """Start an operator and wait until whatever is made now was made under its lease."""
    await stage.start_operator(home, ISSUESANDBOX_TIMINGS=TIMINGS)

    async def long_enough() -> bool:
        leases = (await stage.api("GET", f"{LEASES}/{home or stage.namespace}/leases"))["items"]
        since = [
            datetime.fromisoformat(each["spec"]["acquireTime"])
            for each in leases
            if each["metadata"]["name"].endswith("leader")
        ]
        return bool(since) and SystemClock().now() >= max(since) + timedelta(seconds=2)

    await stage.until(long_enough, "the lease to be older than what comes")


async def test_nothing_is_written_before_the_create_of_what_its_maker_announced(
    stage: Stage,
) -> None:
    # R1, R5
    await in_charge(stage)
    await stage.apply("one", announced=True)
    status = await stage.until_phase("one", "Idle")
    assert len(await stage.created()) == 1
    assert "repeatedCreateAt" not in status["sandbox"], "nobody else can have sent it"
    assert (
        "issuesandbox.dev/first-create" not in (await stage.get("one"))["metadata"]["annotations"]
    )
    await stage.delete("one")
    await stage.until_gone("one")
    assert await stage.sandboxes() == []


async def test_three_operators_in_charge_at_once_make_one_sandbox(stage: Stage) -> None:
    # R1: correctness never rests on a lease, so each has one of its own
    homes = [f"{stage.namespace}-{letter}" for letter in "abc"]
    for home in homes:
        create_namespace(stage.access, home)
        stage.grant_rights(home)
    await asyncio.gather(*(in_charge(stage, home) for home in homes))
    await stage.apply("one", announced=True)
    await stage.until_phase("one", "Idle")
    assert len(await stage.created()) == 1


@pytest.mark.parametrize("fault", CREATE_FAULTS, ids=fault_id)
async def test_a_create_that_goes_wrong_in_any_way_ends_in_one_sandbox(
    stage: Stage, fault: dict[str, Any]
) -> None:
    # R79
    await in_charge(stage)
    await stage.fault(kind="sandbox.create", count=1, **fault)
    await stage.apply("one", announced=True)
    await stage.until_phase("one", "Idle")
    live = await stage.sandboxes()
    assert [each["name"] for each in live] == ["claude-issue-1"]
    assert (await stage.status("one"))["sandbox"]["id"] == live[0]["id"]


async def test_an_operator_killed_between_create_and_record_leaves_one_sandbox(
    stage: Stage,
) -> None:
    # R11
    await in_charge(stage)
    await stage.fault(kind="sandbox.create", fault="lost_answer", count=1)
    await stage.apply("one", announced=True)

    async def made() -> bool:
        return bool(await stage.created())

    await stage.until(made, "the create")
    victim = stage.operators.pop()
    os.kill(victim.pid, signal.SIGKILL)
    await victim.wait()
    await stage.start_operator(ISSUESANDBOX_TIMINGS=TIMINGS)
    await stage.until_phase("one", "Idle")
    assert [each["name"] for each in await stage.sandboxes()] == ["claude-issue-1"]
    assert len(await stage.created()) == 1


async def test_a_resource_deleted_while_its_create_is_in_flight_leaves_nothing(
    stage: Stage,
) -> None:
    # R58, R79
    await in_charge(stage)
    await stage.fault(kind="sandbox.create", fault="late_effect", delay=1.0, count=1)
    await stage.apply("one", announced=True)

    async def sent() -> bool:
        return bool(await stage.calls("sandbox.create"))

    await stage.until(sent, "the create")
    await stage.delete("one")
    await stage.until_gone("one")
    assert await stage.sandboxes() == []


async def test_a_queue_is_not_jumped_by_what_was_announced_while_nobody_was_in_charge(
    stage: Stage,
) -> None:
    # R87
    for number in (1, 2, 3):
        await stage.apply(f"issue-{number}", number, announced=True)
    await stage.start_operator(ISSUESANDBOX_TIMINGS=TIMINGS, ISSUESANDBOX_MAX_SANDBOXES="1")

    async def one_is_served_and_two_wait() -> bool:
        names = [f"issue-{number}" for number in (1, 2, 3)]
        waiting = [(await stage.condition(name, "Admitted")).get("reason") for name in names]
        phases = [(await stage.status(name)).get("phase") for name in names]
        return waiting.count("Queued") == 2 and phases.count("Idle") == 1

    await stage.until(one_is_served_and_two_wait, "one to be served and two to wait")
    assert len(await stage.created()) == 1
