"""Which cleanup policy is in force, and when a finished resource itself is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cleanup_values import DAY, END, HOUR, any_times, short
from hypothesis import given

from issuesandbox.api.spec_cleanup import Cleanup, CleanupAction, CleanupFields
from issuesandbox.api.status_run import Effective, Outcome
from issuesandbox.domain.cleanup import (
    CleanupPolicy,
    Finish,
    Stage,
    effective,
    later,
    resource_due_at,
    schedule,
)

DELETE, STOP, ARCHIVE, RETAIN = CleanupAction
WINDOW = {"start": "22:00", "end": "06:00"}


@pytest.mark.parametrize(
    ("outcome", "action"),
    [
        (Outcome.SUCCEEDED, DELETE),
        (Outcome.FAILED, STOP),
        (Outcome.CANCELLED, STOP),
        (Outcome.TIMED_OUT, STOP),
    ],
)
def test_without_any_setting_success_deletes_and_the_rest_is_kept_stopped(
    outcome: Outcome, action: CleanupAction
) -> None:
    # R89, R90, R97
    policy = effective(None)
    assert policy.action(outcome) is action
    assert (policy.delay, policy.retention) == (timedelta(0), 24 * HOUR)
    assert policy.ttl_after_finished == 7 * DAY


def test_each_outcome_has_its_own_action() -> None:
    # R98
    given_ = {"onSuccess": "Retain", "onFailure": "Archive", "onCancel": "Delete"}
    policy = effective(Cleanup.model_validate(given_ | {"onTimeout": "Stop"}))
    assert [policy.action(each) for each in Outcome] == [RETAIN, ARCHIVE, DELETE, STOP]


def test_the_resource_goes_before_the_settings_in_their_order_and_those_before_the_defaults() -> (
    None
):
    cleanup = Cleanup.model_validate({"retention": "1h", "onFailure": "Retain"})
    first = CleanupFields.model_validate({"retention": "2h", "delay": "2m"})
    second = CleanupFields.model_validate({"delay": "3m", "onCancel": "Archive"})
    policy = effective(cleanup, first, second)
    assert (policy.retention, policy.delay) == (HOUR, timedelta(minutes=2))
    assert (policy.on_failure, policy.on_cancel, policy.on_timeout) == (RETAIN, ARCHIVE, STOP)


def test_a_zero_of_the_resource_overrides_a_setting() -> None:
    cleanup = Cleanup.model_validate({"delay": "0s", "ttlAfterFinished": "0s"})
    settings = CleanupFields.model_validate({"delay": "1h", "ttlAfterFinished": "1h"})
    policy = effective(cleanup, settings)
    assert (policy.delay, policy.ttl_after_finished) == (timedelta(0), timedelta(0))


def test_the_resource_may_have_an_absolute_time_and_a_window() -> None:
    # R100
    given_ = {"deleteAfter": "2030-02-01T00:00:00Z", "window": WINDOW}
    policy = effective(Cleanup.model_validate(given_))
    assert policy.delete_after == datetime(2030, 2, 1, tzinfo=UTC)
    assert policy.window is not None
    assert (policy.window.start, policy.window.end) == ("22:00", "06:00")


def test_the_policy_in_force_is_written_down_as_people_write_it() -> None:
    written = Effective(cleanup=effective(None).recorded()).to_json()["cleanup"]
    assert written == {
        "onSuccess": "Delete",
        "onFailure": "Stop",
        "onCancel": "Stop",
        "onTimeout": "Stop",
        "delay": "0s",
        "retention": "24h",
        "ttlAfterFinished": "168h",
    }
    assert effective(None, CleanupFields.model_validate(written)) == effective(None)


class TestTheResourceItself:
    policy = CleanupPolicy()

    def test_is_due_a_week_after_its_run_once_nothing_is_left(self) -> None:
        # R138
        due = resource_due_at(self.policy, END, sandbox_gone=True, kept=False)
        assert due == END + 7 * DAY

    @pytest.mark.parametrize("finished", [END, None])
    @pytest.mark.parametrize("sandbox_gone", [True, False])
    @pytest.mark.parametrize("kept", [True, False])
    def test_and_never_while_anything_speaks_against_it(
        self, finished: datetime | None, sandbox_gone: bool, kept: bool
    ) -> None:
        due = resource_due_at(self.policy, finished, sandbox_gone=sandbox_gone, kept=kept)
        free = finished is not None and sandbox_gone and not kept
        assert (due is not None) == free

    def test_zero_means_never(self) -> None:
        policy = CleanupPolicy(ttl_after_finished=timedelta(0))
        due = resource_due_at(policy, END, sandbox_gone=True, kept=False)
        assert due is None


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",  # the zero time of Go programs
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",  # as people write "never"
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_the_ends_of_time_are_times_too(text: str) -> None:
    policy = effective(Cleanup.model_validate({"deleteAfter": text, "window": WINDOW}))
    at = datetime.fromisoformat(text)
    assert policy.delete_after == at
    assert schedule(policy, Finish(Outcome.FAILED, END), END).until is not None
    assert schedule(policy, Finish(Outcome.FAILED, at), END).stage is not Stage.ARCHIVE


@given(any_times, short)
def test_adding_to_any_time_a_user_may_write_gives_a_time_in_utc(
    at: datetime, wait: timedelta
) -> None:
    assert later(at, wait).tzinfo is UTC
    assert later(at, wait) >= later(at, timedelta(0))
