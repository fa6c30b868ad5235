"""What a run needs next, for every place it can be in and everything that can be asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.defaults import RecoveryPolicy
from issuesandbox.domain.runs.moves import Move, Scene, is_to_be_salvaged, next_move
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.wanted import Turn

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ID = SandboxId("sb-1")
STARTED = NOW - timedelta(minutes=1)


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def a_run(phase: str, **more: Any) -> dict[str, Any]:
    ends = {"run": stamp(STARTED + timedelta(minutes=15))}
    return {
        "id": "r1",
        "attempt": 1,
        "phase": phase,
        "trigger": "1",
        "startedAt": stamp(STARTED),
        "deadlines": ends,
        **more,
    }


def scene(
    run: dict[str, Any] | None = None,
    *,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> Scene:
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1", **(metadata or {})},
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": "1"},
            **(spec or {}),
        },
        "status": {**({"run": run} if run else {}), **(status or {})},
    }
    resource = IssueSandbox.model_validate(body)
    facts: dict[str, Any] = {"turn": Turn.ADMITTED, "sandbox_id": ID, "attempt": 1, **more}
    return Scene(resource, now=NOW, **facts)


STOPPED = {"desiredState": "Stopped"}
DELETING = {"deletionTimestamp": stamp(NOW)}
PAUSED = {"annotations": {"issuesandbox.dev/paused": "true"}}
GATE = {"publish": {"commit": "a" * 40, "old": "0" * 40, "at": stamp(NOW)}}
NOTED = {"stopRequestedAt": stamp(NOW)}
LATE = {"deadlines": {"run": stamp(NOW)}}


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Preparing", Move.PREPARE),
        ("Executing", Move.EXECUTE),
        ("Collecting", Move.COLLECT),
    ],
)
def test_a_run_goes_on_where_its_status_says(phase: str, expected: Move) -> None:
    assert next_move(scene(a_run(phase))) is expected
    assert next_move(scene(a_run(phase), sandbox_id=None)) is Move.NONE
    assert next_move(scene(a_run(phase), metadata=PAUSED)) is Move.NONE


@pytest.mark.parametrize("phase", ["Preparing", "Executing", "Collecting"])
def test_a_stop_before_the_gate_is_noted_then_killed_then_confirmed(phase: str) -> None:
    # R51
    for asked in ({"spec": STOPPED}, {"metadata": DELETING}):
        assert next_move(scene(a_run(phase), **asked)) is Move.NOTE_STOP
        noted = {"status": NOTED, **asked}
        assert next_move(scene(a_run(phase), **noted)) is Move.KILL
        assert next_move(scene(a_run(phase), **noted, still=True)) is Move.CANCEL


def test_a_stop_that_was_taken_back_is_carried_out_all_the_same() -> None:
    assert next_move(scene(a_run("Executing"), status=NOTED)) is Move.KILL


@pytest.mark.parametrize("asked", [{}, {"spec": STOPPED}, {"metadata": DELETING}])
def test_after_the_gate_the_push_always_happens(asked: dict[str, Any]) -> None:
    # R56
    assert next_move(scene(a_run("Publishing", **GATE), **asked)) is Move.PUBLISH
    late = a_run("Publishing", **GATE, **LATE)
    assert next_move(scene(late, **asked)) is Move.PUBLISH


def test_a_run_over_its_limit_ends_also_without_a_sandbox() -> None:
    assert next_move(scene(a_run("Executing", **LATE))) is Move.TIME_OUT
    assert next_move(scene(a_run("Preparing", **LATE), sandbox_id=None)) is Move.TIME_OUT


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("Replace", Move.NOTE_STOP), ("Queue", Move.EXECUTE), ("Ignore", Move.SKIP)],
)
def test_a_new_trigger_during_a_run(policy: str, expected: Move) -> None:
    spec = {"run": {"trigger": "2", "onNewTrigger": policy}}
    assert next_move(scene(a_run("Executing"), spec=spec)) is expected


def test_a_run_in_a_replaced_sandbox_begins_again_as_often_as_it_has_attempts() -> None:
    assert next_move(scene(a_run("Executing"), attempt=2)) is Move.START_OVER
    assert next_move(scene(a_run("Executing", recreations=2), attempt=4)) is Move.GIVE_UP
    once, more = RecoveryPolicy(max_attempts=1), RecoveryPolicy(max_attempts=5)
    assert next_move(scene(a_run("Executing"), attempt=2, recovery=once)) is Move.GIVE_UP
    patient = scene(a_run("Executing", recreations=3), attempt=5, recovery=more)
    assert next_move(patient) is Move.START_OVER
    gone = scene(a_run("Executing"), sandbox_id=None, dead_end="no more")
    assert next_move(gone) is Move.GIVE_UP


@pytest.mark.parametrize("outcome", ["Failed", "TimedOut", "Cancelled"])
def test_work_is_saved_before_the_last_word(outcome: str) -> None:
    ended = a_run("Collecting", outcome=outcome)
    assert next_move(scene(ended)) is Move.RESCUE
    # During a pause the work stays where it is, and nothing runs there.
    assert next_move(scene(ended, metadata=PAUSED)) is Move.KILL
    assert next_move(scene(ended, metadata=PAUSED, still=True)) is Move.NONE
    assert next_move(scene(ended, metadata={**PAUSED, **DELETING})) is Move.RESCUE


def test_a_run_that_was_ended_finishes_only_when_nothing_of_it_runs() -> None:
    for outcome in ("TimedOut", "Cancelled"):
        ended = a_run("Finalizing", outcome=outcome)
        assert next_move(scene(ended)) is Move.KILL
        assert next_move(scene(ended, sandbox_id=None)) is Move.NONE
        assert next_move(scene(ended, sandbox_id=None, still=True)) is Move.TELL
    assert next_move(scene(a_run("Finalizing", outcome="Succeeded"))) is Move.TELL


def test_a_run_begins_when_it_is_admitted_and_its_sandbox_runs() -> None:
    assert next_move(scene()) is Move.BEGIN
    assert next_move(scene(sandbox_id=None)) is Move.NONE
    assert next_move(scene(turn=Turn.WAITING)) is Move.NONE
    assert next_move(scene(metadata=PAUSED)) is Move.NONE
    assert next_move(scene(metadata=DELETING)) is Move.NONE
    assert next_move(scene(sandbox_id=None, dead_end="no such snapshot")) is Move.REFUSE


def test_a_finished_run_is_followed_by_the_next_trigger_or_by_nothing() -> None:
    # Stopped, then Running again, runs nothing without a new trigger.
    done = a_run("Finished", outcome="Succeeded")
    assert next_move(scene(done, turn=Turn.NONE)) is Move.RETELL
    assert next_move(scene(done, turn=Turn.ADMITTED)) is Move.BEGIN


def test_a_stop_in_the_queue_uses_the_trigger_up() -> None:
    waiting = {"conditions": [queued()]}
    assert next_move(scene(status=waiting, turn=Turn.WAITING, spec=STOPPED)) is Move.WITHDRAW
    assert next_move(scene(turn=Turn.WAITING, spec=STOPPED)) is Move.NONE


def queued() -> dict[str, Any]:
    return {
        "type": "Admitted",
        "status": "False",
        "reason": "Queued",
        "message": "Place 3.",
        "lastTransitionTime": stamp(NOW),
    }


def test_a_run_is_not_replaced_before_a_burst_of_triggers_is_over() -> None:
    spec = {"run": {"trigger": "2"}}
    young = scene(a_run("Executing"), spec=spec, debounce=timedelta(minutes=2))
    assert next_move(young) is Move.EXECUTE
    assert young.replaced_at == STARTED + timedelta(minutes=2)
    old = scene(a_run("Executing"), spec=spec, debounce=timedelta(minutes=1))
    assert next_move(old) is Move.NOTE_STOP
    stopped = {**spec, **STOPPED}
    assert next_move(scene(a_run("Executing"), spec=stopped, debounce=timedelta(hours=1))) is (
        Move.NOTE_STOP
    ), "a stop waits for nothing"


WORKING = {
    "agentStartedAt": stamp(STARTED),
    "parent": {"commit": "0" * 40, "branchExisted": False},
}


def saved(at: datetime) -> dict[str, Any]:
    return {"savedWork": {"kind": "Branch", "ref": "wip/1", "at": stamp(at)}}


@pytest.mark.parametrize(
    ("more", "about", "salvaged"),
    [
        ({}, {}, True),
        (saved(STARTED - timedelta(seconds=1)), {}, True),
        (saved(NOW), {}, False),
        ({"agentStartedAt": None}, {}, False),
        ({"parent": None}, {}, False),
        ({"attempt": 0}, {}, False),
        ({"outcome": "Failed"}, {}, False),
        ({"publish": {"commit": "a1", "old": "00", "at": stamp(NOW)}}, {}, False),
        ({}, {"doomed": False}, False),
        ({}, {"spec": {"desiredState": "Stopped"}}, False),
        ({}, {"metadata": {"deletionTimestamp": stamp(NOW)}}, False),
    ],
)
def test_only_work_of_a_run_that_goes_on_is_saved_from_a_sandbox_that_is_given_up(
    more: dict[str, Any], about: dict[str, Any], salvaged: bool
) -> None:
    seen = scene(a_run("Executing", **{**WORKING, **more}), **{"doomed": True, **about})
    assert is_to_be_salvaged(seen) is salvaged
