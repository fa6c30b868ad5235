"""The conditions of a run's steps: what was reached, and at which step it ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from issuesandbox.api.conditions import ConditionType, find
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import Ending

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def status(phase: str, **more: Any) -> Status:
    run: dict[str, Any] = {"id": "r1", "phase": phase, "startedAt": "2030-01-01T00:00:00Z"}
    return Status.model_validate({"run": run, **more})


@pytest.mark.parametrize(
    ("phase", "step"),
    [
        ("Preparing", ConditionType.REPOSITORY_CLONED),
        ("Publishing", ConditionType.PUBLISHED),
    ],
)
def test_the_step_at_which_a_run_failed_says_so(phase: str, step: ConditionType) -> None:
    # R34-R37
    ending = Ending(Outcome.FAILED, "RepositoryNotFound", "Nothing there.")
    after = chapters.ended(status(phase), ending, RunPhase.FINALIZING, NOW)
    condition = find(after.conditions, step)
    assert condition is not None
    assert (condition.status.value, condition.reason) == ("False", "RepositoryNotFound")
    assert (condition.message, condition.last_transition_time) == ("Nothing there.", NOW)
    good = chapters.ended(status(phase), Ending(Outcome.SUCCEEDED), RunPhase.FINALIZING, NOW)
    assert find(good.conditions, step) is None


def test_the_next_run_has_attempts_of_its_own() -> None:
    used = status("Preparing", counters={"failures": 2, "creates": 3})
    after = chapters.ended(used, Ending(Outcome.FAILED), RunPhase.FINALIZING, NOW)
    assert after.counters is not None
    assert (after.counters.failures, after.counters.creates) == (0, 3)


def test_an_agent_that_failed_has_completed_all_the_same() -> None:
    # False would mean that it may still run, and its sandbox would be stopped.
    told = chapters.agent_ended(status("Executing"), 3, "It ended with 3.", NOW)
    after = chapters.ended(told, Ending(Outcome.FAILED, "AgentFailed"), RunPhase.COLLECTING, NOW)
    condition = find(after.conditions, ConditionType.AGENT_COMPLETED)
    assert condition is not None
    assert condition.status.value == "True"
