"""The record of a deletion: what was decided, tried and found."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from cleanup_values import END, HOUR, TICK, T

from issuesandbox.api.spec_cleanup import CleanupAction
from issuesandbox.api.status import MAX_HISTORY, SandboxCleanup, Status
from issuesandbox.api.status_run import Outcome, PastRun
from issuesandbox.api.status_sandbox import SandboxDeletion
from issuesandbox.domain import deletion_record as records
from issuesandbox.domain.cleanup import CleanupPolicy

DELETE, STOP, ARCHIVE, RETAIN = CleanupAction
ID = "sb-1"
SECOND = timedelta(seconds=1)


def skip(sandbox_id: str | None, outcome: Outcome, action: CleanupAction, **rest: bool) -> Any:
    return records.left_out(sandbox_id, outcome, action, **{"keep_alive": False} | rest)


class TestDecision:
    @pytest.mark.parametrize("sandbox_id", [None, "", " ", "\t\n ", "   "])
    @pytest.mark.parametrize("outcome", Outcome)
    @pytest.mark.parametrize("action", CleanupAction)
    @pytest.mark.parametrize("keep_alive", [True, False])
    def test_without_an_id_there_is_nothing_to_delete(
        self, sandbox_id: str | None, outcome: Outcome, action: CleanupAction, keep_alive: bool
    ) -> None:
        # R91, R121
        record = skip(sandbox_id, outcome, action, keep_alive=keep_alive)
        assert record == SandboxDeletion(
            sandbox_id=None,
            success=False,
            message="Deletion skipped: No sandbox ID provided.",
            retries_used=0,
            error=None,
            skipped=True,
            skip_reason="No sandbox ID provided",
        )
        assert records.begun(sandbox_id) == record

    @pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CANCELLED, Outcome.TIMED_OUT])
    @pytest.mark.parametrize("action", [None, STOP, ARCHIVE, RETAIN])
    def test_a_sandbox_is_preserved_unless_its_run_succeeded(
        self, outcome: Outcome, action: CleanupAction | None
    ) -> None:
        # R90, R121
        record = skip(ID, outcome, action or CleanupPolicy().action(outcome))
        assert (record.sandbox_id, record.success, record.skipped) == (ID, False, True)
        assert record.skip_reason == f"Sandbox preserved for debugging (status: {outcome})"
        assert record.error is None

    def test_a_sandbox_is_deleted_when_its_run_succeeded(self) -> None:
        # R89, R121
        action = CleanupPolicy().action(Outcome.SUCCEEDED)
        assert skip(ID, Outcome.SUCCEEDED, action) is None

    @pytest.mark.parametrize("outcome", Outcome)
    def test_or_when_the_policy_says_so(self, outcome: Outcome) -> None:
        # R98
        assert skip(ID, outcome, DELETE) is None

    @pytest.mark.parametrize("action", [STOP, ARCHIVE, RETAIN])
    def test_the_policy_may_keep_it_after_a_success_too(self, action: CleanupAction) -> None:
        why = f"Sandbox kept by cleanup policy {action} (status: Succeeded)"
        assert skip(ID, Outcome.SUCCEEDED, action).skip_reason == why

    @pytest.mark.parametrize("action", CleanupAction)
    def test_and_so_may_keep_alive_after_a_success_only(self, action: CleanupAction) -> None:
        kept = skip(ID, Outcome.SUCCEEDED, action, keep_alive=True)
        assert kept.skip_reason == "Sandbox kept alive for follow-ups (status: Succeeded)"
        for outcome in (Outcome.FAILED, Outcome.CANCELLED, Outcome.TIMED_OUT):
            assert skip(ID, outcome, action, keep_alive=True) == skip(ID, outcome, action)

    def test_an_id_is_taken_without_the_blanks_around_it(self) -> None:
        assert records.begun(f" {ID}\n").sandbox_id == ID


class TestTries:
    begun = records.begun(ID)

    def test_an_accepted_call_changes_nothing_until_the_sandbox_is_gone(self) -> None:
        assert records.tried(self.begun, None) == self.begun
        done = records.gone(self.begun, ID)
        assert (done.success, done.message, done.retries_used) == (True, "Sandbox deleted.", 0)

    def test_it_is_tried_again_twice_and_each_is_counted(self) -> None:
        # R92
        record, counts = self.begun, []
        for _ in range(5):
            record = records.tried(record, "boom")
            counts.append(record.retries_used)
        assert counts == [0, 1, 2, 2, 2]
        assert (record.success, record.skipped, record.error) == (False, False, "boom")

    def test_the_second_try_may_succeed(self) -> None:
        again = records.tried(records.tried(self.begun, "boom"), None)
        assert (again.retries_used, again.error) == (1, None)
        done = records.gone(again, ID)
        assert (done.success, done.retries_used, done.error) == (True, 1, None)

    def test_the_tries_are_ever_further_apart_whatever_brings_a_pass_forward(self) -> None:
        # R92
        once = records.tried(self.begun, "boom")
        twice = records.tried(once, "boom")
        last = records.tried(twice, "boom")
        for record, after in ((None, 0), (self.begun, 0), (once, 5), (twice, 15), (last, 0)):
            assert records.earliest_try(record, END, T) == END + after * SECOND

    def test_a_clock_that_went_back_does_no_harm(self) -> None:
        record = records.tried(self.begun, "boom")
        before = END - HOUR
        assert records.awaited(record, END, before, T) == record


class TestLimit:
    begun = records.begun(ID)

    def test_what_is_not_gone_after_a_minute_is_an_error(self) -> None:
        # R92
        limit = END + 60 * SECOND
        assert records.awaited(self.begun, END, limit - TICK, T) == self.begun
        late = records.awaited(self.begun, END, limit, T)
        assert (late.success, late.error) == (False, "Not gone within 60 s")

    def test_but_a_known_error_says_more(self) -> None:
        failed = records.tried(self.begun, "boom")
        assert records.awaited(failed, END, END + HOUR, T) == failed

    def test_and_what_is_gone_or_skipped_stays_so(self) -> None:
        for record in (records.gone(self.begun, ID), skip(ID, Outcome.FAILED, STOP)):
            assert records.awaited(record, END, END + HOUR, T) == record

    def test_it_is_a_success_in_the_end_however_late(self) -> None:
        late = records.awaited(self.begun, END, END + HOUR, T)
        done = records.gone(late, ID)
        assert (done.success, done.error) == (True, None)


class TestNotFound:
    message = "Sandbox not found; it was already gone."

    def test_is_a_success_with_its_own_message(self) -> None:
        # R93
        record = records.not_found(records.begun(ID), ID)
        assert (record.success, record.message) == (True, self.message)
        assert (record.sandbox_id, record.error, record.skipped) == (ID, None, False)

    def test_keeps_its_message_when_the_absence_is_confirmed(self) -> None:
        record = records.not_found(records.begun(ID), ID)
        assert records.gone(record, ID) == record

    def test_counts_the_retries_before_it(self) -> None:
        failed = records.tried(records.tried(records.begun(ID), "boom"), "boom")
        assert records.not_found(failed, ID).retries_used == 1

    def test_is_also_what_vanished_before_anybody_asked(self) -> None:
        preserved = skip(ID, Outcome.FAILED, STOP)
        assert records.gone(None, ID).message == self.message
        assert records.gone(preserved, ID).message == self.message

    def test_is_taken_back_when_the_sandbox_turns_up_again(self) -> None:
        again = records.tried(records.not_found(records.begun(ID), ID), None)
        assert not again.success


def every_record() -> list[SandboxDeletion]:
    begun = records.begun(ID)
    failed = records.tried(begun, "boom")
    return [
        begun,
        failed,
        records.awaited(begun, END, END + HOUR, T),
        records.gone(begun, ID),
        records.not_found(failed, ID),
        skip(None, Outcome.SUCCEEDED, DELETE),
        skip(ID, Outcome.SUCCEEDED, RETAIN),
        *(skip(ID, outcome, STOP) for outcome in Outcome),
    ]


@pytest.mark.parametrize("record", every_record(), ids=lambda record: record.message)
def test_every_record_is_whole_and_does_not_contradict_itself(record: SandboxDeletion) -> None:
    # R95: what is absent is absent because there is nothing to say.
    written = record.to_json()
    assert {"success", "message", "retriesUsed", "skipped"} <= written.keys()
    assert ("skipReason" in written) == record.skipped
    assert not (record.success and (record.skipped or record.error))
    assert not (record.skipped and record.error)
    assert ("sandboxId" in written) == (record.skip_reason != records.NO_ID)
    assert SandboxDeletion.model_validate(written) == record


def test_the_record_has_seven_fields() -> None:
    # R95
    fields = {each.alias for each in SandboxDeletion.model_fields.values()}
    assert fields == {
        "sandboxId",
        "success",
        "message",
        "retriesUsed",
        "error",
        "skipped",
        "skipReason",
    }


def test_a_long_error_is_cut_and_not_refused() -> None:
    record = records.tried(records.begun(ID), "ü" * 1000)
    assert record.error is not None
    assert len(record.error.encode()) <= 256


def status_of(**changes: Any) -> Status:
    run = {
        "id": "run-2",
        "phase": "Finished",
        "trigger": "2",
        "startedAt": END - HOUR,
        "finishedAt": END,
        "outcome": "Failed",
        "reason": "AgentFailed",
        "commit": "abc123",
        "pullRequest": {"number": 5, "url": "https://github.test/octo/hello/pull/5"},
        "usage": {"costUSD": "0.25"},
    }
    given_ = {"run": run, "sandbox": {"id": ID, "state": "stopped"}, "summary": {"text": "done"}}
    return Status.model_validate(given_ | changes)


class TestStatus:
    preserved = records.left_out(ID, Outcome.FAILED, STOP, keep_alive=False)

    @pytest.mark.parametrize("record", every_record(), ids=lambda record: record.message)
    def test_the_summary_says_the_same_in_short(self, record: SandboxDeletion) -> None:
        # R96
        status = records.with_record(status_of(), record)
        assert status.sandbox_deletion == record
        assert status.summary is not None
        assert status.summary.text == "done"
        assert status.summary.sandbox_cleanup == SandboxCleanup(
            attempted=not record.skipped,
            success=record.success,
            skipped=record.skipped,
            skip_reason=record.skip_reason,
            error=record.error,
        )

    @pytest.mark.parametrize("record", every_record(), ids=lambda record: record.message)
    def test_no_record_ever_touches_the_run(self, record: SandboxDeletion) -> None:
        # R94
        before = status_of()
        assert records.with_record(before, record).run == before.run

    def test_a_summary_is_made_where_there_is_none(self) -> None:
        status = records.with_record(status_of(summary=None), records.begun(ID))
        assert status.to_json()["summary"] == {
            "sandboxCleanup": {"attempted": True, "success": False, "skipped": False}
        }

    def test_a_skip_moves_to_history_when_the_retention_ends_in_a_deletion(self) -> None:
        assert self.preserved is not None
        kept = records.with_record(status_of(), self.preserved)
        assert kept.history == ()
        deleting = records.with_record(kept, records.begun(ID))
        assert deleting.sandbox_deletion == records.begun(ID)
        assert deleting.history == (
            PastRun(
                id="run-2",
                trigger="2",
                outcome=Outcome.FAILED,
                reason="AgentFailed",
                started_at=END - HOUR,
                finished_at=END,
                sandbox_id=ID,
                commit="abc123",
                pull_request_number=5,
                cost_usd="0.25",
                sandbox_deletion=self.preserved,
            ),
        )
        gone = records.with_record(deleting, records.gone(deleting.sandbox_deletion, ID))
        assert gone.history == deleting.history

    def test_a_deletion_that_was_never_skipped_leaves_the_history_alone(self) -> None:
        deleting = records.with_record(status_of(), records.begun(ID))
        done = records.with_record(deleting, records.gone(deleting.sandbox_deletion, ID))
        assert done.history == ()

    def test_another_skip_replaces_a_skip_without_leaving_a_trace(self) -> None:
        assert self.preserved is not None
        other = records.left_out(ID, Outcome.SUCCEEDED, RETAIN, keep_alive=False)
        assert other is not None
        kept = records.with_record(status_of(), self.preserved)
        assert records.with_record(kept, other).history == ()

    def test_a_run_is_remembered_once_and_keeps_how_its_deletion_was_skipped(self) -> None:
        assert self.preserved is not None
        kept = records.with_record(status_of(), self.preserved)
        deleted = records.with_record(kept, records.gone(records.begun(ID), ID))
        emptied = deleted.model_copy(update={"sandbox": None})
        history = records.remembered(emptied)
        assert [each.id for each in history] == ["run-2"]
        assert (history[0].sandbox_deletion, history[0].sandbox_id) == (self.preserved, ID)

    def test_the_history_has_the_newest_first_and_an_end(self) -> None:
        old = tuple(PastRun(id=f"old-{n}", outcome=Outcome.FAILED) for n in range(MAX_HISTORY))
        history = records.remembered(status_of().model_copy(update={"history": old}))
        assert len(history) == MAX_HISTORY
        assert [each.id for each in history[:2]] == ["run-2", "old-0"]

    def test_a_run_that_goes_on_is_not_remembered_yet(self) -> None:
        run = {"id": "run-2", "phase": "Executing", "startedAt": END}
        assert records.remembered(status_of(run=run)) == ()
        assert records.remembered(status_of(run=None)) == ()


def test_the_durations_can_be_shrunk() -> None:
    fast = replace(T, deletion_limit=SECOND / 10, deletion_retry=SECOND / 100)
    late: datetime = END + SECOND
    record = records.awaited(records.begun(ID), END, late, fast)
    assert record.error == "Not gone within 0.1 s"
