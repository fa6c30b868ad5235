"""Never two sandboxes for one issue, whatever races, crashes or lies."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest
from operator_stage import CREATE_FAULTS, Stage, fault_id
from plain_api import create_namespace


async def test_three_operators_that_all_act_and_fifty_events_make_one_sandbox(
    stage: Stage,
) -> None:
    # R1: correctness never rests on a lease, so each has one of its own
    homes = [f"{stage.namespace}-{letter}" for letter in "abc"]
    for home in homes:
        create_namespace(stage.access, home)
        stage.grant_rights(home)
    await asyncio.gather(*(stage.start_operator(home) for home in homes))
    await stage.apply("one")
    await asyncio.gather(
        *(
            stage.patch("one", {"metadata": {"annotations": {"touched": str(number)}}})
            for number in range(50)
        )
    )
    await stage.until_phase("one", "Idle")
    assert len(await stage.created()) == 1


async def test_two_resources_for_one_issue_never_share_or_double_the_sandbox(stage: Stage) -> None:
    # R13
    await stage.start_operator()
    await stage.apply("first", 5)
    await stage.until_phase("first", "Idle")
    await stage.apply("second", 5, issue={"repository": "OCTO/Hello"})

    async def refused() -> bool:
        return (await stage.condition("second", "Admitted")).get("reason") == "DuplicateIssue"

    await stage.until(refused, "the duplicate to be named")
    assert len(await stage.created()) == 1
    await stage.delete("second")
    await stage.until_gone("second")
    assert [each["state"] for each in await stage.sandboxes()] == ["started"]


async def test_a_leftover_of_a_gone_resource_is_adopted(stage: Stage) -> None:
    # R10, R12
    labels = {
        "installation": stage.namespace,
        "namespace": stage.namespace,
        "resource": "gone",
        "uid": "11111111-2222-3333-4444-555555555555",
        "repository": "octo/hello",
        "number": "9",
        "name": "claude-issue-9",
        "attempt": "1",
    }
    ours = {f"issuesandbox.dev/{name}": value for name, value in labels.items()}
    await stage.plant(name="claude-issue-9", labels=ours)
    await stage.start_operator()
    await stage.apply("again", 9)
    await stage.until_phase("again", "Idle")
    (sandbox,) = await stage.sandboxes()
    uid = (await stage.get("again"))["metadata"]["uid"]
    assert sandbox["labels"]["issuesandbox.dev/uid"] == uid
    assert (await stage.status("again"))["sandbox"]["id"] == sandbox["id"]


@pytest.mark.parametrize("fault", CREATE_FAULTS, ids=fault_id)
async def test_a_create_that_goes_wrong_in_any_way_ends_in_one_sandbox(
    stage: Stage, fault: dict[str, Any]
) -> None:
    # R79
    await stage.fault(kind="sandbox.create", count=1, **fault)
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    live = await stage.sandboxes()
    assert [each["name"] for each in live] == ["claude-issue-1"]
    assert (await stage.status("one"))["sandbox"]["id"] == live[0]["id"]


async def test_an_operator_killed_while_it_creates_leaves_one_sandbox(stage: Stage) -> None:
    # R11
    await stage.fault(kind="sandbox.create", fault="slow", delay=1.0, count=1)
    first = await stage.start_operator()
    await stage.apply("one")

    async def announced() -> bool:
        annotations = (await stage.get("one"))["metadata"].get("annotations", {})
        return "issuesandbox.dev/first-create" in annotations

    await stage.until(announced, "the announcement")
    os.kill(first.pid, signal.SIGKILL)
    assert await first.wait() == -signal.SIGKILL
    stage.operators.remove(first)
    await stage.start_operator()
    await stage.until_phase("one", "Idle")
    assert [each["name"] for each in await stage.sandboxes()] == ["claude-issue-1"]
    assert len(await stage.created()) == 1


async def test_a_resource_deleted_while_its_create_is_in_flight_leaves_nothing(
    stage: Stage,
) -> None:
    # R58, R79
    await stage.fault(kind="sandbox.create", fault="late_effect", delay=1.0, count=1)
    await stage.start_operator()
    await stage.apply("one")

    async def announced() -> bool:
        return "finalizers" in (await stage.get("one"))["metadata"]

    await stage.until(announced, "the finalizer")
    await stage.delete("one")
    await stage.until_gone("one")
    assert await stage.sandboxes() == []
