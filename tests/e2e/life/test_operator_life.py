"""The life of one resource: created, kept running, stopped, deleted, through real processes."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta

from operator_stage import Stage


async def test_a_resource_gets_one_sandbox_with_our_name_labels_and_dead_man_switch(
    stage: Stage,
) -> None:
    # R1, R2, R5, R9
    await stage.start_operator()
    await stage.apply("one", 1)
    status = await stage.until_phase("one", "Idle")
    (sandbox,) = await stage.sandboxes()
    assert sandbox["name"] == status["sandbox"]["name"] == "claude-issue-1"
    assert sandbox["id"] == status["sandbox"]["id"]
    uid = (await stage.get("one"))["metadata"]["uid"]
    labels = {key.split("/")[1]: value for key, value in sandbox["labels"].items()}
    assert labels.pop("home"), "the operator's own namespace tells it from one with the same id"
    assert labels == {
        "installation": stage.namespace,
        "namespace": stage.namespace,
        "resource": "one",
        "uid": uid,
        "repository": "octo/hello",
        "number": "1",
        "name": "claude-issue-1",
        "attempt": "1",
    }
    shown = await stage.daytona_get(sandbox["id"])
    switch = ("autoStopInterval", "autoArchiveInterval", "autoDeleteInterval")
    assert [shown[name] for name in switch] == [60, 1440, 4320]
    life = datetime.fromisoformat(shown["autoDestroyAt"]) - datetime.fromisoformat(
        shown["createdAt"]
    )
    assert life == timedelta(days=7)
    assert (await stage.condition("one", "Ready"))["status"] == "True"
    assert status["observedGeneration"] == 1
    assert status["issue"] == "octo/hello#1"


async def test_issues_have_sandboxes_of_their_own(stage: Stage) -> None:
    # R14
    await stage.start_operator()
    for number in (2, 3):
        await stage.apply(f"issue-{number}", number)
    for number in (2, 3):
        await stage.until_phase(f"issue-{number}", "Idle")
    names = {each["name"] for each in await stage.sandboxes()}
    assert names == {"claude-issue-2", "claude-issue-3"}


async def test_a_sandbox_stopped_behind_our_back_is_started_again(stage: Stage) -> None:
    # R4
    await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    await stage.admin("POST", f"sandboxes/{before['sandbox']['id']}/stop", {})

    async def started_again() -> bool:
        status = await stage.status("one")
        return bool(status["counters"]["starts"]) and status["phase"] == "Idle"

    await stage.until(started_again, "the start")
    assert (await stage.status("one"))["sandbox"]["id"] == before["sandbox"]["id"]
    assert len(await stage.calls("sandbox.create")) == 1


async def test_a_sandbox_that_vanished_is_created_anew_under_the_same_name(stage: Stage) -> None:
    # R17, R19
    await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    await stage.admin("POST", "wipe", {})

    async def another() -> bool:
        status = await stage.status("one")
        changed = status["sandbox"].get("id") not in (None, before["sandbox"]["id"])
        return changed and status["phase"] == "Idle"

    await stage.until(another, "the new sandbox")
    status = await stage.status("one")
    assert status["sandbox"]["attempt"] == 2
    assert [each["id"] for each in status["retired"]] == [before["sandbox"]["id"]]
    assert [each["name"] for each in await stage.sandboxes()] == ["claude-issue-1"]


async def test_stopped_and_running_again_by_the_spec(stage: Stage) -> None:
    await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    await stage.patch("one", {"spec": {"desiredState": "Stopped"}})
    await stage.until_phase("one", "Stopped")
    assert [each["state"] for each in await stage.sandboxes()] == ["stopped"]
    await stage.patch("one", {"spec": {"desiredState": "Running"}})
    after = await stage.until_phase("one", "Idle")
    assert after["sandbox"]["id"] == before["sandbox"]["id"]


async def test_a_deleted_resource_takes_its_sandbox_along(stage: Stage) -> None:
    # R59
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    await stage.delete("one")
    await stage.until_gone("one")
    # That the finalizer held it until then is the checker's rule `finalizer-last`.
    assert await stage.sandboxes() == []


async def test_a_resource_that_orphans_leaves_its_sandbox(stage: Stage) -> None:
    await stage.start_operator()
    await stage.apply("one", deletionPolicy="Orphan")
    await stage.until_phase("one", "Idle")
    await stage.delete("one")
    await stage.until_gone("one")
    (sandbox,) = await stage.sandboxes()
    assert sandbox["state"] == "started"
    assert "issuesandbox.dev/installation" not in sandbox["labels"], "else it would be reaped"


async def test_an_operator_killed_and_restarted_goes_on_with_the_same_sandbox(
    stage: Stage,
) -> None:
    # R11
    first = await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    os.kill(first.pid, signal.SIGKILL)
    assert await first.wait() == -signal.SIGKILL
    stage.operators.remove(first)
    await stage.delete("one")
    await stage.start_operator()
    await stage.until_gone("one")
    assert await stage.sandboxes() == []
    created = [each for each in await stage.journal() if each.get("effect") == "created"]
    assert [each["sandbox"] for each in created] == [before["sandbox"]["id"]]


async def test_a_name_of_somebody_else_is_stepped_around_and_never_touched(stage: Stage) -> None:
    # R12, R88
    await stage.plant(name="claude-issue-1", labels={"team": "other"})
    await stage.start_operator()
    await stage.apply("one")
    status = await stage.until_phase("one", "Idle")
    assert status["sandbox"]["name"].startswith("claude-issue-1-")
    await stage.delete("one")
    await stage.until_gone("one")
    (other,) = await stage.sandboxes()
    assert (other["name"], other["state"]) == ("claude-issue-1", "started")


async def test_while_daytona_is_away_nothing_changes_and_the_status_says_so(stage: Stage) -> None:
    # R18
    await stage.start_operator()
    await stage.apply("one")
    before = await stage.until_phase("one", "Idle")
    calls = len(await stage.calls("sandbox.create"))
    await stage.fault(kind="*", fault="status", status=503)
    await stage.patch("one", {"spec": {"desiredState": "Stopped"}})

    async def told() -> bool:
        synced = await stage.condition("one", "Synced")
        return synced.get("reason") == "DaytonaUnreachable"

    await stage.until(told, "the condition")
    assert (await stage.status("one"))["sandbox"]["id"] == before["sandbox"]["id"]
    await stage.clear_faults()
    await stage.until_phase("one", "Stopped")
    assert len(await stage.calls("sandbox.create")) == calls


async def test_events_tell_the_story(stage: Stage) -> None:
    # R113
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")

    async def told() -> list[str]:
        path = f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events"
        items = (await stage.api("GET", path))["items"]
        ours = (each for each in items if each["regarding"]["name"] == "one")
        return [f"{each['reason']}: {each['note']}" for each in ours]

    story = ["Running: Creating sandbox claude-issue-1. The sandbox is running."]
    assert await stage.until(told, "an event") == story


async def test_what_happens_again_and_again_is_one_event_that_counts(stage: Stage) -> None:
    # R113
    await stage.start_operator()
    await stage.apply("one")
    for starts in range(1, 4):
        status = await stage.until_phase("one", "Idle")
        await stage.admin("POST", f"sandboxes/{status['sandbox']['id']}/stop", {})

        async def started_again(times: int = starts) -> bool:
            return (await stage.status("one"))["counters"].get("starts", 0) >= times

        await stage.until(started_again, f"start {starts}")

    async def counted() -> bool:
        path = f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events"
        items = (await stage.api("GET", path))["items"]
        counts = [each.get("series", {}).get("count") for each in items if told(each)]
        assert len(counts) <= 1, "the same thing was told as two events"
        return counts == [3]

    def told(event: dict[str, str]) -> bool:
        return event["reason"] == "Starting"

    await stage.until(counted, "the third start to be counted")
