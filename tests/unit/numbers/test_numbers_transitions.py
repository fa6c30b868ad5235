"""What a change of the status is counted as."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from issuesandbox.api.status import Status
from issuesandbox.domain import numbers
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.transitions import Fact, facts

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BEGAN = NOW - timedelta(seconds=90)


def text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def status(run: dict[str, Any] | None = None, **rest: Any) -> Status:
    if run is not None:
        base = {"id": "r1", "phase": "Executing", "startedAt": text(BEGAN)}
        rest["run"] = {**base, **run}
    return Status.model_validate(rest)


def counted(before: Status, after: Status) -> set[tuple[str, ...]]:
    return {(fact.family.name, *fact.values) for fact in facts(before, after, NOW)}


def ended(outcome: str, reason: str | None = None, **more: Any) -> Status:
    return status({"outcome": outcome, "reason": reason, "finishedAt": text(NOW), **more})


def test_nothing_happened_where_nothing_changed() -> None:
    for each in (status(), status({}), ended("Failed", "AgentFailed")):
        assert not list(facts(each, each, NOW))


def test_an_end_is_counted_once_with_its_reason_and_its_time() -> None:
    after = ended("Failed", "AgentFailed")
    found = list(facts(status({}), after, NOW))
    assert Fact(numbers.RUNS, ("Failed", "AgentFailed")) in found
    assert Fact(numbers.RUN_TIME, ("Failed",), 90.0) in found
    assert len(found) == 2
    assert not list(facts(after, ended("Failed", "AgentFailed", phase="Finished"), NOW))


@pytest.mark.parametrize(
    ("reason", "limit"),
    [("InactivityTimeout", "inactivity"), ("AgentTimeout", "agent"), ("RunTimeout", "run")],
)
def test_each_limit_is_told_apart(reason: str, limit: str) -> None:  # R109
    assert ("limits_hit", limit) in counted(status({}), ended("TimedOut", reason))


def test_a_stall_is_timed_from_the_last_output() -> None:  # R68
    last = text(NOW - timedelta(seconds=61))
    found = facts(status({}), ended("TimedOut", "InactivityTimeout", lastOutputAt=last), NOW)
    assert Fact(numbers.STALLS, (), 61.0) in found


def test_an_outcome_that_was_overwritten_is_a_fault_that_shows() -> None:  # R74
    found = counted(ended("TimedOut", "AgentTimeout"), ended("Succeeded"))
    assert found == {("late_results", "taken")}


def test_work_that_is_saved_after_the_end_is_a_late_result_and_is_ignored() -> None:
    found = counted(ended("TimedOut", "AgentTimeout"), ended("TimedOut", commit="a" * 40))
    assert ("late_results", "ignored") in found
    assert ("late_results", "taken") not in found


@pytest.mark.parametrize(
    ("reason", "pull", "result"),
    [
        (None, True, "pull_request"),
        ("Pushed", False, "pushed"),
        ("BranchMoved", False, "moved"),
        ("PullRequestFailed", False, "no_pull_request"),
        ("PublishFailed", False, "failed"),
        ("TooLateToStop", True, "too_late"),
    ],
)
def test_a_publication_is_counted_by_what_became_of_it(
    reason: str | None, pull: bool, result: str
) -> None:
    more: dict[str, Any] = {"publish": {"commit": "a" * 40, "old": "0" * 40, "at": text(BEGAN)}}
    if pull:
        more["pullRequest"] = {"number": 1, "url": "https://example.com/1"}
    outcome = "Succeeded" if reason in (None, "Pushed") else "Failed"
    assert ("publishes", result) in counted(status({}), ended(outcome, reason, **more))


def test_saved_and_lost_work_are_told_apart() -> None:
    began = {"agentStartedAt": text(BEGAN)}
    saved = {"savedWork": {"kind": "Branch", "ref": "wip/1", "at": text(NOW)}}
    assert counted(status(began), status({**began, **saved})) == {("work", "saved")}
    assert counted(status(began), status({"recreations": 1})) == {("work", "lost")}
    assert counted(status({}), status({"recreations": 1})) == set(), "there was no work yet"
    again = {"recreations": 1, **saved}
    assert counted(status({**began, **saved}), status(again)) == set(), "it was saved before"
    later = {"agentStartedAt": text(NOW + timedelta(seconds=1)), **again}
    found = counted(status(later), status({**again, "recreations": 2}))
    assert found == {("work", "lost")}, "what was saved is of the sandbox before"
    lost = counted(status(began), ended("Failed", "SandboxLost", **began))
    assert ("work", "lost") in lost
    rescued = ended("Failed", "AgentFailed", **began)
    in_vain = chapters.lost(rescued, "Nobody took it.", NOW)
    assert counted(rescued, in_vain) == {("work", "lost")}
    assert counted(in_vain, in_vain) == set()


def box(state: str | None, attempt: int = 1, identity: str | None = "sb") -> dict[str, Any]:
    return {"id": identity, "state": state, "attempt": attempt}


def test_the_ladder_is_counted_by_its_rungs() -> None:
    def found(old: dict[str, Any], new: dict[str, Any], **before: Any) -> set[tuple[str, ...]]:
        return counted(status(sandbox=old, **before), status(sandbox=new))

    recover = {"kind": "Recover", "at": text(BEGAN)}
    assert found(box("creating"), box("started")) == set(), "a first create recovers nothing"
    assert found(box("stopped"), box("started")) == {("recoveries", "start", "ok")}
    assert found(box("error"), box("started"), intent=recover) == {("recoveries", "recover", "ok")}
    assert found(box("creating", 2), box("started", 2)) == {("recoveries", "replace", "ok")}
    assert found(box(None, 1, None), box("creating", 1)) == {("attempts", "first")}
    assert found(box(None, 1, None), box("creating", 2)) == {("attempts", "another")}


def test_a_replacement_that_is_replaced_has_failed() -> None:
    retired = [{"id": "sb", "reason": "Replaced", "at": text(NOW)}]
    before = status(sandbox=box("error", 2))
    after = status(sandbox=box(None, 2, None), retired=retired)
    assert counted(before, after) == {("recoveries", "replace", "failed")}


def record(success: bool, message: str, **more: Any) -> dict[str, Any]:
    return {"sandboxId": "sb", "success": success, "message": message, **more}


def test_deletions_are_counted_by_result() -> None:  # R102
    pending = status(
        sandboxDeletion=record(False, "Deleting."), intent={"kind": "Delete", "at": text(BEGAN)}
    )
    found = list(facts(pending, status(sandboxDeletion=record(True, "Sandbox deleted.")), NOW))
    assert Fact(numbers.DELETIONS, ("deleted",)) in found
    assert Fact(numbers.DELETION_TIME, (), 90.0) in found
    gone = status(sandboxDeletion=record(True, "Sandbox not found; it was already gone."))
    assert ("sandbox_deletions", "gone") in counted(pending, gone)
    skip = status(sandboxDeletion=record(False, "Skipped.", skipped=True, skipReason="kept"))
    assert counted(status(), skip) == {("sandbox_deletions", "skipped")}


def test_a_deletion_has_failed_when_its_tries_are_used_up_and_not_before() -> None:
    first = status(sandboxDeletion=record(False, "Failed.", error="500", retriesUsed=0))
    last = status(sandboxDeletion=record(False, "Failed.", error="500", retriesUsed=2))
    assert counted(status(), first) == set()
    assert counted(first, last) == {
        ("sandbox_deletions", "failed"),
        ("sandbox_deletion_retries",),
    }
