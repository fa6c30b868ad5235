"""Each state that Daytona can show, put there behind the operator's back."""

from __future__ import annotations

import pytest
from operator_stage import Stage

# Limits small enough to see a transition that never ends be given up.
PATIENCE = {
    "create_limit": "1s",
    "start_limit": "1s",
    "stop_limit": "1s",
    "restore_limit": "1s",
    "pull_limit": "1s",
    "build_limit": "1s",
    "queue_limit": "1s",
    "recover_limit": "2s",
}


async def running(stage: Stage) -> str:
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(**PATIENCE))
    await stage.apply("one", recovery={"maxAttempts": 3})
    status = await stage.until_phase("one", "Idle")
    return str(status["sandbox"]["id"])


@pytest.mark.parametrize("state", ["stopped", "archiving", "archived", "paused"])
async def test_what_rests_is_started(stage: Stage, state: str) -> None:
    # R4, R8
    before = await running(stage)
    desired = "archived" if state == "archiving" else state
    await stage.admin("POST", f"sandboxes/{before}/state", {"state": state, "desired": desired})

    async def back() -> bool:
        status = await stage.status("one")
        return status["phase"] == "Idle" and status["counters"]["starts"] == 1

    await stage.until(back, "the start")
    assert (await stage.status("one"))["sandbox"]["id"] == before


async def test_a_recoverable_error_is_recovered_once(stage: Stage) -> None:
    # R8
    before = await running(stage)
    error = {"state": "error", "reason": "timeout while starting", "recoverable": True}
    await stage.admin("POST", f"sandboxes/{before}/state", error)

    async def back() -> bool:
        status = await stage.status("one")
        return status["phase"] == "Idle" and status["counters"]["recoveries"] == 1

    await stage.until(back, "the recovery")
    assert (await stage.status("one"))["sandbox"]["id"] == before


@pytest.mark.parametrize("state", ["error", "build_failed"])
async def test_what_is_proven_broken_is_replaced(stage: Stage, state: str) -> None:
    # R8, R20
    before = await running(stage)
    await stage.admin("POST", f"sandboxes/{before}/state", {"state": state, "reason": "planted"})

    async def replaced() -> bool:
        status = await stage.status("one")
        return status["phase"] == "Idle" and status["sandbox"]["id"] != before

    await stage.until(replaced, "the replacement")

    async def confirmed() -> bool:
        retired = (await stage.status("one"))["retired"]
        return [each["id"] for each in retired if each.get("goneAt")] == [before]

    await stage.until(confirmed, "the old one to be confirmed gone")
    assert [each["name"] for each in await stage.sandboxes()] == ["claude-issue-1"]


async def test_what_somebody_else_does_to_it_is_waited_for(stage: Stage) -> None:
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(**PATIENCE))
    states = ("resizing", "snapshotting", "forking")
    for number, state in enumerate(states, 1):
        await stage.apply(state, number)
    before = {name: (await stage.until_phase(name, "Idle"))["sandbox"]["id"] for name in states}
    for state, sandbox in before.items():
        await stage.admin("POST", f"sandboxes/{sandbox}/state", {"state": state})

    async def seen() -> bool:
        shown = [(await stage.status(name))["sandbox"]["state"] for name in states]
        return tuple(shown) == states

    await stage.until(seen, "the states to be seen")
    await stage.delete("forking")

    async def refused() -> bool:
        return 409 in {each["status"] for each in await stage.calls("sandbox.delete")}

    await stage.until(refused, "a delete that Daytona refuses")
    # The job behind the delete that it then accepts fails: nobody can see what is left of it.
    await stage.fault(kind="sandbox.delete", fault="failed_destroy")
    for sandbox in before.values():
        await stage.admin("POST", f"sandboxes/{sandbox}/state", {"state": "started"})
    await stage.until_gone("forking")
    for name in ("resizing", "snapshotting"):
        assert (await stage.until_phase(name, "Idle"))["sandbox"]["id"] == before[name]
    assert len(await stage.calls("sandbox.create")) == len(states)


async def test_a_state_nobody_knows_yet_changes_nothing(stage: Stage) -> None:
    # R6
    before = await running(stage)
    await stage.fault(kind="*", fault="unknown_state")

    async def strange() -> bool:
        state = (await stage.status("one"))["sandbox"]["state"]
        return state not in ("started", "starting", "creating")

    await stage.until(strange, "the strange state")
    lists = len(await stage.calls("sandbox.list"))

    async def later() -> bool:
        return len(await stage.calls("sandbox.list")) >= lists + 3

    await stage.until(later, "three more ticks")
    await stage.clear_faults()
    # Neither does a list that comes and goes, or that has an item nobody can read in it.
    await stage.fault(kind="sandbox.list", fault="flapping_list", delay=3600)
    await stage.fault(kind="sandbox.list", fault="poison_item", how="number")
    lists = len(await stage.calls("sandbox.list"))
    await stage.until(later, "three ticks with a bad list")
    await stage.clear_faults()
    status = await stage.until_phase("one", "Idle")
    assert status["sandbox"]["id"] == before
    changes = [each for each in await stage.journal() if each.get("effect") in ("deleted",)]
    assert changes == []
