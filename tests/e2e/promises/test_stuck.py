"""Transitions that never end, and answers without a state: the table's action follows, and is told.

At most three are stuck at a time: of more, the breaker would replace none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest_asyncio
from operator_stage import Stage

from issuesandbox.api.names import SETTINGS_MAP
from issuesandbox.clock import SystemClock

# Every wait of the table ends soon.
SHORT = {
    f"{name}_limit": "1s"
    for name in ("queue", "build", "pull", "create", "start", "restore", "reshape", "stop")
}


@pytest_asyncio.fixture
async def impatient(stage: Stage) -> Stage:
    """A Daytona that does not keep its callers waiting for what is stuck."""
    await stage.admin("PATCH", "settings", {"timings": {"answer_hold": 0.2}})
    return stage


async def start(stage: Stage, **timings: str) -> None:
    changed = stage.timings(**{**SHORT, **timings})
    # Also stored, so that `why` goes by them as it does in production.
    await stage.api(
        "POST",
        f"/api/v1/namespaces/{stage.namespace}/configmaps",
        {"metadata": {"name": SETTINGS_MAP}, "data": {"ISSUESANDBOX_TIMINGS": changed}},
    )
    await stage.start_operator(ISSUESANDBOX_TIMINGS=changed)


async def idle(stage: Stage, name: str, number: int, **spec: Any) -> str:
    """Return the sandbox of a new resource, once it runs."""
    await stage.apply(name, number, **spec)
    return str((await stage.until_phase(name, "Idle"))["sandbox"]["id"])


async def stick(stage: Stage, verb: str, sandbox: str, state: str | None = None) -> None:
    """Let the next such call begin a transition that never ends: at its first step, or later."""
    kind = f"sandbox.{verb}"
    await stage.fault(kind=kind, fault="stuck_transition", sandbox=sandbox, state=state, count=1)


async def put(stage: Stage, sandbox: str, state: str) -> None:
    await stage.admin("POST", f"sandboxes/{sandbox}/state", {"state": state})


async def until_told(stage: Stage, name: str, reason: str, words: str) -> None:
    async def told() -> bool:
        ready = await stage.condition(name, "Ready")
        return (ready.get("status"), ready.get("reason")) == ("False", reason) and (
            words in ready["message"]
        )

    await stage.until(told, f"{name} to be {reason}: {words}")


async def first_of(stage: Stage, name: str) -> str:
    """Wait for the first sandbox that is made under a name; return its id."""

    async def there() -> str | None:
        calls = await stage.calls("sandbox.create")
        return next((each["sandbox"] for each in calls if each["name"] == name), None)

    return str(await stage.until(there, f"a sandbox called {name}"))


async def until_refused(stage: Stage, sandbox: str) -> None:
    async def refused() -> bool:
        deletes = await stage.calls("sandbox.delete")
        return (sandbox, 409) in {(each["sandbox"], each["status"]) for each in deletes}

    await stage.until(refused, f"a delete of {sandbox} that Daytona refuses")


async def until_replaced(stage: Stage, name: str, old: str) -> dict[str, Any]:
    async def replaced() -> bool:
        status = await stage.status(name)
        retired = [each["id"] for each in status.get("retired", ()) if "goneAt" in each]
        return status["phase"] == "Idle" and retired == [old]

    await stage.until(replaced, f"{name} to have another sandbox, and the old one to be gone")
    return await stage.status(name)


async def made(stage: Stage) -> list[str]:
    """Return the names of all sandboxes that were ever made, sorted."""
    calls = await stage.calls("sandbox.create")
    return sorted(each["name"] for each in calls if each["effect"] == "created")


REFUSED = "Daytona refuses while another change is under way."


async def test_what_never_comes_up_is_replaced_once_daytona_gives_it_up(impatient: Stage) -> None:
    # R22, R24
    stage = impatient
    await start(stage)
    asleep = await idle(stage, "starting", 2)
    await stick(stage, "create", "claude-issue-1")
    await stick(stage, "start", asleep)
    await stick(stage, "create", "claude-issue-3")
    await stage.apply("creating", 1)
    await stage.apply("queued", 3, sandbox={"image": "alpine"})
    await put(stage, asleep, "stopped")
    names = ("creating", "starting")
    for name in names:
        await until_told(stage, name, "Replacing", f"Replacing the sandbox: {name}. {REFUSED}")
        said = await stage.why(name)
        assert "it wants to delete its sandbox" in said
        assert "which is over" in said
    old = {
        name: await first_of(stage, f"claude-issue-{each}") for each, name in enumerate(names, 1)
    }
    for sandbox in old.values():
        await until_refused(stage, sandbox)
    # What only waits for its build can be deleted at any time.
    queued = await first_of(stage, "claude-issue-3")
    await until_replaced(stage, "queued", queued)
    assert (await made(stage))[:2] == ["claude-issue-1", "claude-issue-2"], "none is made beside it"
    await stage.admin("POST", "advance", {"seconds": 900})
    for number, name in enumerate(names, 1):
        status = await until_replaced(stage, name, old[name])
        assert status["sandbox"]["name"] == f"claude-issue-{number}"
    assert len(await stage.sandboxes()) == 3
    assert await made(stage) == sorted([f"claude-issue-{number}" for number in (1, 2, 3)] * 2)


async def test_what_daytona_never_gives_up_is_left_for_another(impatient: Stage) -> None:
    # R12, R24
    stage = impatient
    await stage.admin("PATCH", "settings", {"timings": {"pulling_snapshot": 0.1}})
    await start(stage, deletion_stuck="1s", deletion_pause="500ms")
    frozen = await idle(stage, "resuming", 3, sandbox={"snapshot": "daytona-vm"})
    await stick(stage, "create", "claude-issue-1", "pulling_snapshot")
    await stick(stage, "create", "claude-issue-2", "building_snapshot")
    await stick(stage, "start", frozen)
    await stage.apply("pulling", 1)
    await stage.apply("building", 2, sandbox={"image": "alpine"})
    await put(stage, frozen, "paused")
    names = ("pulling", "building", "resuming")
    old = {
        name: await first_of(stage, f"claude-issue-{each}") for each, name in enumerate(names, 1)
    }
    for number, name in enumerate(names, 1):
        await until_refused(stage, old[name])
        status = await stage.until_phase(name, "Idle")
        assert status["sandbox"]["name"] == f"claude-issue-{number}-g2"
        assert [each["id"] for each in status["retired"]] == [old[name]]
        said = await stage.why(name)
        assert "because an earlier sandbox could not be deleted and kept its name" in said
        assert f"not confirmed gone: {old[name]}" in said
    for sandbox in old.values():
        await stage.admin("POST", f"sandboxes/{sandbox}/release", {})
    for name in names:
        await until_replaced(stage, name, old[name])
    assert len(await made(stage)) == len(await stage.sandboxes()) + 3 == 6


async def test_what_ends_its_transition_after_all_is_used_again(impatient: Stage) -> None:
    stage = impatient
    await start(stage)
    names = ("stopping", "pausing", "restoring")
    specs: tuple[dict[str, Any], ...] = ({}, {"sandbox": {"snapshot": "daytona-vm"}}, {})
    before = {
        name: await idle(stage, name, number, **spec)
        for number, (name, spec) in enumerate(zip(names, specs, strict=True), 1)
    }
    await stick(stage, "stop", before["stopping"])
    await stick(stage, "pause", before["pausing"])
    await stick(stage, "start", before["restoring"], "restoring")
    await stage.daytona_post(before["stopping"], "stop")
    await stage.daytona_post(before["pausing"], "pause")
    await put(stage, before["restoring"], "archived")
    for name in names:
        await until_told(stage, name, "Replacing", f"Replacing the sandbox: {name}. {REFUSED}")
    for sandbox in before.values():
        await stage.admin("POST", f"sandboxes/{sandbox}/release", {})
    for name, sandbox in before.items():
        assert (await stage.until_phase(name, "Idle"))["sandbox"]["id"] == sandbox
    assert len(await made(stage)) == 3
    assert {each["status"] for each in await stage.calls("sandbox.delete")} == {409}


async def test_what_nothing_is_proven_of_is_held_and_says_so(impatient: Stage) -> None:
    # R6
    stage = impatient
    await start(stage)
    names = ("resizing", "hibernating", "stopping")
    before = {name: await idle(stage, name, number) for number, name in enumerate(names, 1)}
    await stage.fault(kind="*", fault="unknown_state", sandbox=before["hibernating"])
    await stick(stage, "stop", before["stopping"])
    await put(stage, before["resizing"], "resizing")
    await stage.patch("stopping", {"spec": {"desiredState": "Stopped"}})
    for name in names:
        told = f"The sandbox stays {name}; it is left alone."
        await until_told(stage, name, "Stuck", told)
        assert told in await stage.why(name)
    assert await stage.phase("stopping") == "Stopping"
    await stage.clear_faults()
    await stage.admin("POST", f"sandboxes/{before['stopping']}/release", {})
    await put(stage, before["resizing"], "started")
    await stage.until_phase("stopping", "Stopped")
    for name in ("resizing", "hibernating"):
        assert (await stage.until_phase(name, "Idle"))["sandbox"]["id"] == before[name]
    assert await stage.calls("sandbox.delete") == []
    assert len(await stage.calls("sandbox.stop")) == 1
    assert len(await made(stage)) == 3


async def test_one_that_never_ends_being_destroyed_is_followed_until_it_is_gone(
    impatient: Stage,
) -> None:
    # R20
    stage = impatient
    await start(stage)
    old = await idle(stage, "one", 1)
    await stick(stage, "delete", old)
    await stage.daytona_delete(old)

    async def another() -> bool:
        status = await stage.status("one")
        return status["phase"] == "Idle" and status["sandbox"]["id"] != old

    await stage.until(another, "the next attempt")
    assert f"not confirmed gone: {old}" in await stage.why("one")
    assert (await stage.status("one"))["sandbox"]["name"] == "claude-issue-1"
    await stage.admin("POST", f"sandboxes/{old}/release", {})
    await until_replaced(stage, "one", old)
    assert len(await stage.calls("sandbox.delete")) == 1, "nobody deletes what is being destroyed"


async def test_an_answer_without_a_state_is_waited_out(impatient: Stage) -> None:
    # R6
    stage = impatient
    await start(stage, create_limit="1h")
    names = ("kept", "deleted", "stopped")
    before = {name: await idle(stage, name, number) for number, name in enumerate(names, 1)}
    await stage.fault(kind="*", fault="state_missing")
    for name in names:
        await until_told(stage, name, "Waiting", "The sandbox is without a state.")
        assert "state" not in (await stage.status(name))["sandbox"]
    said = await stage.why("kept")
    assert "may be without a state until" in said
    assert "after that: change nothing, ask again." in said
    await stage.delete("deleted")
    await stage.until_gone("deleted")
    await stage.patch("stopped", {"spec": {"desiredState": "Stopped"}})
    words = "Stopping the sandbox, as asked, though it is without a state"
    await until_told(stage, "stopped", "Stuck", words)
    assert words in await stage.why("stopped")
    assert [each["sandbox"] for each in await stage.calls("sandbox.stop")] == [before["stopped"]]
    assert await stage.phase("stopped") == "Stopping", "nobody saw it rest"
    await stage.clear_faults()
    await stage.until_phase("stopped", "Stopped")
    assert (await stage.until_phase("kept", "Idle"))["sandbox"]["id"] == before["kept"]
    assert len(await made(stage)) == 3
    (deleted,) = {each["sandbox"] for each in await stage.calls("sandbox.delete")}
    assert deleted == before["deleted"]


async def test_a_state_that_is_missing_for_a_moment_costs_nothing(impatient: Stage) -> None:
    # R6, R18: it ran for longer than anything may be without a state.
    stage = impatient
    await start(stage, create_limit="2s")
    before = await idle(stage, "one", 1)
    since = datetime.fromisoformat((await stage.status("one"))["sandbox"]["stateSince"])

    async def is_long_ago() -> bool:
        return SystemClock().now() - since > timedelta(seconds=3)

    await stage.until(is_long_ago, "the sandbox to have run for a while")
    await stage.fault(kind="*", fault="state_missing", sandbox=before, count=2)

    async def struck() -> bool:
        return await stage.admin("GET", "faults") == []

    await stage.until(struck, "a list and a look without a state")
    assert (await stage.until_phase("one", "Idle"))["sandbox"]["id"] == before
    assert await stage.calls("sandbox.delete") == []


async def test_one_that_shows_no_state_for_long_is_held_and_never_replaced(
    impatient: Stage,
) -> None:
    # R6, R24
    stage = impatient
    await start(stage)
    before = await idle(stage, "one", 1)
    await stage.fault(kind="*", fault="state_missing", sandbox=before)
    told = "The sandbox stays without a state; it is left alone."
    await until_told(stage, "one", "Stuck", told)
    assert told in await stage.why("one")
    looks = len(await stage.calls("sandbox.get"))

    async def looked() -> bool:
        return len(await stage.calls("sandbox.get")) >= looks + 3

    await stage.until(looked, "it to be looked at again and again")
    await stage.clear_faults()
    assert (await stage.until_phase("one", "Idle"))["sandbox"]["id"] == before
    assert await stage.calls("sandbox.delete") == []
    assert await made(stage) == ["claude-issue-1"]
