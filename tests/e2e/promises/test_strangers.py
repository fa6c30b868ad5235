"""Sandboxes of others stand where ours would, and are never touched, whatever goes wrong."""

from __future__ import annotations

import os
import signal
from typing import Any

from operator_stage import Stage

NAMES = ("one", "two", "three")
# What goes wrong meanwhile, each now and then.
FAULTS = (
    {"kind": "sandbox.create", "fault": "lost_answer", "count": 1},
    {"kind": "sandbox.create", "fault": "row_exists_400", "count": 1},
    {"kind": "sandbox.create", "fault": "late_effect", "delay": 0.5, "count": 1},
    {"kind": "sandbox.delete", "fault": "status", "status": 409, "count": 1},
    {"kind": "sandbox.delete", "fault": "status", "status": 500, "count": 1},
    {"kind": "sandbox.delete", "fault": "lost_answer", "count": 2},
    {"kind": "sandbox.*", "fault": "status", "status": 429, "retry_after": 0.2, "count": 2},
    {"kind": "sandbox.get", "fault": "status", "status": 401, "count": 2},
    {"kind": "sandbox.get", "fault": "status", "status": 403, "count": 2},
    {"kind": "sandbox.list", "fault": "failing_page", "page": 1, "probability": 0.2},
    {"kind": "sandbox.list", "fault": "stale_list", "probability": 0.3},
    {"kind": "sandbox.list", "fault": "flapping_list", "probability": 0.3},
    {"kind": "sandbox.get", "fault": "status", "status": 503, "probability": 0.2},
    {"kind": "sandbox.get", "fault": "state_missing", "probability": 0.2},
)


def labels(installation: str, repository: str, number: int) -> dict[str, str]:
    about = {
        "installation": installation,
        "namespace": "far",
        "resource": "away",
        "uid": "11111111-2222-3333-4444-555555555555",
        "repository": repository,
        "number": str(number),
        "name": f"claude-issue-{number}",
        "attempt": "1",
    }
    return {f"issuesandbox.dev/{name}": value for name, value in about.items()}


async def strangers(stage: Stage) -> dict[str, dict[str, Any]]:
    """Return all that is not ours as it is now, by its name."""
    ours = {(await stage.status(name)).get("sandbox", {}).get("id") for name in NAMES}
    kept = ("id", "name", "state", "desiredState", "labels", "autoStopInterval", "updatedAt")
    return {
        each["name"]: {field: each[field] for field in kept}
        for each in await stage.sandboxes()
        if each["id"] not in ours
    }


async def test_what_belongs_to_others_is_never_touched_under_any_fault(stage: Stage) -> None:
    # R12, R88
    await stage.plant(name="claude-issue-1", labels={"team": "other"})
    await stage.plant(name="claude-issue-2", labels=labels("theirs", "octo/hello", 2))
    await stage.plant(name="nobodys")
    timings = stage.timings(reap_tick="200ms", orphan_age="1s", orphan_gap="500ms")
    first = await stage.start_operator(ISSUESANDBOX_TIMINGS=timings)
    # One of ours, but of another repository's issue with the same number.
    await stage.apply("theirs", 3, issue={"repository": "octo/other"})
    await stage.until_phase("theirs", "Idle")
    before = await strangers(stage)
    assert set(before) == {"claude-issue-1", "claude-issue-2", "claude-issue-3", "nobodys"}
    for fault in FAULTS:
        await stage.fault(**fault)
    for number, name in enumerate(NAMES, 1):
        await stage.apply(name, number)
    for number, name in enumerate(NAMES, 1):
        status = await stage.until_phase(name, "Idle", 60)
        assert status["sandbox"]["name"].startswith(f"claude-issue-{number}-")
        verb = ("stop", "destroy", "state")[number - 1]
        broken = {"state": "error", "reason": "planted"} if verb == "state" else {}
        await stage.admin("POST", f"sandboxes/{status['sandbox']['id']}/{verb}", broken)
    stage.operators.remove(first)
    os.kill(first.pid, signal.SIGKILL)
    await first.wait()
    await stage.start_operator(ISSUESANDBOX_TIMINGS=timings)

    async def served_again() -> bool:
        known = [(await stage.status(name)).get("sandbox", {}).get("id") for name in NAMES]
        running = [each["id"] for each in await stage.sandboxes() if each["state"] == "started"]
        return all(each in running for each in known)

    await stage.until(served_again, "all three to be served again", 60)
    for name in NAMES:
        await stage.delete(name)
    for name in NAMES:
        await stage.until_gone(name, 60)
    # What is used up is not on the list any more.
    unused = [each for each in await stage.admin("GET", "faults") if not each["struck"]]
    assert unused == [], "nobody noticed it"
    assert await strangers(stage) == before
    assert len(await stage.sandboxes()) == len(before)
