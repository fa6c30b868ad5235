"""How long stops and time-outs take: from the moment the API server recorded to the proof."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Status
from issuesandbox.domain import numbers
from issuesandbox.domain.numbers import Family
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.books import Books
from issuesandbox.ports.resources import ResourceKey

ASKED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = ResourceKey("team", "one", "uid-1")


def text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def after(seconds: float) -> datetime:
    return ASKED + timedelta(seconds=seconds)


def body(run: dict[str, Any], stop: bool = True, trigger: str = "1", **status: Any) -> Any:
    fields = {"f:spec": {"f:desiredState": {}}}
    base = {"id": "r1", "phase": "Executing", "startedAt": text(ASKED), "trigger": "1"}
    return {
        "metadata": {
            "name": "one",
            "namespace": "team",
            "uid": "uid-1",
            "managedFields": [{"time": text(ASKED), "fieldsV1": fields}] if stop else [],
        },
        "spec": {
            "issue": {"repository": "octo/hello", "number": 1},
            "run": {"trigger": trigger},
            "desiredState": "Stopped" if stop else "Running",
        },
        "status": {"run": {**base, **run}, **status},
    }


class Life:
    """One resource, whose statuses are written one after the other."""

    def __init__(self) -> None:
        self.books = Books(Timings())
        self.status = Status()

    def write(self, body: Any, at: datetime) -> None:
        status = IssueSandbox.model_validate(body).status
        self.books.written(KEY, body, self.status, status, at)
        self.status = status

    def count(self, family: Family, *values: str) -> int:
        return dict(self.books.tally.counts(family))[values]

    def took(self, family: Family) -> list[float]:
        (spread,) = dict(self.books.tally.spreads(family)).values()
        return [spread.total] * sum(spread.counts)


def stopping(at: datetime, **changes: Any) -> Any:
    return body({}, stopRequestedAt=text(at), **changes)


def cancelled(at: datetime, reason: str = "StopRequested", **changes: Any) -> Any:
    run = {"outcome": "Cancelled", "reason": reason, "finishedAt": text(at)}
    return body(run, **changes)


def test_a_stop_is_timed_in_its_three_steps() -> None:  # R52, R54, R109
    life = Life()
    life.write(body({}, stop=False), ASKED)
    life.write(stopping(after(2)), after(2))
    life.books.stops.agent_dead(KEY, after(4))
    life.write(cancelled(after(9)), after(9))
    assert life.took(numbers.STOP_LOOKUP) == [2]
    assert life.took(numbers.STOP_RESPONSE) == [4]
    assert life.took(numbers.STOP_CONFIRM) == [9]
    assert life.count(numbers.STOPS, "confirmed") == 1
    assert life.count(numbers.STOPS, "failed") == 0


def test_a_kill_that_outruns_the_write_is_not_lost() -> None:
    life = Life()
    life.books.stops.agent_dead(KEY, after(1))
    life.write(stopping(after(2)), after(3))
    assert life.took(numbers.STOP_RESPONSE) == [1]


def test_a_sandbox_that_stops_before_the_kill_answers_is_the_response() -> None:
    life = Life()
    life.write(stopping(after(1)), after(1))
    life.write(cancelled(after(3)), after(3))
    assert life.took(numbers.STOP_RESPONSE) == [3]


def test_a_stop_that_takes_too_long_has_failed_once_though_it_goes_on() -> None:
    life = Life()
    life.write(stopping(after(1)), after(1))
    life.books.stops.look(KEY, life.status, after(29))
    assert life.count(numbers.STOPS, "failed") == 0
    life.books.stops.look(KEY, life.status, after(31))
    life.books.stops.look(KEY, life.status, after(32))
    assert life.count(numbers.STOPS, "failed") == 1
    life.write(cancelled(after(40)), after(40))
    assert life.count(numbers.STOPS, "failed") == 1
    assert life.count(numbers.STOPS, "confirmed") == 0


def test_a_cancellation_that_nobody_asked_for_shows() -> None:  # R57
    life = Life()
    life.write(stopping(after(1), stop=False), after(1))
    assert life.count(numbers.STOPS, "not_asked") == 1


def test_a_new_trigger_and_a_deletion_are_requests_too() -> None:
    for asked in (stopping(after(1), stop=False, trigger="2"), stopping(after(1), stop=False)):
        life = Life()
        if asked["spec"]["run"]["trigger"] == "1":
            asked["metadata"]["deletionTimestamp"] = text(ASKED)
        life.write(asked, after(1))
        assert life.count(numbers.STOPS, "not_asked") == 0


def test_a_stop_that_comes_too_late_is_no_failure() -> None:
    life = Life()
    life.write(cancelled(after(5), "TooLateToStop"), after(5))
    assert life.count(numbers.STOPS, "too_late") == 1
    assert life.took(numbers.STOP_CONFIRM) == []


def timed_out(state: str) -> Any:
    run = {"outcome": "TimedOut", "reason": "RunTimeout", "finishedAt": text(ASKED)}
    return body(run, stop=False, sandbox={"id": "sb", "state": state})


def test_a_time_out_is_cleaned_up_when_its_sandbox_is_seen_not_running() -> None:  # R72, R109
    life = Life()
    life.write(timed_out("started"), ASKED)
    assert life.count(numbers.TIMEOUT_CLEANUPS, "confirmed") == 0
    life.write(timed_out("stopped"), after(6))
    assert life.count(numbers.TIMEOUT_CLEANUPS, "confirmed") == 1
    assert life.took(numbers.TIMEOUT_CLEANUP_TIME) == [6]


def test_a_time_out_whose_sandbox_runs_on_has_failed_once() -> None:
    life = Life()
    life.write(timed_out("started"), ASKED)
    for seconds in (59, 61, 62):
        life.books.stops.look(KEY, life.status, after(seconds))
    assert life.count(numbers.TIMEOUT_CLEANUPS, "failed") == 1
    life.write(timed_out("stopped"), after(90))
    assert life.count(numbers.TIMEOUT_CLEANUPS, "confirmed") == 0


def test_a_body_that_cannot_be_read_fails_no_pass() -> None:
    life = Life()
    broken = stopping(after(1))
    broken["spec"]["issue"] = "none"
    status = Status.model_validate(broken["status"])
    life.books.written(KEY, broken, Status(), status, after(1))
