"""Conditions keep the time of their last turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from issuesandbox.api.conditions import (
    Condition,
    ConditionStatus,
    ConditionType,
    Reason,
    find,
    is_true,
    upsert,
)

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def ready(
    status: ConditionStatus, now: datetime, *, message: str = "", generation: int = 1
) -> Condition:
    return Condition(
        type=ConditionType.READY,
        status=status,
        reason=Reason.QUEUED,
        message=message,
        last_transition_time=now,
        observed_generation=generation,
    )


def test_a_new_condition_is_appended() -> None:
    synced = ready(ConditionStatus.TRUE, NOON).model_copy(update={"type": ConditionType.SYNCED})
    assert upsert((synced,), ready(ConditionStatus.TRUE, NOON)) == (
        synced,
        ready(ConditionStatus.TRUE, NOON),
    )


def test_the_same_status_keeps_its_time_and_takes_the_new_words() -> None:
    before = (ready(ConditionStatus.FALSE, NOON, message="place 3"),)
    after = upsert(before, ready(ConditionStatus.FALSE, LATER, message="place 2", generation=2))
    assert after == (ready(ConditionStatus.FALSE, NOON, message="place 2", generation=2),)


def test_nothing_new_changes_nothing() -> None:
    before = (ready(ConditionStatus.TRUE, NOON),)
    assert upsert(before, ready(ConditionStatus.TRUE, LATER)) == before


def test_a_turn_takes_the_new_time_and_keeps_the_place() -> None:
    synced = ready(ConditionStatus.TRUE, NOON).model_copy(update={"type": ConditionType.SYNCED})
    before = (ready(ConditionStatus.FALSE, NOON), synced)
    assert upsert(before, ready(ConditionStatus.TRUE, LATER)) == (
        ready(ConditionStatus.TRUE, LATER),
        synced,
    )


def test_an_absent_condition_is_not_true() -> None:
    assert find((), ConditionType.READY) is None
    assert not is_true((), ConditionType.READY)
    assert not is_true((ready(ConditionStatus.UNKNOWN, NOON),), ConditionType.READY)
    assert is_true((ready(ConditionStatus.TRUE, NOON),), ConditionType.READY)


def test_a_condition_is_written_as_kubernetes_wants_it() -> None:
    assert ready(ConditionStatus.TRUE, NOON, message="why").to_json() == {
        "type": "Ready",
        "status": "True",
        "reason": "Queued",
        "message": "why",
        "lastTransitionTime": "2030-01-31T12:00:00Z",
        "observedGeneration": 1,
    }
