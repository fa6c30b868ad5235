"""While Daytona cannot be trusted nothing is created or deleted, and later all goes on."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import timedelta
from typing import Any

import pytest
from operator_stage import Stage

from issuesandbox.domain.timings import Timings
from issuesandbox.local.daytona.config import DEFAULT_KEY

# Every limit and gap of `Timings` shrunk so far that an hour of them is two seconds. Ticks and
# time-outs of single calls are bound to the machine and shrink less.
SHRUNK = 1800
HOUR = 3600 / SHRUNK
LIMITS = (
    *("absence_gap", "organization_cache", "refused_check", "landing_margin", "queue_limit"),
    *("build_limit", "pull_limit", "create_limit", "start_limit", "restore_limit"),
    *("reshape_limit", "stop_limit", "recover_limit", "deletion_stuck", "deletion_limit"),
    *("deletion_pause", "orphan_age", "orphan_gap", "orphan_reshape"),
)
TICKS = {
    "fleet_tick": "100ms",
    "fleet_stale": "300ms",
    "unknown_check": "100ms",
    "reap_tick": "100ms",
    "read_timeout": "1s",
    "gate_patience": "100ms",
    "settings_tick": "100ms",
}
# What goes wrong, and what the conditions say then; a bad list alone leaves a GET to ask.
OUTAGES: dict[str, tuple[dict[str, Any], str | None]] = {
    "5xx": ({"kind": "*", "fault": "status", "status": 503}, "DaytonaUnreachable"),
    "no right": ({"kind": "*", "fault": "status", "status": 403}, "Unauthorized"),
    "bad key": ({"kind": "*", "fault": "status", "status": 401}, "Unauthorized"),
    "time-outs": ({"kind": "*", "fault": "slow", "delay": 1.3}, "DaytonaUnreachable"),
    "resets": ({"kind": "*", "fault": "reset"}, "DaytonaUnreachable"),
    "empty list": ({"kind": "sandbox.list", "fault": "stale_list", "delay": 3600}, None),
    "failing page": ({"kind": "sandbox.list", "fault": "failing_page", "page": 1}, None),
    "throttled": ({"kind": "*", "fault": "status", "status": 429, "retry_after": 1}, "Throttled"),
}
NAMES = ("issue-1", "issue-2", "issue-3")
CHANGES = {"created", "deleted", "stopped", "started", "recovered", "archived", "labelled"}


def an_hour_in_seconds() -> str:
    usual = Timings()
    limits = {name: getattr(usual, name) / SHRUNK for name in LIMITS}
    shrunk = {name: f"{limit // timedelta(milliseconds=1)}ms" for name, limit in limits.items()}
    return Stage.timings(**shrunk, **TICKS)


async def three_running(stage: Stage, **settings: str) -> set[str]:
    """Return three sandboxes that run under an operator with an hour of two seconds."""
    instant = dict.fromkeys(("creating", "starting", "stopping", "destroying"), 0.01)
    await stage.admin("PATCH", "settings", {"timings": instant})
    await stage.start_operator(ISSUESANDBOX_TIMINGS=an_hour_in_seconds(), **settings)
    for number, name in enumerate(NAMES, 1):
        await stage.apply(name, number)
    for name in NAMES:
        await stage.until_phase(name, "Idle")
    return {each["id"] for each in await stage.sandboxes()}


async def touch(stage: Stage) -> None:
    """Ask for a pass over each resource, and count it as a write."""
    mark = {"metadata": {"annotations": {"touched": secrets.token_hex(4)}}}
    await asyncio.gather(*(stage.patch(name, mark) for name in NAMES))


async def until_synced_says(stage: Stage, status: str, reason: str | None = None) -> None:
    async def told() -> bool:
        said = [await stage.condition(name, "Synced") for name in NAMES]
        return all(each["status"] == status and reason in (None, each["reason"]) for each in said)

    await stage.until(told, f"Synced to be {status} for {reason}")


async def says(stage: Stage, name: str, reason: str) -> bool:
    return (await stage.condition(name, "Synced")).get("reason") == reason


async def writes(stage: Stage) -> list[int]:
    return [await stage.guard.writes(name) for name in NAMES]


async def effects(stage: Stage, since: int) -> dict[str, list[str]]:
    """Return which sandboxes were changed since then, by what was done to them."""
    found: dict[str, list[str]] = {}
    for each in await stage.journal():
        if each["seq"] > since and each.get("effect") in CHANGES:
            found.setdefault(each["effect"], []).append(each["sandbox"])
    return found


async def served(stage: Stage, name: str) -> str:
    return str((await stage.until_phase(name, "Idle"))["sandbox"]["id"])


@pytest.mark.timeout(180)
async def test_an_hour_of_any_outage_changes_nothing(stage: Stage) -> None:
    # R18: neither for those that rest, nor for one that comes or one that is deleted meanwhile.
    before = await three_running(stage)
    await stage.apply("issue-10", 10)
    doomed, ends = "issue-10", await served(stage, "issue-10")
    for number, (outage, (fault, reason)) in enumerate(OUTAGES.items(), 11):
        happened, written = await stage.happenings(), await writes(stage)
        began, new = time.monotonic(), f"issue-{number}"
        await stage.fault(**fault)
        await asyncio.gather(touch(stage), stage.apply(new, number), stage.delete(doomed))
        if reason is not None:
            await until_synced_says(stage, "False", reason)
            await stage.until(lambda name=new, why=reason: says(stage, name, why), f"{new} to wait")
        # Not to wait for anything: the hour itself is what is tested.
        await asyncio.sleep(HOUR - (time.monotonic() - began))
        if reason is not None:
            assert await effects(stage, happened) == {}, outage
            assert await stage.get(doomed), f"{outage}: it was let go though its sandbox lives"
        (thrown,) = await stage.admin("GET", "faults")
        assert thrown["struck"] > 0, f"{outage}: nobody noticed it"
        await stage.clear_faults()
        await until_synced_says(stage, "True")
        made = await served(stage, new)
        await stage.until_gone(doomed)
        assert await effects(stage, happened) == {"created": [made], "deleted": [ends]}, outage
        # Our own touch, that Daytona is away, and that it is back; never to and fro. One more is
        # for a machine so busy that a call of its own is too slow.
        grown = [now - then for now, then in zip(await writes(stage), written, strict=True)]
        assert max(grown) <= 4, f"{outage}: the status was written {grown} times"
        doomed, ends = new, made
    assert {each["id"] for each in await stage.sandboxes()} == before | {ends}


async def test_a_key_of_another_organisation_proves_nothing(stage: Stage) -> None:
    # R18: neither what it does not show nor a namesake, from the moment the key is there.
    key = stage.folder / "daytona-key"
    key.write_text(DEFAULT_KEY)
    before = await three_running(stage, DAYTONA_API_KEY="", DAYTONA_API_KEY_FILE=str(key))
    await stage.plant(organization="other", name="claude-issue-1")
    written = await writes(stage)
    key.write_text("other-key")
    await until_synced_says(stage, "False", "WrongOrganization")
    # Nor is a first sandbox made where none of the others is.
    await stage.apply("issue-4", 4)
    await stage.until(lambda: says(stage, "issue-4", "WrongOrganization"), "issue-4 to wait")
    await asyncio.sleep(HOUR)
    grown = [now - then for now, then in zip(await writes(stage), written, strict=True)]
    assert max(grown) <= 1, f"the status was written {grown} times"
    await stage.delete("issue-1")
    await asyncio.sleep(HOUR)
    assert len(await stage.calls("sandbox.create")) == 3
    assert await stage.calls("sandbox.delete") == []
    assert await stage.get("issue-1"), "it was let go though its sandbox lives"
    key.write_text(DEFAULT_KEY)
    await stage.until_gone("issue-1")
    new = (await stage.until_phase("issue-4", "Idle"))["sandbox"]["id"]
    live = {each["id"] for each in await stage.sandboxes() if each["organizationId"] != "other"}
    assert live - before == {new}
    assert len(live) == 3


async def test_a_revoked_key_is_named_and_nothing_is_lost(stage: Stage) -> None:
    await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    await stage.fault(kind="*", fault="status", status=401)
    await stage.patch("one", {"spec": {"desiredState": "Stopped"}})

    async def told() -> bool:
        return (await stage.condition("one", "Synced")).get("reason") == "Unauthorized"

    await stage.until(told, "the condition")
    assert "DAYTONA_API_KEY" in (await stage.condition("one", "Synced"))["message"]
    await stage.clear_faults()
    after = await stage.until_phase("one", "Stopped")
    assert after["sandbox"]["id"] == before["sandbox"]["id"]
