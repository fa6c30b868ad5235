"""What a resource wants of its sandbox, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from cleanup_values import DAY, END, HOUR, MINUTE, TICK, Durations, T, facts, moments, window
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.api.conditions import Condition
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec_cleanup import CleanupAction
from issuesandbox.api.status_run import Outcome
from issuesandbox.api.status_sandbox import Intent, IntentKind, SandboxStatus
from issuesandbox.domain.cleanup import CleanupPolicy, Finish, Stage, schedule
from issuesandbox.domain.model import Memory, Revival, Want
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.states import Sight
from issuesandbox.domain.wanted import Facts, Lodging, Turn, Wanted, facts_of, stop_reason, wanted

POLICY = CleanupPolicy()
UP = Lodging(state="started", since=END - HOUR)
DOWN = Lodging(state="stopped", since=END, stopped_by_us=True)
UNSAFE = (Outcome.CANCELLED, Outcome.TIMED_OUT)


def given_(**changes: Any) -> Facts:
    return Facts(**{"policy": POLICY, "sandbox": UP} | changes)


def finished(outcome: Outcome, **changes: Any) -> Facts:
    return given_(**{"finish": Finish(outcome, END), "settled": True} | changes)


def asks(known: Facts, now: datetime = END) -> tuple[Want, datetime | None]:
    answer = wanted(known, T, now)
    return answer.want, answer.until


class TestRunning:
    def test_a_sandbox_without_a_run_is_wanted_for_ever(self) -> None:
        assert asks(given_(sandbox_only=True)) == (Want.RUNNING, None)
        assert asks(given_(sandbox_only=True, sandbox=None)) == (Want.RUNNING, None)
        assert asks(given_(sandbox_only=True), END + 99 * DAY) == (Want.RUNNING, None)

    @pytest.mark.parametrize("sandbox", [None, UP, DOWN])
    def test_an_admitted_run_wants_it(self, sandbox: Lodging | None) -> None:
        assert asks(given_(turn=Turn.ADMITTED, sandbox=sandbox)) == (Want.RUNNING, None)

    @pytest.mark.parametrize("outcome", Outcome)
    def test_so_does_the_next_run_after_any_end(self, outcome: Outcome) -> None:
        assert asks(finished(outcome, turn=Turn.ADMITTED), END + 9 * DAY)[0] is Want.RUNNING

    def test_a_run_that_waits_to_be_admitted_starts_nothing(self) -> None:
        assert asks(given_(turn=Turn.WAITING, sandbox=None)) == (Want.REST, None)
        assert asks(given_(turn=Turn.WAITING, sandbox=replace(DOWN, since=None)))[0] is Want.REST

    @pytest.mark.parametrize("outcome", Outcome)
    @pytest.mark.parametrize("keep_alive", [True, False])
    def test_a_missing_sandbox_is_not_made_again_after_a_run(
        self, outcome: Outcome, keep_alive: bool
    ) -> None:
        # R33
        after = finished(outcome, sandbox=None, keep_alive=keep_alive)
        assert asks(after) == (Want.REST, None)


class TestEnding:
    @pytest.mark.parametrize("turn", Turn)
    def test_a_deleted_resource_wants_it_gone(self, turn: Turn) -> None:
        assert asks(given_(deleting=True, turn=turn)) == (Want.GONE, None)
        assert asks(given_(deleting=True, stop=True, sandbox_only=True)) == (Want.GONE, None)

    @pytest.mark.parametrize("turn", Turn)
    @pytest.mark.parametrize("only", [True, False])
    def test_desired_state_stopped_stops_it(self, turn: Turn, only: bool) -> None:
        known = given_(stop=True, turn=turn, sandbox_only=only)
        assert asks(known) == (Want.STOPPED, None)
        assert asks(replace(known, paused=True)) == (Want.STOPPED, None)

    def test_a_stop_under_way_is_carried_through_although_running_is_desired_again(self) -> None:
        assert asks(given_(stopping=True, turn=Turn.ADMITTED)) == (Want.STOPPED, None)

    def test_a_stopped_resource_is_cleaned_up_by_its_policy_all_the_same(self) -> None:
        known = finished(Outcome.CANCELLED, stop=True, sandbox=DOWN)
        assert asks(known) == (Want.STOPPED, END + 24 * HOUR)
        assert asks(known, END + 24 * HOUR) == (Want.GONE, None)
        assert asks(replace(known, paused=True), END + DAY) == (Want.STOPPED, None)
        archive = replace(known, policy=CleanupPolicy(on_cancel=CleanupAction.ARCHIVE))
        assert wanted(archive, T, END).archive

    @pytest.mark.parametrize("outcome", UNSAFE)
    @pytest.mark.parametrize("turn", Turn)
    @pytest.mark.parametrize("action", CleanupAction)
    def test_what_was_ended_is_stopped_first_whatever_comes_after(
        self, outcome: Outcome, turn: Turn, action: CleanupAction
    ) -> None:
        # R72
        policy = CleanupPolicy(on_cancel=action, on_timeout=action, delay=HOUR)
        known = finished(outcome, turn=turn, settled=False, policy=policy, paused=True)
        assert asks(known) == (Want.STOPPED, None)

    @pytest.mark.parametrize("change", [{"deleting": True}, {"stop": True}, {"stopping": True}])
    def test_a_push_that_was_decided_keeps_it_for_a_moment(self, change: dict[str, bool]) -> None:
        known = given_(turn=Turn.ADMITTED, hold_until=END, **change)
        assert asks(known, END - TICK) == (Want.REST, END)
        assert asks(known, END)[0] in (Want.STOPPED, Want.GONE)

    def test_but_a_run_that_goes_on_wants_it_running_meanwhile(self) -> None:
        known = given_(turn=Turn.ADMITTED, hold_until=END)
        assert asks(known, END - TICK)[0] is Want.RUNNING

    @pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT])
    def test_work_that_is_to_be_saved_brings_the_same_sandbox_back(self, outcome: Outcome) -> None:
        until = END + T.work_hold
        known = finished(outcome, settled=False, hold_until=until)
        answer = wanted(known, T, END)
        assert (answer.want, answer.until) == (Want.RUNNING, until)
        assert answer.revival is Revival.SAME
        for change in ({"stop": True}, {"deleting": True}):
            assert asks(replace(known, **change)) == (Want.REST, until)


class TestCleanup:
    def test_success_deletes_at_once(self) -> None:
        # R89
        assert asks(finished(Outcome.SUCCEEDED)) == (Want.GONE, None)

    @pytest.mark.parametrize("outcome", [Outcome.FAILED, *UNSAFE])
    def test_anything_else_stops_it_and_deletes_it_a_day_later(self, outcome: Outcome) -> None:
        # R90, R97
        known = finished(outcome)
        assert asks(known) == (Want.STOPPED, END + DAY)
        stopped = replace(known, sandbox=DOWN)
        assert asks(stopped) == (Want.REST, END + DAY)
        assert asks(stopped, END + DAY) == (Want.GONE, None)

    @pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED])
    def test_nothing_begins_before_the_run_is_published_and_told(self, outcome: Outcome) -> None:
        known = finished(outcome, settled=False)
        # Nothing is asked of the sandbox, so that there is nothing to write down either.
        assert asks(known) == (Want.RUNNING, END + T.idle_limit)

    @pytest.mark.parametrize("outcome", Outcome)
    def test_nothing_begins_while_the_resource_is_paused(self, outcome: Outcome) -> None:
        assert asks(finished(outcome, paused=True), END + 9 * DAY) == (Want.REST, None)

    @pytest.mark.parametrize("outcome", Outcome)
    def test_the_next_trigger_holds_it_off(self, outcome: Outcome) -> None:
        waiting = finished(outcome, turn=Turn.WAITING, sandbox=DOWN)
        assert asks(waiting, END + 9 * DAY) == (Want.REST, None)

    @pytest.mark.parametrize("turn", Turn)
    def test_a_deletion_that_has_begun_is_finished_whatever_is_edited(self, turn: Turn) -> None:
        retain = CleanupPolicy(on_success=CleanupAction.RETAIN)
        known = finished(Outcome.SUCCEEDED, deletion_began=True, policy=retain, turn=turn)
        assert asks(known) == (Want.GONE, None)
        assert asks(replace(known, sandbox_only=True, paused=True)) == (Want.GONE, None)

    def test_it_waits_for_its_window_stopped(self) -> None:
        night = CleanupPolicy(window=window("22:00", "23:00"))
        known = finished(Outcome.SUCCEEDED, policy=night)
        opens = END + 10 * HOUR
        assert asks(known) == (Want.STOPPED, opens)
        assert asks(known, opens) == (Want.GONE, opens + HOUR)
        assert asks(known, opens + HOUR) == (Want.STOPPED, opens + DAY)

    def test_retain_only_lets_it_go_idle(self) -> None:
        retain = CleanupPolicy(on_failure=CleanupAction.RETAIN)
        known = finished(Outcome.FAILED, policy=retain)
        assert asks(known) == (Want.REST, END + T.idle_limit)
        assert asks(known, END + T.idle_limit) == (Want.STOPPED, None)
        assert asks(replace(known, sandbox=DOWN), END + 99 * DAY) == (Want.REST, None)

    def test_archive_is_asked_for_until_it_is_done(self) -> None:
        policy = CleanupPolicy(on_failure=CleanupAction.ARCHIVE)
        answers = []
        for state, seen in (("started", False), ("stopped", True), ("archived", True)):
            lodging = Lodging(state, END, stopped_by_us=seen)
            answer = wanted(finished(Outcome.FAILED, policy=policy, sandbox=lodging), T, END)
            answers.append((answer.want, answer.archive))
        assert answers == [(Want.STOPPED, True), (Want.STOPPED, True), (Want.REST, False)]

    @pytest.mark.parametrize("action", [CleanupAction.STOP, CleanupAction.ARCHIVE])
    def test_a_person_may_start_a_kept_sandbox_and_look_into_it(
        self, action: CleanupAction
    ) -> None:
        began = END + HOUR
        used = replace(UP, since=began, last_activity=began + HOUR, stopped_by_us=True)
        policy = CleanupPolicy(on_failure=action)
        known = finished(Outcome.FAILED, policy=policy, sandbox=used)
        quiet = began + HOUR + T.idle_limit
        assert asks(known, began) == (Want.REST, quiet)
        assert asks(known, quiet) == (Want.STOPPED, END + DAY)
        assert asks(known, END + DAY) == (Want.GONE, None)


class TestKeepAlive:
    known = finished(Outcome.SUCCEEDED, keep_alive=True)

    def test_keeps_it_running_for_half_an_hour_after_the_run(self) -> None:
        # R66
        end = END + 30 * MINUTE
        assert asks(self.known) == (Want.RUNNING, end)
        assert asks(self.known, end) == (Want.STOPPED, end + DAY)

    def test_or_after_its_last_use(self) -> None:
        used = replace(self.known, sandbox=replace(UP, last_activity=END + HOUR))
        assert asks(used, END + HOUR) == (Want.RUNNING, END + HOUR + 30 * MINUTE)

    def test_brings_nothing_back_that_is_stopped_broken_or_missing(self) -> None:
        # R33
        assert wanted(self.known, T, END).revival is Revival.NONE
        assert wanted(given_(turn=Turn.ADMITTED), T, END).revival is Revival.ANY
        assert wanted(given_(sandbox_only=True), T, END).revival is Revival.ANY

    def test_is_over_once_we_stopped_it_though_daytona_counts_the_stop_as_use(self) -> None:
        end = END + 30 * MINUTE
        down = replace(DOWN, since=end + MINUTE, last_activity=end + MINUTE)
        assert asks(replace(self.known, sandbox=down), end + MINUTE) == (
            Want.REST,
            end + MINUTE + DAY,
        )

    def test_is_over_too_when_somebody_had_it_stopped_and_running_is_desired_again(self) -> None:
        down = replace(DOWN, since=END + MINUTE)
        assert asks(replace(self.known, sandbox=down), END + MINUTE)[0] is Want.REST

    @pytest.mark.parametrize("outcome", [Outcome.FAILED, *UNSAFE])
    def test_means_nothing_after_another_end(self, outcome: Outcome) -> None:
        assert asks(finished(outcome, keep_alive=True)) == asks(finished(outcome))

    def test_ends_when_it_is_taken_back(self) -> None:
        assert asks(replace(self.known, keep_alive=False)) == (Want.GONE, None)

    def test_does_not_hold_a_stop_off(self) -> None:
        assert asks(replace(self.known, stop=True))[0] is Want.STOPPED


class TestIdle:
    def test_a_sandbox_that_no_run_uses_is_stopped_after_a_quarter_of_an_hour(self) -> None:
        # R83
        waiting = given_(turn=Turn.WAITING, sandbox=replace(UP, since=END))
        quiet = END + 15 * MINUTE
        assert asks(waiting) == (Want.REST, quiet)
        assert asks(waiting, quiet - TICK) == (Want.REST, quiet)
        assert asks(waiting, quiet) == (Want.STOPPED, None)
        assert wanted(waiting, T, quiet).reason == "Idle"

    def test_the_stop_is_followed_until_it_is_seen(self) -> None:
        stopping = given_(sandbox=Lodging(state="stopping", since=END))
        assert asks(stopping) == (Want.STOPPED, None)

    @pytest.mark.parametrize("state", [None, "stopped", "archived", "error", "brand_new"])
    def test_what_does_not_run_is_left_alone(self, state: str | None) -> None:
        assert asks(given_(sandbox=Lodging(state=state, since=END)), END + DAY) == (Want.REST, None)

    def test_without_a_known_time_nothing_is_stopped(self) -> None:
        assert asks(given_(sandbox=Lodging(state="started"))) == (Want.REST, None)


@given(facts, moments, st.floats(0, 1, exclude_max=True))
def test_the_answer_holds_until_the_time_it_names(known: Facts, now: datetime, part: float) -> None:
    answer = wanted(known, T, now)
    if answer.until is None:
        later = now + part * 999 * DAY
    else:
        assert answer.until > now
        later = now + min(part * (answer.until - now), answer.until - now - TICK)
    again = wanted(known, T, later)
    assert (again.want, again.archive, again.revival) == (
        answer.want,
        answer.archive,
        answer.revival,
    )


@given(facts, moments, moments)
def test_once_the_deletion_began_it_stays_due(known: Facts, now: datetime, later: datetime) -> None:
    known = replace(known, hold_until=None)
    if wanted(known, T, now).want is Want.GONE:
        began = replace(known, deletion_began=True)
        assert wanted(began, T, later).want is Want.GONE


@given(facts, moments, st.timedeltas(timedelta(0), 400 * DAY))
def test_without_a_window_a_due_deletion_stays_due_even_before_it_began(
    known: Facts, now: datetime, wait: timedelta
) -> None:
    known = replace(known, policy=replace(known.policy, window=None))
    if wanted(known, T, now).want is Want.GONE:
        assert wanted(known, T, now + wait).want is Want.GONE


@given(facts, moments)
def test_a_stopped_or_deleted_resource_never_wants_its_sandbox_running(
    known: Facts, now: datetime
) -> None:
    ends = known.deleting or known.stop or known.stopping
    assert not (ends and wanted(known, T, now).want is Want.RUNNING)


class TestStopReason:
    STOP = Wanted(Want.STOPPED, "RunFailed", "")
    RUN = Wanted(Want.RUNNING, "RunAdmitted", "")
    REST = Wanted(Want.REST, "AtRest", "")

    def test_it_is_written_when_the_stop_is_seen_and_not_before(self) -> None:
        assert stop_reason(None, self.STOP, Sight.RUNNING) is None
        assert stop_reason(None, self.STOP, Sight.STOPPING) is None
        assert stop_reason(None, self.STOP, Sight.STOPPED) == "RunFailed"
        assert stop_reason(None, self.STOP, Sight.ARCHIVED) == "RunFailed"

    def test_the_first_reason_stays(self) -> None:
        assert stop_reason("Idle", self.STOP, Sight.STOPPED) == "Idle"
        assert stop_reason("Idle", self.REST, Sight.RUNNING) == "Idle"

    def test_it_goes_when_the_sandbox_is_wanted_running_and_runs(self) -> None:
        assert stop_reason("Idle", self.RUN, Sight.STARTING) == "Idle"
        assert stop_reason("Idle", self.RUN, Sight.RUNNING) is None

    def test_its_reasons_fit_the_schema(self) -> None:
        for outcome in Outcome:
            reason = wanted(finished(outcome, settled=False, sandbox=UP), T, END + DAY).reason
            assert SandboxStatus(stop_reason=reason).stop_reason == reason
            Condition.model_validate(
                {"type": "Ready", "status": "False", "reason": reason}
                | {"message": "", "lastTransitionTime": END}
            )


ID = SandboxId("sb-1")
AT = "2030-01-01T12:00:00Z"
RUN = {"id": "run-1", "phase": "Executing", "startedAt": AT, "trigger": "1"}
ENDED = RUN | {"phase": "Finished", "outcome": "Failed", "finishedAt": AT}


def read(
    spec: dict[str, Any], status: dict[str, Any], memory: Memory | None = None, **rest: Any
) -> Facts:
    """Return the facts of a resource given as Kubernetes stores it."""
    body = {
        "metadata": {"name": "hello"} | rest.pop("metadata", {}),
        "spec": {"issue": {"repository": "octo/hello", "number": 7}} | spec,
        "status": status,
    }
    resource = IssueSandbox.model_validate(body)
    memory = memory or Memory(sandbox_id=ID, state="started", state_since=END)
    return facts_of(resource, memory, POLICY, T, **{"admitted": False} | rest)


class TestReading:
    def test_a_resource_without_a_run_asks_for_a_sandbox_only(self) -> None:
        known = read({}, {})
        assert (known.sandbox_only, known.turn, known.finish) == (True, Turn.NONE, None)

    @pytest.mark.parametrize(
        ("trigger", "run", "admitted", "turn"),
        [
            (None, None, False, Turn.WAITING),
            (None, None, True, Turn.ADMITTED),
            ("1", RUN, False, Turn.ADMITTED),  # it began, so it was admitted
            ("2", RUN, False, Turn.ADMITTED),
            ("1", ENDED, True, Turn.NONE),
            ("2", ENDED, False, Turn.WAITING),
            ("2", ENDED, True, Turn.ADMITTED),
            (None, ENDED | {"trigger": None}, True, Turn.NONE),
        ],
    )
    def test_a_new_trigger_is_a_new_turn(
        self, trigger: str | None, run: dict[str, Any] | None, admitted: bool, turn: Turn
    ) -> None:
        known = read({"run": {"trigger": trigger}}, {"run": run}, admitted=admitted)
        assert known.turn is turn

    def test_a_finished_run_is_settled_at_its_last_phase_only(self) -> None:
        for phase in ("Executing", "Publishing", "Finalizing", "Finished"):
            known = read({"run": {"trigger": "1"}}, {"run": ENDED | {"phase": phase}})
            assert known.finish == Finish(Outcome.FAILED, END)
            assert known.settled is (phase == "Finished")
            assert known.settled_at == (END if phase == "Finished" else None)

    def test_work_that_is_nowhere_else_is_kept_as_after_a_failure(self) -> None:
        for reason, stage in (("PublishDisabled", Stage.STOP), ("NoChanges", Stage.DELETE)):
            run = ENDED | {"outcome": "Succeeded", "reason": reason}
            finish = read({"run": {"trigger": "1"}}, {"run": run}).finish
            assert finish is not None
            assert finish.outcome is Outcome.SUCCEEDED
            assert schedule(CleanupPolicy(), finish, END).stage is stage

    def test_a_stop_counts_as_under_way_until_the_outcome_is_written(self) -> None:
        asked = {"stopRequestedAt": AT}
        assert read({"run": {}}, {"run": RUN} | asked).stopping
        assert not read({"run": {}}, {"run": ENDED} | asked).stopping

    def test_an_unconfirmed_push_holds_the_sandbox(self) -> None:
        push = {"commit": "a1", "old": "00", "at": AT}
        assert read({"run": {}}, {"run": RUN | {"publish": push}}).hold_until == END + T.work_hold
        done = push | {"confirmedAt": AT}
        assert read({"run": {}}, {"run": RUN | {"publish": done}}).hold_until is None

    def test_work_may_be_saved_for_a_moment_after_the_outcome(self) -> None:
        for phase, held in (("Executing", True), ("Collecting", True), ("Finalizing", False)):
            known = read({"run": {}}, {"run": ENDED | {"phase": phase}})
            assert (known.hold_until is not None) is held

    @pytest.mark.parametrize(
        ("outcome", "spec", "metadata", "held_for"),
        [
            ("Failed", {}, {}, T.rescue_hold),
            ("TimedOut", {}, {}, T.work_hold),
            ("Failed", {"desiredState": "Stopped"}, {}, T.work_hold),
            ("Failed", {}, {"deletionTimestamp": AT}, T.work_hold),
        ],
    )
    def test_and_only_for_a_moment_where_something_has_to_end(
        self, outcome: str, spec: Any, metadata: Any, held_for: timedelta
    ) -> None:
        run = ENDED | {"phase": "Collecting", "outcome": outcome}
        known = read({"run": {}} | spec, {"run": run}, metadata=metadata)
        assert known.hold_until == END + held_for

    def test_only_our_own_cleanup_of_this_very_sandbox_counts_as_begun(self) -> None:
        def began(**changes: Any) -> bool:
            intent = {"kind": IntentKind.DELETE, "at": END, "reason": "Cleanup", "sandbox_id": ID}
            memory = Memory(sandbox_id=ID, intent=Intent(**intent | changes))
            return read({"run": {}}, {"run": ENDED}, memory).deletion_began

        assert began()
        assert not began(reason=None)  # a replacement
        assert not began(sandbox_id="sb-0")
        assert not began(kind=IntentKind.RECOVER)

    def test_there_is_a_sandbox_as_long_as_one_is_known_or_may_land(self) -> None:
        landing = Memory(intent=Intent(kind=IntentKind.CREATE, at=END))
        assert read({}, {}, Memory()).sandbox is None
        assert read({}, {}, landing).sandbox == Lodging()
        stopped = {"sandbox": {"id": ID, "stopReason": "Idle"}}
        assert read({}, stopped, last_activity=END).sandbox == Lodging(
            "started", END, END, stopped_by_us=True
        )

    def test_what_the_user_asked_for_is_read(self) -> None:
        metadata = {
            "annotations": {"issuesandbox.dev/paused": "true"},
            "deletionTimestamp": AT,
        }
        spec = {"desiredState": "Stopped", "run": {"keepAlive": True}}
        known = read(spec, {}, metadata=metadata)
        assert (known.paused, known.deleting, known.stop) == (True, True, True)
        assert known.keep_alive
        plain = read({"run": {}}, {})
        assert (plain.paused, plain.deleting, plain.stop) == (False, False, False)
        assert not plain.keep_alive

    @pytest.mark.parametrize(
        "change",
        [
            {"deleting": True},
            {"paused": True},
            {"sandbox_only": True},
            {"turn": Turn.WAITING},
            {"turn": Turn.ADMITTED},
            {"settled": False},
            {"finish": None},
        ],
    )
    def test_a_resource_of_which_more_may_come_is_not_settled(self, change: Any) -> None:
        # R138
        known = finished(Outcome.FAILED)
        assert known.settled_at == END
        assert replace(known, **change).settled_at is None


def test_a_kept_alive_sandbox_lives_its_whole_life_in_order() -> None:
    # R66, R97: each answer is carried out, each `until` is waited for.
    lodging, now, story = UP, END, []
    known = finished(Outcome.SUCCEEDED, keep_alive=True)
    durations = Durations()
    while True:
        answer = wanted(replace(known, sandbox=lodging), durations, now)
        story.append((answer.want, now - END))
        if answer.want is Want.STOPPED:
            seen = stop_reason(None, answer, Sight.STOPPED)
            lodging = Lodging("stopped", now, last_activity=now, stopped_by_us=seen is not None)
        elif answer.until is None:
            break
        else:
            now = answer.until
    half = timedelta(minutes=30)
    assert story == [
        (Want.RUNNING, timedelta(0)),
        (Want.STOPPED, half),
        (Want.REST, half),
        (Want.GONE, half + DAY),
    ]
