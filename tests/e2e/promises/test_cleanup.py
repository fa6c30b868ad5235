"""What becomes of a sandbox after its run, by outcome, and of the finished resource itself."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from operator_stage import Stage

from issuesandbox.clock import SystemClock


def ago(**span: float) -> str:
    moment: datetime = SystemClock().now() - timedelta(**span)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


async def finished(
    stage: Stage, outcome: str, ended: str, labels: dict[str, str] | None = None, **spec: Any
) -> str:
    """Bring a resource to the end of a run and return its sandbox; the run itself is written in."""
    await stage.apply("one", run={}, **spec)
    await stage.patch("one", {"metadata": {"labels": labels or {}}})

    async def booted() -> bool:
        return (await stage.status("one")).get("sandbox", {}).get("state") == "started"

    await stage.until(booted, "the sandbox to run")
    sandbox = str((await stage.status("one"))["sandbox"]["id"])
    run = {
        "id": "run-1",
        "phase": "Finished",
        "attempt": 1,
        "startedAt": ended,
        "finishedAt": ended,
        "outcome": outcome,
    }
    await stage.api("PATCH", f"{stage.path('one')}/status", {"status": {"run": run}})
    return sandbox


async def deletion(stage: Stage) -> dict[str, Any]:
    record: dict[str, Any] = (await stage.status("one")).get("sandboxDeletion", {})
    return record


async def test_success_deletes_the_sandbox_and_records_it(stage: Stage) -> None:
    # E2E-10, R89, R95, R96, R101, R132
    await stage.start_operator()
    sandbox = await finished(stage, "Succeeded", ago(seconds=1))

    async def recorded() -> bool:
        return (await deletion(stage)).get("success") is True

    await stage.until(recorded, "the deletion to be recorded")
    status = await stage.status("one")
    assert status["sandboxDeletion"]["sandboxId"] == sandbox
    assert status["summary"]["sandboxCleanup"] == {
        "attempted": True,
        "success": True,
        "skipped": False,
    }
    assert status["phase"] == "Succeeded"
    assert await stage.sandboxes() == []
    assert status["usage"]["cpu"] >= 1
    assert len(await stage.calls("sandbox.create")) == 1, "nothing is recreated after a run"


async def test_failure_keeps_the_sandbox_stopped_and_says_why(stage: Stage) -> None:
    # E2E-10, R90, R97, R132
    await stage.start_operator()
    sandbox = await finished(stage, "Failed", ago(seconds=1))

    async def stopped() -> bool:
        return [each["state"] for each in await stage.sandboxes()] == ["stopped"]

    await stage.until(stopped, "the stop")

    async def skipped() -> bool:
        return (await deletion(stage)).get("skipped") is True

    await stage.until(skipped, "the record")
    record = await deletion(stage)
    assert record["sandboxId"] == sandbox
    assert "Failed" in record["skipReason"]
    assert await stage.phase("one") == "Failed"


async def test_a_policy_may_have_the_sandbox_archived(stage: Stage) -> None:
    # R97
    await stage.start_operator()
    sandbox = await finished(stage, "Failed", ago(seconds=1), cleanup={"onFailure": "Archive"})

    async def archived() -> bool:
        shown = [(each["id"], each["state"]) for each in await stage.sandboxes()]
        told = (await stage.status("one"))["sandbox"].get("state")
        return shown == [(sandbox, "archived")] and told == "archived"

    await stage.until(archived, "the sandbox to be archived")
    assert len(await stage.calls("sandbox.archive")) == 1, "once is enough"
    assert await stage.phase("one") == "Failed"


async def test_what_was_kept_is_deleted_after_its_retention(stage: Stage) -> None:
    # R97
    await stage.start_operator()
    await finished(stage, "Cancelled", ago(hours=25))

    async def gone() -> bool:
        return (await deletion(stage)).get("success") is True

    await stage.until(gone, "the deletion")
    assert await stage.sandboxes() == []


async def test_a_stored_retention_counts_for_what_is_kept_already(stage: Stage) -> None:
    # R97, R104
    await stage.start_operator()
    await finished(stage, "Failed", ago(hours=2))

    async def retention() -> str:
        run = (await stage.status("one"))["run"]
        return str(run.get("effective", {}).get("cleanup", {}).get("retention"))

    async def kept() -> bool:
        return (await deletion(stage)).get("skipped") is True and await retention() == "24h"

    await stage.until(kept, "the sandbox to be kept")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "issuesandbox", "namespace": stage.namespace},
        "data": {"ISSUESANDBOX_CLEANUP_RETENTION": "1h"},
    }
    stage.access.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    async def gone() -> bool:
        return (await deletion(stage)).get("success") is True

    await stage.until(gone, "the deletion")
    assert await retention() == "1h"


async def test_a_deletion_that_fails_is_a_warning_and_goes_on(stage: Stage) -> None:
    # E2E-10, R92, R94, R132
    await stage.fault(kind="sandbox.delete", fault="status", status=500)
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(deletion_limit="2s"))
    await finished(stage, "Succeeded", ago(seconds=1))

    async def failed() -> bool:
        return bool((await deletion(stage)).get("error"))

    await stage.until(failed, "the error to be recorded")
    assert (await stage.status("one"))["run"]["outcome"] == "Succeeded"
    await stage.clear_faults()

    async def gone() -> bool:
        return (await deletion(stage)).get("success") is True

    await stage.until(gone, "the deletion")
    assert (await stage.status("one"))["run"]["outcome"] == "Succeeded"


async def test_a_finished_resource_goes_when_its_time_is_over_unless_it_is_kept(
    stage: Stage,
) -> None:
    # R138
    await stage.start_operator()
    await finished(stage, "Succeeded", ago(days=8))
    await stage.until_gone("one")
    assert await stage.sandboxes() == []


async def test_a_kept_resource_stays(stage: Stage) -> None:
    # R138
    await stage.start_operator()
    kept = {"issuesandbox.dev/keep": "true"}
    await finished(stage, "Succeeded", ago(days=8), labels=kept)

    async def cleaned() -> bool:
        return (await deletion(stage)).get("success") is True

    await stage.until(cleaned, "the cleanup")
    lists = len(await stage.calls("sandbox.list"))

    async def later() -> bool:
        return len(await stage.calls("sandbox.list")) >= lists + 4

    await stage.until(later, "four more ticks")
    assert await stage.get("one"), "its time is over, but it is kept"
    await stage.patch("one", {"metadata": {"labels": dict.fromkeys(kept)}})
    await stage.until_gone("one")
