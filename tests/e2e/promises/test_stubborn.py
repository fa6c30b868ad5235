"""Sandboxes that do not go, or go by themselves: told, bounded, and with a way out."""

from __future__ import annotations

from operator_stage import Stage

REFUSED = {"kind": "sandbox.delete", "fault": "status", "status": 409}
BUSY = {**REFUSED, "message": "Sandbox state change in progress"}


async def running(stage: Stage, **timings: str) -> str:
    """Return the sandbox of a resource that runs."""
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(**timings))
    await stage.apply("one")
    return str((await stage.until_phase("one", "Idle"))["sandbox"]["id"])


async def test_a_deletion_that_is_stuck_says_so_and_can_be_let_go_by_hand(stage: Stage) -> None:
    # R59
    sandbox = await running(stage, deletion_stuck="1s", deletion_pause="1s")
    await stage.fault(**BUSY)
    await stage.delete("one")

    async def stuck() -> bool:
        return (await stage.condition("one", "DeletionStuck")).get("status") == "True"

    await stage.until(stuck, "DeletionStuck")
    told = (await stage.condition("one", "DeletionStuck"))["message"]
    assert "issuesandbox.dev/force-finalize=true" in told
    assert [each["id"] for each in await stage.sandboxes()] == [sandbox]
    forced = {"issuesandbox.dev/force-finalize": "true"}
    # The administrator takes the sandbox over; for the checker it is an orphan from now on.
    stage.guard.lapse("no-orphan")
    await stage.patch("one", {"metadata": {"annotations": forced}})
    await stage.until_gone("one")
    assert [each["id"] for each in await stage.sandboxes()] == [sandbox], "nobody deleted it"


async def test_what_cannot_be_deleted_or_started_is_left_for_another(stage: Stage) -> None:
    # R12, R24: side by side, since each waits for the same limits.
    await stage.start_operator(
        ISSUESANDBOX_TIMINGS=stage.timings(deletion_stuck="1s", deletion_pause="500ms")
    )
    names = ("refused", "hidden", "destroying", "unstartable")
    for number, name in enumerate(names, 1):
        await stage.apply(name, number)
    refused, hidden, destroying, unstartable = [
        str((await stage.until_phase(name, "Idle"))["sandbox"]["id"]) for name in names
    ]
    await stage.fault(**BUSY, sandbox=refused)
    for each in (hidden, destroying):
        await stage.fault(kind="sandbox.delete", fault="kept_name", sandbox=each)
        await stage.fault(kind="sandbox.delete", fault="stuck_transition", sandbox=each)
    await stage.fault(kind="sandbox.start", fault="status", status=400, sandbox=unstartable)
    for each in (refused, hidden):
        planted = {"state": "error", "reason": "planted"}
        await stage.admin("POST", f"sandboxes/{each}/state", planted)
    await stage.daytona_delete(destroying)
    resting = {"state": "stopped", "desired": "stopped"}
    await stage.admin("POST", f"sandboxes/{unstartable}/state", resting)

    told: set[str] = set()

    async def all_told() -> bool:
        for name in ("hidden", "destroying"):
            if (await stage.condition(name, "Synced")).get("reason") == "NameTaken":
                told.add(name)
        return len(told) == 2

    await stage.until(all_told, "both to say that the name is taken")

    async def moved() -> bool:
        found = [(await stage.status(name))["sandbox"].get("name") for name in names[:3]]
        return found == [f"claude-issue-{number}-g2" for number in (1, 2, 3)]

    await stage.until(moved, "the second generation of the names")
    for name in names:
        status = await stage.until_phase(name, "Idle")
        assert status["sandbox"]["id"] not in (refused, hidden, destroying, unstartable)
    assert len(await stage.calls("sandbox.start")) == 2
    retired = [each["id"] for each in (await stage.status("refused"))["retired"]]
    assert retired == [refused]
    await stage.clear_faults()

    async def confirmed() -> bool:
        return bool((await stage.status("refused"))["retired"][0].get("goneAt"))

    await stage.until(confirmed, "the first one to be gone after all")


async def test_while_too_many_are_broken_none_is_replaced(stage: Stage) -> None:
    await stage.start_operator()
    names = [f"issue-{number}" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        await stage.apply(name, number)
    before = [str((await stage.until_phase(name, "Idle"))["sandbox"]["id"]) for name in names]
    # All from one moment to the next, as an outage of Daytona's machines does it.
    await stage.fault(kind="sandbox.get", fault="status", status=503)
    for sandbox in before:
        await stage.admin("POST", f"sandboxes/{sandbox}/state", {"state": "error", "reason": "x"})
    lists = len(await stage.calls("sandbox.list"))

    async def listed() -> bool:
        return len(await stage.calls("sandbox.list")) > lists

    await stage.until(listed, "the fleet view to show them")
    await stage.clear_faults()

    async def held() -> bool:
        return {(await stage.condition(name, "Ready")).get("reason") for name in names} == {
            "BreakerOpen"
        }

    await stage.until(held, "all to be held by the breaker")
    # Nor by an operator that has just begun and cannot tell how many they are.
    assert await stage.operators.pop().stop() == 0
    await stage.fault(kind="sandbox.list", fault="status", status=503)
    looks = len(await stage.calls("sandbox.get"))
    stage.spawn_operator()

    async def looked() -> bool:
        return len(await stage.calls("sandbox.get")) >= looks + 2 * len(names)

    await stage.until(looked, "all to be looked at again")
    assert await stage.calls("sandbox.delete") == []
    await stage.clear_faults()
    for sandbox in before:
        healthy = {"state": "started", "desired": "started"}
        await stage.admin("POST", f"sandboxes/{sandbox}/state", healthy)
    for name, sandbox in zip(names, before, strict=True):
        assert (await stage.until_phase(name, "Idle"))["sandbox"]["id"] == sandbox
