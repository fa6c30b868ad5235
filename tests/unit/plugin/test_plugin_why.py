"""`kubectl isb why`: one answer for each thing a resource can wait for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from issuesandbox.entry.plugin.why import Surroundings, reasons

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def body(number: int = 7, **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "issuesandbox.dev/v1alpha1",
        "kind": "IssueSandbox",
        "metadata": {
            "namespace": "team",
            "name": f"issue-{number}",
            "uid": f"uid-{number}",
            "creationTimestamp": f"2029-12-31T00:00:{number:02}Z",
            "generation": 2,
        },
        "spec": {"issue": {"repository": "octo/hello", "number": number}},
        "status": status,
    }


def condition(kind: str, status: str, reason: str, message: str) -> dict[str, str]:
    at = {"lastTransitionTime": "2030-01-01T00:00:00Z"}
    return {"type": kind, "status": status, "reason": reason, "message": message, **at}


READY = condition("Ready", "False", "Waiting", "The sandbox is starting.")


def answer(resource: dict[str, Any], around: Surroundings | None = None) -> str:
    return "\n".join(reasons(resource, around))


def test_a_resource_nobody_looked_at_points_at_the_operator() -> None:
    assert "no operator has looked at it yet" in answer(body())


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("Admitted", "False", "RateLimited"),
        ("Synced", "False", "DaytonaUnreachable"),
        ("DeletionStuck", "True", "Deleting"),
    ],
)
def test_what_stands_in_the_way_is_named(kind: str, status: str, reason: str) -> None:
    conditions = [READY, condition(kind, status, reason, "This is why.")]
    told = answer(body(phase="Booting", conditions=conditions))
    assert told.startswith("octo/hello#7 is Booting: The sandbox is starting.")
    assert f"{kind} {reason}: This is why." in told


def test_open_steps_and_retired_sandboxes_are_told() -> None:
    told = answer(
        body(
            phase="Booting",
            conditions=[condition("Ready", "False", "Replacing", "Replacing the sandbox.")],
            intent={"kind": "Create", "at": "2030-01-01T00:00:00Z"},
            retired=[{"id": "old"}, {"id": "older", "goneAt": "2030-01-01T00:00:00Z"}],
        )
    )
    assert "it wants to create its sandbox" in told
    assert told.endswith("not confirmed gone: old.")


def test_the_place_in_the_queue_is_the_one_of_now() -> None:
    queued = condition("Admitted", "False", "Queued", "Number 9 waits: all 2 are in use.")
    holder = body(1, sandbox={"id": "box"})
    line = [body(number, conditions=[READY, queued]) for number in (2, 3, 4)]
    told = answer(line[1], Surroundings(NOW, others=[holder, *line]))
    assert "It is number 2 of 3 in the queue right now." in told


def test_freeze_pause_stop_and_refused_settings_are_told() -> None:
    resource = body(phase="Stopped", conditions=[READY], observedGeneration=1)
    resource["metadata"]["annotations"] = {"issuesandbox.dev/paused": "true"}
    resource["spec"] |= {"desiredState": "Stopped", "flags": {"healthProbe": False}}
    told = answer(resource, Surroundings(NOW, "quota incident", "no such setting"))
    assert "Everything is frozen: quota incident." in told
    assert "It is paused" in told
    assert "told to be stopped" in told
    assert "works with older settings: no such setting" in told
    assert "has not looked at the last edit" in told
    assert "Switched off for this resource: ENABLE_HEALTH_PROBE (by spec.flags)." in told


def test_a_running_run_says_when_its_limits_end() -> None:
    run = {"id": "r1", "phase": "Executing", "deadlines": {"agent": "2030-01-01T00:04:30Z"}}
    told = answer(body(phase="Executing", conditions=[READY], run=run), Surroundings(NOW))
    assert "The agent limit ends at 2030-01-01T00:04:30Z, in 4m30s." in told


BOX = {"id": "box", "name": "claude-issue-7", "attempt": 1}


def test_a_state_that_has_to_end_says_when_and_what_happens_then() -> None:
    box = {**BOX, "state": "starting", "stateSince": "2029-12-31T23:59:00Z"}
    told = answer(body(phase="Booting", conditions=[READY], sandbox=box), Surroundings(NOW))
    assert "The sandbox may be starting until 2030-01-01T00:02:00Z, in 2m (start_limit)" in told
    assert "after that: delete, then create the next attempt." in told


def test_a_sandbox_without_a_state_says_so_and_when_it_is_given_up() -> None:
    # R6
    box = {**BOX, "stateSince": "2029-12-31T23:59:00Z"}
    told = answer(body(phase="Booting", conditions=[READY], sandbox=box), Surroundings(NOW))
    assert "may be without a state until 2030-01-01T00:04:00Z, in 4m (create_limit)" in told


def test_the_start_limit_is_that_of_the_resource() -> None:
    box = {**BOX, "state": "starting", "stateSince": "2029-12-31T23:59:00Z"}
    resource = body(phase="Booting", conditions=[READY], sandbox=box)
    resource["spec"]["sandbox"] = {"startTimeout": "5m"}
    assert "until 2030-01-01T00:04:00Z, in 4m (start_limit)" in answer(resource, Surroundings(NOW))


def test_the_limit_of_a_start_counts_from_when_it_was_asked_for() -> None:
    box = {**BOX, "state": "stopped", "stateSince": "2029-12-30T00:00:00Z"}
    resource = body(phase="Booting", conditions=[READY], sandbox=box)
    assert "may be stopped" not in answer(resource, Surroundings(NOW))
    box["startAskedAt"] = "2029-12-31T23:59:00Z"
    assert "may be stopped until 2030-01-01T00:02:00Z, in 2m" in answer(resource, Surroundings(NOW))


def test_limits_are_those_of_the_stored_settings() -> None:
    box = {**BOX, "state": "starting", "stateSince": "2029-12-31T23:59:00Z"}
    settings = {"ISSUESANDBOX_TIMINGS": '{"start_limit": "10m"}'}
    around = Surroundings(NOW, settings=settings)
    told = answer(body(phase="Booting", conditions=[READY], sandbox=box), around)
    assert "until 2030-01-01T00:09:00Z" in told
    bad = Surroundings(NOW, settings={"ISSUESANDBOX_TIMINGS": "soon"})
    assert "until 2030-01-01T00:02:00Z" in answer(body(conditions=[READY], sandbox=box), bad)


def test_an_open_create_says_until_when_it_may_land() -> None:
    intent = {"kind": "Create", "at": "2029-12-31T23:59:30Z", "name": "claude-issue-7"}
    told = answer(body(phase="Booting", conditions=[READY], intent=intent), Surroundings(NOW))
    assert "Its create may still take effect until 2030-01-01T00:01:30Z, in 1m30s." in told


@pytest.mark.parametrize(
    ("reason", "gap"), [("Throttled", "15s"), ("Unauthorized", "15s"), ("SnapshotNotUsable", "5m")]
)
def test_what_daytona_refuses_is_asked_for_again(reason: str, gap: str) -> None:
    refused = condition("Synced", "False", reason, "Daytona says no.")
    told = answer(body(phase="Booting", conditions=[READY, refused]), Surroundings(NOW))
    assert f"Daytona is asked again every {gap}" in told


def test_a_flag_that_the_settings_switch_off_for_this_issue_is_told() -> None:
    around = Surroundings(NOW, settings={"ENABLE_HEALTH_PROBE": "0%", "ENABLE_DB_BACKED_STOP": "x"})
    told = answer(body(phase="Idle", conditions=[READY]), around)
    assert "Switched off for this resource: ENABLE_HEALTH_PROBE (by the settings: 0%)." in told


def test_a_sandbox_kept_after_a_failure_says_until_when() -> None:
    run = {
        "id": "r1",
        "phase": "Finished",
        "outcome": "Failed",
        "startedAt": "2029-12-31T23:00:00Z",
        "finishedAt": "2029-12-31T23:30:00Z",
    }
    box = {
        **BOX,
        "state": "stopped",
        "stateSince": "2029-12-31T23:31:00Z",
        "stopReason": "RunFailed",
    }
    resource = body(phase="Failed", conditions=[READY], run=run, sandbox=box)
    resource["spec"]["run"] = {}
    told = answer(resource, Surroundings(NOW))
    assert "That holds until 2030-01-01T23:30:00Z, in 23h30m." in told


def test_a_resource_of_another_version_is_still_answered() -> None:
    resource = body(phase="Idle", conditions=[READY], sandbox={"attempt": "not a number"})
    assert answer(resource, Surroundings(NOW)).startswith("octo/hello#7 is Idle")


def test_a_sandbox_at_rest_says_when_it_is_stopped() -> None:
    run = {
        "id": "r1",
        "phase": "Finished",
        "outcome": "Succeeded",
        "startedAt": "2029-12-31T23:59:00Z",
        "finishedAt": "2029-12-31T23:59:59Z",
    }
    box = {**BOX, "state": "started", "stateSince": "2029-12-31T23:59:00Z"}
    resource = body(phase="Succeeded", conditions=[READY], run=run, sandbox=box)
    resource["spec"] |= {"run": {}, "cleanup": {"onSuccess": "Retain"}}
    told = answer(resource, Surroundings(NOW))
    assert "If nobody uses its sandbox, it is stopped at 2030-01-01T00:14:59Z, in 14m59s." in told


def test_own_flags_that_do_not_fit_are_told() -> None:
    resource = body(conditions=[READY])
    resource["spec"]["flags"] = {"dbBackedStop": False}
    said = answer(resource, Surroundings(now=NOW))
    assert "ENABLE_HEALTH_PROBE is on for this resource, but ENABLE_DB_BACKED_STOP" in said


def test_another_generation_of_the_name_is_explained() -> None:
    # R12
    said = answer(body(conditions=[READY], sandbox={"name": "claude-issue-7-g2"}))
    assert "called claude-issue-7-g2 because an earlier sandbox could not be deleted" in said
    usual = answer(body(conditions=[READY], sandbox={"name": "claude-issue-7"}))
    assert "could not be deleted" not in usual
