"""Each transition is told once, in words that scripts may rely on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from issuesandbox.api.conditions import Condition, ConditionStatus
from issuesandbox.api.status import Phase, Status
from issuesandbox.api.status_sandbox import (
    Intent,
    IntentKind,
    Retired,
    SandboxDeletion,
    SandboxStatus,
)
from issuesandbox.domain.model import Plan
from issuesandbox.engine.notes import notes

AT = datetime(2030, 1, 1, tzinfo=UTC)
OLD = Status(sandbox=SandboxStatus(id="sb-1", name="claude-issue-7"))
GONE = Status(
    sandbox=SandboxStatus(name="claude-issue-7"),
    retired=(Retired(id="sb-1", name="claude-issue-7", reason="Gone", at=AT),),
)


def plan(reason: str = "AtRest", *, synced: bool = True) -> Plan:
    return Plan("RUNNING/RUNNING", Phase.IDLE, reason, "why", synced=synced)


def told(before: Status, after: Status, of: Plan | None = None) -> list[tuple[str, bool]]:
    return [(each.reason, each.warning) for each in notes(before, after, of or plan())]


def condition(kind: str, reason: str) -> Condition:
    return Condition(
        type=kind, status=ConditionStatus.TRUE, reason=reason, message="m", last_transition_time=AT
    )


def test_a_reason_is_told_when_it_is_new_and_not_again() -> None:
    before = Status(conditions=(condition("Ready", "Creating"),))
    assert told(before, before, plan("Running")) == [("Running", False)]
    assert told(before, before, plan("Creating")) == []
    assert told(before, before, plan("AtRest")) == []


def test_what_a_pass_did_and_came_to_is_told_at_once() -> None:
    made, runs = plan("Creating"), plan("Running")
    (note,) = notes(OLD, OLD, made, runs)
    assert (note.reason, note.message, note.warning) == ("Running", "why why", False)
    running = Status(conditions=(condition("Ready", "Running"),))
    (note,) = notes(running, running, made, runs)
    assert (note.reason, note.message) == ("Creating", "why"), "it ran before, too"
    (note,) = notes(OLD, OLD, plan("Replacing"), runs)
    assert note.warning


@pytest.mark.parametrize(
    "of", [plan("Throttled", synced=False), plan("AttemptsExhausted"), plan("Vanished")]
)
def test_trouble_is_a_warning(of: Plan) -> None:
    assert told(OLD, OLD, of) == [(of.reason, True)]


def test_a_reference_to_what_is_gone_is_cleared_and_that_is_told() -> None:
    # R17
    assert told(OLD, GONE) == [("StaleReferenceCleared", True)]
    assert told(GONE, GONE) == []
    asked = Intent(kind=IntentKind.DELETE, at=AT, sandbox_id="sb-1")
    assert told(OLD.model_copy(update={"intent": asked}), GONE) == [], "it was deleted by us"


def test_our_own_stop_is_told_once_it_is_seen() -> None:
    stopped = Status(sandbox=SandboxStatus(id="sb-1", stop_reason="StopRequested"))
    assert told(OLD, stopped) == [("Stopped", False)]
    assert told(stopped, stopped) == []


def test_what_becomes_of_the_sandbox_after_a_run_is_told() -> None:
    # R90, R94
    def record(**fields: object) -> Status:
        given = {"success": False, "message": "m", **fields}
        return Status(sandbox_deletion=SandboxDeletion.model_validate(given))

    begun, kept = record(), record(skipped=True, skip_reason="r")
    failed, done = record(error="e"), record(success=True)
    assert told(Status(), kept) == [("SandboxKept", False)]
    assert told(kept, begun) == []
    assert told(begun, failed) == [("SandboxDeletionFailed", True)]
    assert told(failed, failed) == []
    assert told(failed, done) == [("SandboxDeleted", False)]


def test_a_stuck_deletion_is_told_once() -> None:
    stuck = Status(conditions=(condition("DeletionStuck", "Deleting"),))
    assert told(Status(), stuck) == [("DeletionStuck", True)]
    assert told(stuck, stuck) == []


def synced(reason: str, *, holds: bool = True) -> Status:
    said = condition("Synced", reason)
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    return Status(conditions=(said.model_copy(update={"status": status}),))


@pytest.mark.parametrize("trouble", ["DaytonaUnreachable", "WrongOrganization", "HolderUnknown"])
def test_who_rests_and_was_told_of_an_outage_is_told_of_its_end(trouble: str) -> None:
    away, well = synced(trouble, holds=False), synced("Synced")
    (note,) = notes(away, well, plan())
    assert (note.reason, note.warning) == ("Synced", False)
    assert "why" in note.message
    assert told(well, well) == []
    assert told(away, away) == []
    assert told(away, well, plan("Running")) == [("Running", False)], "that tells it already"
    assert told(synced("ReconcilePaused", holds=False), well) == [], "nobody was worried"


def test_an_edit_that_waits_for_the_next_sandbox_is_told_once() -> None:
    outdated = synced("SandboxOutdated")
    assert told(synced("Synced"), outdated) == [("SandboxOutdated", False)]
    assert told(outdated, outdated) == []
    assert told(outdated, synced("Synced")) == []


def test_flags_that_do_not_fit_together_are_a_warning() -> None:
    unwise = synced("FlagWithoutItsBase")
    assert told(synced("Synced"), unwise) == [("FlagWithoutItsBase", True)]
