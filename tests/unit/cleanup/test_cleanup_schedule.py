"""When a sandbox is stopped, archived and deleted after its run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cleanup_values import DAY, END, HOUR, MINUTE, TICK, finishes, moments, policies, window
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.api.spec_cleanup import CleanupAction, Window
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.cleanup import CleanupPolicy, Due, Finish, Stage, schedule

DELETE, STOP, ARCHIVE, RETAIN = CleanupAction
KEPT = {STOP: Stage.STOP, ARCHIVE: Stage.ARCHIVE}
ORDER = {Stage.LEAVE: 0, Stage.STOP: 1, Stage.ARCHIVE: 1, Stage.DELETE: 2}


def policy_of(outcome: Outcome, action: CleanupAction, **rest: object) -> CleanupPolicy:
    name = {
        Outcome.SUCCEEDED: "on_success",
        Outcome.FAILED: "on_failure",
        Outcome.CANCELLED: "on_cancel",
        Outcome.TIMED_OUT: "on_timeout",
    }[outcome]
    return CleanupPolicy(**{name: action}, **rest)  # type: ignore[arg-type]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("outcome", Outcome)
class TestEveryOutcome:
    def test_delete_is_due_at_once(self, outcome: Outcome) -> None:
        # R89
        due = schedule(policy_of(outcome, DELETE), Finish(outcome, END), END)
        assert due == Due(Stage.DELETE)

    @pytest.mark.parametrize("action", KEPT)
    def test_stop_and_archive_keep_it_for_the_retention(
        self, outcome: Outcome, action: CleanupAction
    ) -> None:
        # R97
        policy, finish = policy_of(outcome, action), Finish(outcome, END)
        end = END + 24 * HOUR
        assert schedule(policy, finish, END) == Due(KEPT[action], end)
        assert schedule(policy, finish, end - TICK) == Due(KEPT[action], end)
        assert schedule(policy, finish, end) == Due(Stage.DELETE)

    def test_retain_leaves_it_for_ever(self, outcome: Outcome) -> None:
        policy = policy_of(outcome, RETAIN, delete_after=END)
        for now in (END, END + 1000 * DAY):
            assert schedule(policy, Finish(outcome, END), now) == Due(Stage.LEAVE)

    @pytest.mark.parametrize("action", [DELETE, STOP, ARCHIVE])
    def test_a_delay_puts_all_of_it_off(self, outcome: Outcome, action: CleanupAction) -> None:
        # R100
        policy = policy_of(outcome, action, delay=10 * MINUTE, retention=HOUR)
        finish, begin = Finish(outcome, END), END + 10 * MINUTE
        assert schedule(policy, finish, END) == Due(Stage.LEAVE, begin)
        assert schedule(policy, finish, begin - TICK) == Due(Stage.LEAVE, begin)
        deletion = begin if action is DELETE else begin + HOUR
        assert schedule(policy, finish, deletion) == Due(Stage.DELETE)
        if action is not DELETE:
            assert schedule(policy, finish, begin) == Due(KEPT[action], deletion)

    @pytest.mark.parametrize("action", [DELETE, STOP, ARCHIVE])
    def test_it_is_deleted_no_earlier_than_the_absolute_time_and_rests_till_then(
        self, outcome: Outcome, action: CleanupAction
    ) -> None:
        # R100
        end = END + 30 * DAY
        policy, finish = policy_of(outcome, action, delete_after=end), Finish(outcome, END)
        stage = KEPT.get(action, Stage.STOP)
        assert schedule(policy, finish, END) == Due(stage, end)
        assert schedule(policy, finish, end) == Due(Stage.DELETE)

    def test_an_absolute_time_in_the_past_changes_nothing(self, outcome: Outcome) -> None:
        policy = policy_of(outcome, STOP, delete_after=END - DAY)
        assert schedule(policy, Finish(outcome, END), END) == Due(Stage.STOP, END + 24 * HOUR)


class TestKeepAlive:
    alive = END + 30 * MINUTE

    @pytest.mark.parametrize("action", [DELETE, STOP])
    def test_after_a_success_it_puts_the_stop_off_and_turns_a_deletion_into_retention(
        self, action: CleanupAction
    ) -> None:
        policy = policy_of(Outcome.SUCCEEDED, action)
        finish = Finish(Outcome.SUCCEEDED, END, self.alive)
        assert schedule(policy, finish, END) == Due(Stage.LEAVE, self.alive)
        end = self.alive + 24 * HOUR
        assert schedule(policy, finish, self.alive) == Due(Stage.STOP, end)
        assert schedule(policy, finish, end) == Due(Stage.DELETE)

    def test_a_longer_delay_counts_too(self) -> None:
        finish = Finish(Outcome.SUCCEEDED, END, self.alive)
        due = schedule(CleanupPolicy(delay=HOUR), finish, self.alive)
        assert due == Due(Stage.LEAVE, END + HOUR)

    def test_it_leaves_archive_and_retain_as_they_are_asked_for(self) -> None:
        finish = Finish(Outcome.SUCCEEDED, END, self.alive)
        archive = schedule(policy_of(Outcome.SUCCEEDED, ARCHIVE), finish, self.alive)
        assert archive.stage is Stage.ARCHIVE
        retain = schedule(policy_of(Outcome.SUCCEEDED, RETAIN), finish, self.alive + 9 * DAY)
        assert retain == Due(Stage.LEAVE)

    @pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CANCELLED, Outcome.TIMED_OUT])
    def test_it_overrides_nothing_else(self, outcome: Outcome) -> None:
        for action in CleanupAction:
            policy = policy_of(outcome, action)
            kept, plain = Finish(outcome, END, self.alive), Finish(outcome, END)
            assert schedule(policy, kept, END) == schedule(policy, plain, END)


# END is Tuesday, 2030-01-01, at noon. The span's begin is in it, its end is not.
NIGHT = window("22:00", "06:00")
WEEKEND = window("22:00", "06:00", "Sat", "Sun")
FRIDAY = window("23:30", "00:30", "Fri")
NOON = window("12:00", "12:01")
WINDOWS: list[tuple[Window, str, str | None, str]] = [
    # window, now, end of the span that is open now (None: closed), else begin of the next one
    (NIGHT, "2030-01-01T12:00", None, "2030-01-01T22:00"),
    (NIGHT, "2030-01-01T21:59:59.999999", None, "2030-01-01T22:00"),
    (NIGHT, "2030-01-01T22:00", "2030-01-02T06:00", ""),
    (NIGHT, "2030-01-02T00:00", "2030-01-02T06:00", ""),
    (NIGHT, "2030-01-02T05:59:59.999999", "2030-01-02T06:00", ""),
    (NIGHT, "2030-01-02T06:00", None, "2030-01-02T22:00"),
    (WEEKEND, "2030-01-01T23:00", None, "2030-01-05T22:00"),
    (WEEKEND, "2030-01-05T05:00", None, "2030-01-05T22:00"),  # Friday's night is not listed
    (WEEKEND, "2030-01-06T05:00", "2030-01-06T06:00", ""),
    (WEEKEND, "2030-01-07T05:59", "2030-01-07T06:00", ""),  # Monday, in Sunday's span
    (WEEKEND, "2030-01-07T22:00", None, "2030-01-12T22:00"),
    (FRIDAY, "2030-01-05T00:29", "2030-01-05T00:30", ""),
    (FRIDAY, "2030-01-05T00:30", None, "2030-01-11T23:30"),
    (FRIDAY, "2030-01-04T23:29", None, "2030-01-04T23:30"),
    (window("11:00", "11:30", "Tue"), "2030-01-01T11:30", None, "2030-01-08T11:00"),
    (NOON, "2030-01-01T12:00:59", "2030-01-01T12:01", ""),
    (NOON, "2030-01-01T12:01", None, "2030-01-02T12:00"),
    # The clocks of Berlin and New York change in these nights; UTC does not.
    (window("00:30", "03:30"), "2030-03-31T03:29", "2030-03-31T03:30", ""),
    (window("00:30", "03:30"), "2030-03-10T03:30", None, "2030-03-11T00:30"),
    # Leap day, turn of the year.
    (window("23:00", "01:00", "Thu"), "2032-02-28T12:00", None, "2032-03-04T23:00"),
    (window("23:00", "01:00"), "2029-12-31T23:00", "2030-01-01T01:00", ""),
]


@pytest.mark.parametrize(("span", "now", "closes", "opens"), WINDOWS)
def test_a_sandbox_is_deleted_within_its_window_only(
    span: Window, now: str, closes: str | None, opens: str
) -> None:
    # R100
    policy = CleanupPolicy(window=span)
    finish = Finish(Outcome.SUCCEEDED, at("2029-12-01T00:00"))
    expected = Due(Stage.DELETE, at(closes)) if closes else Due(Stage.STOP, at(opens))
    assert schedule(policy, finish, at(now)) == expected


def test_the_window_is_looked_for_from_the_end_of_the_retention_on() -> None:
    policy = CleanupPolicy(window=window("11:00", "12:00"))
    finish = Finish(Outcome.FAILED, END)  # the retention ends at noon: too late for that day
    assert schedule(policy, finish, END) == Due(Stage.STOP, at("2030-01-03T11:00"))


def test_a_window_that_holds_no_time_is_read_as_the_whole_day() -> None:
    # The API server refuses it; should one get by, the sandbox must not live for ever.
    policy = CleanupPolicy(window=window("12:00", "12:00", "Tue"))
    assert schedule(policy, Finish(Outcome.SUCCEEDED, END), END).stage is Stage.DELETE


def test_an_edit_counts_as_long_as_the_deletion_has_not_begun() -> None:
    finish, later = Finish(Outcome.FAILED, END), END + 25 * HOUR
    assert schedule(CleanupPolicy(), finish, later).stage is Stage.DELETE
    longer = CleanupPolicy(retention=72 * HOUR)
    assert schedule(longer, finish, later) == Due(Stage.STOP, END + 72 * HOUR)
    at_once = CleanupPolicy(on_failure=DELETE)
    assert schedule(at_once, finish, END).stage is Stage.DELETE


@given(policies, finishes, moments)
def test_the_answer_holds_until_the_time_it_names_and_changes_then(
    policy: CleanupPolicy, finish: Finish, now: datetime
) -> None:
    due = schedule(policy, finish, now)
    if due.until is None:
        final = Stage.LEAVE if policy.action(finish.outcome) is RETAIN else Stage.DELETE
        assert due.stage is final
        return
    assert due.until > now
    assert schedule(policy, finish, due.until - TICK) == due
    assert schedule(policy, finish, due.until).stage is not due.stage


@given(policies, finishes, moments, st.timedeltas(timedelta(0), 400 * DAY))
def test_without_a_window_the_cleanup_only_goes_forward(
    policy: CleanupPolicy, finish: Finish, now: datetime, wait: timedelta
) -> None:
    policy = replace(policy, window=None)
    before, after = schedule(policy, finish, now), schedule(policy, finish, now + wait)
    assert ORDER[before.stage] <= ORDER[after.stage]


@given(policies, finishes, moments)
def test_with_a_window_every_sandbox_that_is_not_retained_gets_its_turn(
    policy: CleanupPolicy, finish: Finish, now: datetime
) -> None:
    due = schedule(policy, finish, now)
    for _ in range(3):
        if due.stage is Stage.DELETE or due.until is None:
            break
        due = schedule(policy, finish, due.until)
    retained = policy.action(finish.outcome) is RETAIN
    assert due.stage is (Stage.LEAVE if retained else Stage.DELETE)
