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


async def test_what_is_broken_and_cannot_be_deleted_is_left_for_another_name(stage: Stage) -> None:
    sandbox = await running(stage, deletion_stuck="1s", deletion_pause="500ms")
    await stage.fault(**BUSY)
    broken = {"state": "error", "reason": "planted"}
    await stage.admin("POST", f"sandboxes/{sandbox}/state", broken)

    async def moved() -> bool:
        return (await stage.status("one"))["sandbox"].get("name") == "claude-issue-1-g2"

    # Two live for one issue: the broken one cannot go, which is what this rule is for.
    stage.guard.lapse("one-live-sandbox")
    await stage.until(moved, "the second generation of the name")
    await stage.until_phase("one", "Idle")
    retired = [each["id"] for each in (await stage.status("one"))["retired"]]
    assert retired == [sandbox]
    await stage.clear_faults()

    async def confirmed() -> bool:
        return bool((await stage.status("one"))["retired"][0].get("goneAt"))

    await stage.until(confirmed, "the first one to be gone after all")
    # A broken one that is deleted is hidden first, and destroyed later.
    names = [each["name"] for each in await stage.sandboxes()]
    assert [name for name in names if not name.startswith("DESTROYED_")] == ["claude-issue-1-g2"]


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
    assert await stage.calls("sandbox.delete") == []
    for sandbox in before:
        healthy = {"state": "started", "desired": "started"}
        await stage.admin("POST", f"sandboxes/{sandbox}/state", healthy)
    for name, sandbox in zip(names, before, strict=True):
        assert (await stage.until_phase(name, "Idle"))["sandbox"]["id"] == sandbox
