"""The decision table, cell by cell, and the rules around it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from daytona_api_client_async.models.sandbox_state import SandboxState

from issuesandbox.api.status import Phase
from issuesandbox.api.status_sandbox import Intent, IntentKind
from issuesandbox.domain.decide import decide
from issuesandbox.domain.model import (
    NAME_TAKEN,
    ActionKind,
    Desired,
    HeldBack,
    Holder,
    Memory,
    Observed,
    Plan,
    Want,
)
from issuesandbox.domain.naming import Identity
from issuesandbox.domain.sandbox import (
    THROTTLED,
    Absent,
    Present,
    SandboxId,
    SandboxView,
    Unknown,
)
from issuesandbox.domain.states import SIGHTS, Sight, sight_of
from issuesandbox.domain.table import TABLE
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.setbacks import setback
from issuesandbox.ports.errors import Busy

NOW = datetime(2030, 1, 1, tzinfo=UTC)
T = Timings()
ME = Identity("inst", "team", "hello", "uid-1", "Octo/Hello", 7)
ID = SandboxId("sb-1")
STATES = [*(state.value for state in SandboxState), None, "brand_new"]


KNOWN = Memory(sandbox_id=ID, name="claude-issue-7", attempt=1, state_since=NOW)


def view(state: str | None, **changes: object) -> SandboxView:
    given = {
        "id": ID,
        "name": "claude-issue-7",
        "labels": ME.labels("claude-issue-7", 1),
        **changes,
    }
    return SandboxView(state=state, **given)  # type: ignore[arg-type]


def desired(want: Want = Want.RUNNING, **changes: object) -> Desired:
    since = NOW if want is Want.GONE else None
    base = Desired(
        ME, want, "claude-issue-7", has_finalizer=True, deleting_since=since, memory=KNOWN
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def seen(state: str | None, **changes: object) -> Observed:
    return Observed(Present(view(state, **changes)))


def kinds(plan: Plan) -> list[ActionKind]:
    return [action.kind for action in plan.actions]


def create_intent(age: timedelta = timedelta(0)) -> Intent:
    return Intent(kind=IntentKind.CREATE, at=NOW - age, name="claude-issue-7", attempt=1)


def test_every_state_of_the_sdk_has_a_row() -> None:
    # R6: fails when a new SDK brings a state that nobody placed.
    unplaced = {
        state.value
        for state in SandboxState
        if sight_of(view(state.value)) is Sight.STRANGE
        and state is not SandboxState.UNKNOWN_DEFAULT_OPEN_API
    }
    assert unplaced == set()
    assert sight_of(view("brand_new")) is Sight.STRANGE
    assert set(TABLE) == set(Sight)


@pytest.mark.parametrize("want", Want)
@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_cell_yields_a_plan_with_at_most_one_mutation(state: str | None, want: Want) -> None:
    for recoverable in (None, True):
        for late in (timedelta(0), timedelta(days=2)):
            plan = decide(desired(want), seen(state, recoverable=recoverable), NOW + late, T)
            assert sum(action.sandbox_id is not None for action in plan.actions) <= 1
            assert plan == decide(
                desired(want), seen(state, recoverable=recoverable), NOW + late, T
            )
            assert ActionKind.RELEASE not in kinds(plan), "a sandbox that is seen is never let go"


RENAMED = {"name": "DESTROYED_claude-issue-7_1"}
_SEEN_AS: dict[Sight, tuple[list[str | None], dict[str, object]]] = {
    Sight.QUEUED: (["pending_build"], {}),
    Sight.BUILDING: (["building_snapshot"], {}),
    Sight.PULLING: (["pulling_snapshot"], {}),
    Sight.CREATING: (["creating", "unknown"], {}),
    Sight.STRANGE: (["brand_new", None, ""], {}),
    Sight.STARTING: (["starting", "resuming"], {}),
    Sight.RESTORING: (["restoring"], {}),
    Sight.RESHAPING: (["resizing", "snapshotting", "forking"], {}),
    Sight.RUNNING: (["started"], {}),
    Sight.STOPPING: (["stopping", "pausing"], {}),
    Sight.STOPPED: (["stopped", "paused"], {}),
    Sight.ARCHIVED: (["archiving", "archived"], {}),
    Sight.RECOVERABLE: (["error"], {"recoverable": True}),
    Sight.BROKEN: (["error"], {}),
    Sight.BUILD_FAILED: (["build_failed"], {}),
    Sight.DESTROYING: (["destroying", "destroyed"], RENAMED),
    Sight.LINGERING: (["destroying", "destroyed"], {}),
}
_SEEN_WITHOUT_ONE: dict[Sight, tuple[Memory, Observed]] = {
    Sight.UNKNOWN: (KNOWN, Observed(Unknown("DaytonaUnreachable", "down"))),
    Sight.UNASKED: (KNOWN, Observed(Unknown(THROTTLED, "no room"))),
    Sight.NEVER: (Memory(), Observed(Absent())),
    Sight.IN_FLIGHT: (Memory(first_create=create_intent()), Observed(Absent())),
    Sight.VANISHED: (KNOWN, Observed(Absent(), absent_for=timedelta(0))),
    Sight.GONE: (KNOWN, Observed(Absent(), absent_for=T.absence_gap)),
    Sight.FOREIGN: (Memory(), Observed(Present(view("started")), holder=Holder.FOREIGN)),
    Sight.LEFTOVER: (Memory(), Observed(Present(view("started")), holder=Holder.LEFTOVER)),
    Sight.TWIN: (Memory(), Observed(Present(view("started")), holder=Holder.TWIN)),
}


def cases(sight: Sight) -> dict[str, tuple[Memory, Observed]]:
    """Return what may be remembered and seen in the cases of one row, by the state that is seen."""
    if sight in _SEEN_WITHOUT_ONE:
        return {"": _SEEN_WITHOUT_ONE[sight]}
    states, changes = _SEEN_AS[sight]
    return {f"-{state}": (replace(KNOWN, state=state), seen(state, **changes)) for state in states}


def case(sight: Sight) -> tuple[Memory, Observed]:
    """Return what is remembered and seen in the first case of one row."""
    return next(iter(cases(sight).values()))


def test_every_known_state_is_seen_in_its_row() -> None:
    shown = {state for states, _ in _SEEN_AS.values() for state in states}
    assert shown - set(SIGHTS) == {"brand_new", None, ""}
    assert set(SIGHTS) <= shown


NOTHING: list[ActionKind] = []
CREATE = [ActionKind.WRITE_INTENT, ActionKind.CREATE]
REPLACE = [ActionKind.WRITE_INTENT, ActionKind.DELETE]
RECOVER = [ActionKind.WRITE_INTENT, ActionKind.RECOVER]
ADOPT, START, STOP = [ActionKind.ADOPT], [ActionKind.START], [ActionKind.STOP]
DELETE, RELEASE = [ActionKind.DELETE], [ActionKind.RELEASE]
CELLS = {
    # what is seen: what is done if it is wanted running, stopped, gone, left as it is
    Sight.UNKNOWN: (NOTHING, NOTHING, NOTHING, NOTHING),
    Sight.UNASKED: (NOTHING, STOP, STOP, NOTHING),
    Sight.NEVER: (CREATE, NOTHING, RELEASE, NOTHING),
    Sight.IN_FLIGHT: (CREATE, NOTHING, NOTHING, NOTHING),
    Sight.VANISHED: (NOTHING, NOTHING, NOTHING, NOTHING),
    Sight.GONE: (CREATE, NOTHING, RELEASE, NOTHING),
    Sight.FOREIGN: (CREATE, NOTHING, RELEASE, NOTHING),
    Sight.LEFTOVER: (ADOPT, NOTHING, RELEASE, NOTHING),
    Sight.TWIN: (NOTHING, NOTHING, RELEASE, NOTHING),
    Sight.QUEUED: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.BUILDING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.PULLING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.CREATING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.STRANGE: (NOTHING, STOP, DELETE, NOTHING),
    Sight.STARTING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.RESTORING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.RESHAPING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.RUNNING: (NOTHING, STOP, DELETE, NOTHING),
    Sight.STOPPING: (NOTHING, NOTHING, DELETE, NOTHING),
    Sight.STOPPED: (START, NOTHING, DELETE, NOTHING),
    Sight.ARCHIVED: (START, NOTHING, DELETE, NOTHING),
    Sight.RECOVERABLE: (RECOVER, NOTHING, DELETE, NOTHING),
    Sight.BROKEN: (REPLACE, NOTHING, DELETE, NOTHING),
    Sight.BUILD_FAILED: (REPLACE, NOTHING, DELETE, NOTHING),
    Sight.DESTROYING: (CREATE, NOTHING, NOTHING, NOTHING),
    Sight.LINGERING: (NOTHING, NOTHING, NOTHING, NOTHING),
}
GONE = {
    Want.RUNNING: CREATE,
    Want.STOPPED: NOTHING,
    Want.GONE: RELEASE,
    Want.REST: NOTHING,
}
COLUMNS = (Want.RUNNING, Want.STOPPED, Want.GONE, Want.REST)
EVERY_CELL = [
    pytest.param(sight, want, actions, *seen_as, id=f"{sight.name}/{want.name}{state}")
    for sight in Sight
    for want, actions in zip(COLUMNS, CELLS[sight], strict=True)
    for state, seen_as in cases(sight).items()
]


@pytest.mark.parametrize(("sight", "want", "expected", "memory", "observed"), EVERY_CELL)
def test_the_table_gives_the_action(
    sight: Sight, want: Want, expected: list[ActionKind], memory: Memory, observed: Observed
) -> None:
    # R3, R4, R7, R8
    plan = decide(desired(want, memory=memory), observed, NOW, T)
    assert (plan.row, kinds(plan)) == (f"{sight.name}/{want.name}", expected)


LATE = {
    # what is done, if it is wanted running, once the limit has passed
    Sight.QUEUED: (T.queue_limit, REPLACE),
    Sight.BUILDING: (T.build_limit, REPLACE),
    Sight.PULLING: (T.pull_limit, REPLACE),
    Sight.CREATING: (T.create_limit, REPLACE),
    Sight.STRANGE: (T.create_limit, NOTHING),
    Sight.STARTING: (T.start_limit, REPLACE),
    Sight.RESTORING: (T.restore_limit, REPLACE),
    Sight.RESHAPING: (T.reshape_limit, NOTHING),
    Sight.STOPPING: (T.stop_limit, REPLACE),
    Sight.STOPPED: (T.start_limit, REPLACE),
    Sight.ARCHIVED: (T.restore_limit, REPLACE),
    Sight.LINGERING: (T.deletion_stuck, CREATE),
}


EVERY_LATE_ONE = [
    pytest.param(sight, *seen_as, id=f"{sight.name}{state}")
    for sight in LATE
    for state, seen_as in cases(sight).items()
]


@pytest.mark.parametrize(("sight", "memory", "observed"), EVERY_LATE_ONE)
def test_a_transition_that_never_ends_is_replaced_at_its_limit(
    sight: Sight, memory: Memory, observed: Observed
) -> None:
    # R22, R24
    limit, expected = LATE[sight]
    asked = desired(memory=replace(memory, start_asked_at=NOW))
    just_before = decide(asked, observed, NOW + limit - timedelta(milliseconds=1), T)
    assert kinds(just_before) == CELLS[sight][0]
    assert just_before.next_check is not None
    assert kinds(decide(asked, observed, NOW + limit, T)) == expected


@pytest.mark.parametrize(("sight", "memory", "observed"), EVERY_LATE_ONE)
@pytest.mark.parametrize(
    "before",
    [{"state": "started"}, {"sandbox_id": SandboxId("sb-0")}],
    ids=["another state", "another sandbox"],
)
def test_what_is_seen_for_the_first_time_has_not_lasted(
    sight: Sight, memory: Memory, observed: Observed, before: dict[str, Any]
) -> None:
    # R18: it ran for days, and a moment ago somebody began to stop it, or an answer had no state.
    plan = decide(desired(memory=replace(memory, **before)), observed, NOW + timedelta(days=3), T)
    assert kinds(plan) == CELLS[sight][0]


def test_every_limit_of_the_table_is_tested() -> None:
    limited = {sight for sight, row in TABLE.items() if row.running.limit is not None}
    assert limited == {*LATE, Sight.RECOVERABLE}


def test_a_recoverable_error_is_recovered_once_and_then_replaced() -> None:
    # R8
    error = seen("error", recoverable=True, error_reason="timeout while starting")
    first = decide(desired(), error, NOW, T)
    assert kinds(first) == [ActionKind.WRITE_INTENT, ActionKind.RECOVER]
    announced = replace(desired().memory, intent=first.actions[0].intent)
    assert kinds(decide(desired(memory=announced), error, NOW, T)) == [ActionKind.RECOVER]
    asked = replace(announced, recovered_at=NOW)
    soon, late = NOW + timedelta(seconds=5), NOW + T.recover_limit
    assert kinds(decide(desired(memory=asked), error, soon, T)) == []
    assert kinds(decide(desired(memory=asked), error, late, T)) == [
        ActionKind.WRITE_INTENT,
        ActionKind.DELETE,
    ]


def test_a_resource_may_give_a_start_another_limit() -> None:
    late, own = NOW + timedelta(seconds=5), timedelta(seconds=5)
    for sight, expected in ((Sight.STARTING, REPLACE), (Sight.RESTORING, NOTHING)):
        memory, observed = case(sight)
        asked = desired(memory=memory, start_limit=own)
        assert kinds(decide(asked, observed, late, T)) == expected, "only a start has this limit"


def test_after_so_many_broken_sandboxes_it_gives_up_visibly() -> None:
    memory = replace(desired().memory, failures=2)
    plan = decide(desired(memory=memory), seen("error"), NOW, T)
    assert kinds(plan) == []
    assert (plan.phase, plan.reason) == (Phase.FAILED, "AttemptsExhausted")


def test_the_first_create_is_announced_before_it_is_sent() -> None:
    # R5
    fresh = desired(memory=Memory(), has_finalizer=False)
    plan = decide(fresh, Observed(Absent()), NOW, T)
    assert kinds(plan) == [ActionKind.ANNOUNCE_FIRST_CREATE, ActionKind.CREATE]
    assert plan.actions[1].name == "claude-issue-7"


def test_an_announced_create_is_repeated_under_the_same_name_and_attempt() -> None:
    memory = Memory(first_create=create_intent())
    plan = decide(desired(memory=memory), Observed(Absent()), NOW, T)
    assert kinds(plan) == [ActionKind.WRITE_INTENT, ActionKind.CREATE]
    assert (plan.actions[1].name, plan.actions[1].attempt) == ("claude-issue-7", 1)
    again = plan.actions[0].intent
    assert again is not None
    assert again.repeated, "that there may be two creates must not be forgotten"
    announced = decide(desired(memory=Memory(intent=again)), Observed(Absent()), NOW, T)
    assert kinds(announced) == [ActionKind.CREATE], "it is written down once"


def test_one_absence_is_not_believed_where_work_could_be_lost() -> None:
    # R18
    once = Observed(Absent(), absent_for=timedelta(0))
    almost = Observed(Absent(), absent_for=T.absence_gap * 0.99)
    twice = Observed(Absent(), absent_for=T.absence_gap)
    assert kinds(decide(desired(), once, NOW, T)) == []
    assert kinds(decide(desired(), almost, NOW, T)) == []
    soon = replace(almost, absent_for=T.absence_gap * 0.6)
    left = [decide(desired(), each, NOW, T).next_check for each in (once, soon)]
    assert left == [T.absence_gap, T.absence_gap * 0.4], "a look in between delays nothing"
    plan = decide(desired(), twice, NOW, T)
    assert kinds(plan) == [ActionKind.WRITE_INTENT, ActionKind.CREATE]
    assert plan.actions[1].attempt == 2


@pytest.mark.parametrize("want", Want)
def test_when_daytona_cannot_be_asked_nothing_changes(want: Want) -> None:
    # R18
    plan = decide(desired(want), Observed(Unknown("DaytonaUnreachable", "down")), NOW, T)
    assert kinds(plan) == []
    assert (plan.synced, plan.reason) == (False, "DaytonaUnreachable")
    assert plan.next_check is not None


class TestDeletion:
    absent = Observed(Absent(), absent_for=T.absence_gap)

    def test_the_resource_goes_only_after_two_absences(self) -> None:
        once = replace(self.absent, absent_for=timedelta(0))
        assert kinds(decide(desired(Want.GONE), once, NOW, T)) == []
        assert kinds(decide(desired(Want.GONE), self.absent, NOW, T)) == [ActionKind.RELEASE]

    def test_and_not_before_a_create_can_no_longer_land(self) -> None:
        deleting = desired(Want.GONE, memory=Memory(first_create=create_intent()))
        for age, expected in (
            (timedelta(0), []),
            (T.landing_horizon - timedelta(seconds=1), []),
            (T.landing_horizon, [ActionKind.RELEASE]),
        ):
            observed = replace(self.absent, create_age=age)
            assert kinds(decide(deleting, observed, NOW, T)) == expected

    def test_nor_before_the_other_one_of_a_repeated_create_can_no_longer_land(self) -> None:
        # R79: the unanswered create lands when the sandbox of the answered one is deleted.
        memory = Memory(sandbox_id=ID, repeated_create_at=NOW)
        deleting = desired(Want.GONE, memory=memory)
        early = replace(self.absent, create_age=T.landing_horizon - timedelta(seconds=1))
        late = replace(self.absent, create_age=T.landing_horizon)
        assert kinds(decide(deleting, early, NOW, T)) == []
        assert kinds(decide(deleting, late, NOW, T)) == [ActionKind.RELEASE]

    def test_an_announced_create_counts_from_the_deletion_since_it_is_sent_until_then(self) -> None:
        old = create_intent()
        deleted_at = old.at + timedelta(hours=1)
        memory = Memory(first_create=old)
        assert desired(memory=memory).last_create_at == old.at
        deleting = desired(Want.GONE, memory=memory, deleting_since=deleted_at)
        assert deleting.last_create_at == deleted_at

    def test_orphaning_leaves_the_sandbox_alone(self) -> None:
        leaving = desired(Want.GONE, leave_behind=True)
        assert kinds(decide(leaving, seen("started"), NOW, T)) == [ActionKind.DISOWN]
        disowned = Observed(Present(view("started")), holder=Holder.FOREIGN)
        assert kinds(decide(leaving, disowned, NOW, T)) == [ActionKind.RELEASE]
        unknown = Observed(Unknown("DaytonaUnreachable", "down"))
        assert kinds(decide(leaving, unknown, NOW, T)) == []
        assert not decide(leaving, unknown, NOW, T).stuck
        assert decide(leaving, unknown, NOW + T.deletion_stuck, T).stuck

    def test_orphaning_believes_in_an_absence_only_at_the_second_look(self) -> None:
        leaving = desired(Want.GONE, leave_behind=True)
        once = replace(self.absent, absent_for=timedelta(0))
        assert kinds(decide(leaving, once, NOW, T)) == []
        assert kinds(decide(leaving, self.absent, NOW, T)) == [ActionKind.RELEASE]

    def test_a_resource_that_is_held_back_makes_nothing(self) -> None:
        held_back = HeldBack("Queued", "all 20 sandboxes are in use")
        fresh = desired(memory=Memory(), has_finalizer=False, held_back=held_back)
        plan = decide(fresh, Observed(Absent()), NOW, T)
        assert (kinds(plan), plan.phase, plan.admitted) == ([], Phase.QUEUED, False)

    def test_a_resource_that_never_had_anything_needs_nothing(self) -> None:
        fresh = desired(Want.GONE, memory=Memory(), has_finalizer=False)
        assert kinds(decide(fresh, self.absent, NOW, T)) == []


class TestForeign:
    foreign = Observed(Present(view("started")), holder=Holder.FOREIGN)

    def test_a_name_held_by_somebody_else_is_stepped_around(self) -> None:
        # R12
        answered = create_intent().model_copy(update={"reason": "NameTaken"})
        plan = decide(desired(memory=Memory(intent=answered)), self.foreign, NOW, T)
        assert kinds(plan) == CREATE
        assert plan.actions[1].name.startswith("claude-issue-7-")

    @pytest.mark.parametrize("repeated", [False, True])
    def test_but_not_while_a_create_may_land_under_that_name(self, repeated: bool) -> None:
        # It was sent until the name was seen to be taken, so it counts from there.
        intent = create_intent(timedelta(hours=1)).model_copy(update={"repeated": repeated})
        open_create = desired(memory=Memory(intent=intent))
        for held_for, expected in (
            (timedelta(0), NOTHING),
            (T.landing_horizon - timedelta(seconds=1), NOTHING),
            (T.landing_horizon, CREATE),
        ):
            observed = replace(self.foreign, held_for=held_for)
            plan = decide(open_create, observed, NOW, T)
            assert (kinds(plan), plan.next_check is not None) == (expected, True)

    @pytest.mark.parametrize("holder", [Holder.FOREIGN, Holder.LEFTOVER, Holder.TWIN])
    @pytest.mark.parametrize("want", Want)
    def test_a_namesake_does_not_prove_that_the_known_one_is_gone(
        self, want: Want, holder: Holder
    ) -> None:
        # R18
        namesake = Present(view("started", id=SandboxId("sb-theirs")))
        once = Observed(namesake, holder=holder, absent_for=timedelta(0))
        assert kinds(decide(desired(want), once, NOW, T)) == NOTHING
        twice = replace(once, absent_for=T.absence_gap)
        plan = decide(desired(want), twice, NOW, T)
        assert (plan.row, kinds(plan)) == (f"GONE/{want.name}", GONE[want])

    def test_or_fails_where_the_policy_says_so(self) -> None:
        plan = decide(desired(memory=Memory(), suffix_on_collision=False), self.foreign, NOW, T)
        assert (kinds(plan), plan.reason) == ([], "NameCollision")

    @pytest.mark.parametrize("want", Want)
    def test_and_is_never_touched(self, want: Want) -> None:
        plan = decide(desired(want), self.foreign, NOW, T)
        assert all(action.sandbox_id is None for action in plan.actions)


def test_a_paused_resource_changes_nothing() -> None:
    for state in STATES:
        assert kinds(decide(desired(paused=True), seen(state), NOW, T)) == []


def test_what_was_asked_to_end_goes_on_ending_while_paused() -> None:
    stopping = decide(desired(Want.STOPPED, paused=True), seen("started"), NOW, T)
    deleting = decide(desired(Want.GONE, paused=True), seen("started"), NOW, T)
    assert kinds(stopping) == [ActionKind.STOP]
    assert kinds(deleting) == [ActionKind.DELETE]


class TestKin:
    def test_a_leftover_of_a_gone_resource_is_adopted(self) -> None:
        # R12
        observed = Observed(Present(view("started")), holder=Holder.LEFTOVER)
        taken = create_intent().model_copy(update={"reason": NAME_TAKEN})
        plan = decide(desired(memory=Memory(intent=taken)), observed, NOW, T)
        assert kinds(plan) == [ActionKind.ADOPT]
        unanswered = desired(memory=Memory(first_create=create_intent()))
        announced, adopting = decide(unanswered, observed, NOW, T).actions
        assert (announced.kind, adopting) == (ActionKind.WRITE_INTENT, plan.actions[0])
        assert announced.intent is not None
        assert announced.intent.repeated, "what was sent may still land beside it"

    @pytest.mark.parametrize("want", [Want.RUNNING, Want.STOPPED, Want.REST])
    def test_a_twin_owns_the_issue_and_is_not_touched(self, want: Want) -> None:
        # R13
        observed = Observed(Present(view("started")), holder=Holder.TWIN)
        plan = decide(desired(want, memory=Memory()), observed, NOW, T)
        assert kinds(plan) == []
        if want is not Want.REST:
            assert (plan.admitted, plan.reason) == (False, "DuplicateIssue")

    @pytest.mark.parametrize("holder", [Holder.LEFTOVER, Holder.TWIN, Holder.FOREIGN])
    def test_deleting_the_resource_lets_it_go_and_leaves_them(self, holder: Holder) -> None:
        observed = Observed(Present(view("started")), holder=holder)
        assert kinds(decide(desired(Want.GONE), observed, NOW, T)) == [ActionKind.RELEASE]


class TestRetired:
    ids = tuple(SandboxId(f"old-{n}") for n in range(5))
    gone = Observed(Absent(), absent_for=T.absence_gap)

    def test_the_resource_stays_until_every_retired_sandbox_is_confirmed_gone(self) -> None:
        memory = replace(desired().memory, unconfirmed=self.ids[:1])
        assert kinds(decide(desired(Want.GONE, memory=memory), self.gone, NOW, T)) == []

    def test_five_unconfirmed_ones_stop_new_attempts(self) -> None:
        four = replace(desired().memory, unconfirmed=self.ids[:4])
        five = replace(desired().memory, unconfirmed=self.ids)
        assert ActionKind.CREATE in kinds(decide(desired(memory=four), self.gone, NOW, T))
        plan = decide(desired(memory=five), self.gone, NOW, T)
        assert (kinds(plan), plan.reason) == ([], "RetiredNotGone")

    @pytest.mark.parametrize("sight", [each for each in Sight if CELLS[each][0]])
    def test_of_five_unconfirmed_ones_none_is_made_in_any_row(self, sight: Sight) -> None:
        memory, observed = case(sight)
        plan = decide(desired(memory=replace(memory, unconfirmed=self.ids)), observed, NOW, T)
        # What is there is still brought back.
        if CELLS[sight][0] in (START, RECOVER, ADOPT):
            assert kinds(plan) == CELLS[sight][0]
        else:
            held = (NOTHING, "RetiredNotGone", Phase.FAILED)
            assert (kinds(plan), plan.reason, plan.phase) == held
            assert plan.next_check is not None, "nothing else would look whether one is gone"

    @pytest.mark.parametrize("sight", LATE)
    def test_nor_when_a_limit_has_passed(self, sight: Sight) -> None:
        memory, observed = case(sight)
        memory = replace(memory, unconfirmed=self.ids, start_asked_at=NOW)
        plan = decide(desired(memory=memory), observed, NOW + timedelta(days=2), T)
        assert kinds(plan) == NOTHING

    def test_a_create_whose_announcement_filled_the_list_waits_too(self) -> None:
        intent = create_intent().model_copy(update={"attempt": 2})
        memory = Memory(name="claude-issue-7", intent=intent, unconfirmed=self.ids)
        held = decide(desired(memory=memory), Observed(Absent()), NOW, T)
        assert (kinds(held), held.reason) == ([], "RetiredNotGone")
        room = replace(memory, unconfirmed=self.ids[:4])
        assert kinds(decide(desired(memory=room), Observed(Absent()), NOW, T)) == CREATE

    def test_a_deletion_for_replacing_that_was_announced_waits_too(self) -> None:
        intent = Intent(kind=IntentKind.DELETE, at=NOW, sandbox_id=ID, reason="Replacing")
        memory = replace(KNOWN, intent=intent, unconfirmed=self.ids)
        assert kinds(decide(desired(memory=memory), seen("error"), NOW, T)) == NOTHING
        assert kinds(decide(desired(Want.GONE, memory=memory), seen("error"), NOW, T)) == DELETE

    def test_attempts_that_are_used_up_are_told_of_first(self) -> None:
        memory = replace(KNOWN, failures=2, unconfirmed=self.ids)
        assert decide(desired(memory=memory), seen("error"), NOW, T).reason == "AttemptsExhausted"


class TestBrokenSandbox:
    def test_nothing_is_replaced_while_the_breaker_is_open(self) -> None:
        observed = replace(seen("error"), breaker="too many")
        plan = decide(desired(), observed, NOW, T)
        assert (kinds(plan), plan.reason) == ([], "BreakerOpen")

    @pytest.mark.parametrize(
        ("state", "changes", "held"),
        [
            ("build_failed", {}, False),
            ("error", {"worn": True}, False),
            ("error", {"worn": True, "ran": True}, True),
            ("error", {"ran": True}, True),
        ],
        ids=["build failed", "ordered anew", "edited after it ran", "ran"],
    )
    def test_the_breaker_guards_no_empty_disk_that_was_ordered_wrongly(
        self, state: str, changes: dict[str, Any], held: bool
    ) -> None:
        memory = replace(desired().memory, **changes)
        plan = decide(desired(memory=memory), replace(seen(state), breaker="too many"), NOW, T)
        assert (kinds(plan) == REPLACE, plan.reason == "BreakerOpen") == (not held, held)

    def test_a_confirmed_absence_never_minds_the_breaker(self) -> None:
        observed = Observed(Absent(), absent_for=T.absence_gap, breaker="too many")
        assert ActionKind.CREATE in kinds(decide(desired(), observed, NOW, T))

    def test_one_that_cannot_be_deleted_for_long_is_left_for_the_next_generation(self) -> None:
        asked = Intent(
            kind=IntentKind.DELETE, at=NOW, name="claude-issue-7", attempt=1, sandbox_id=ID
        )
        memory = replace(desired().memory, intent=asked)
        soon = decide(desired(memory=memory), seen("error"), NOW, T)
        assert kinds(soon) == [ActionKind.DELETE], "announced once, however often it is tried"
        assert not soon.last_try
        late = NOW + T.deletion_stuck
        last = decide(desired(memory=memory), seen("error"), late, T)
        # Daytona may have been away all the time: it is asked once more.
        assert (kinds(last), last.last_try) == ([ActionKind.DELETE], True)
        refused = asked.model_copy(update={"reason": "Undeletable"})
        memory = replace(memory, intent=refused)
        plan = decide(desired(memory=memory), seen("error"), late, T)
        assert kinds(plan) == [ActionKind.WRITE_INTENT, ActionKind.CREATE]
        assert plan.actions[1].name == "claude-issue-7-g2"
        third = replace(memory, name="claude-issue-7-g3")
        assert kinds(decide(desired(memory=third), seen("error"), late, T)) == []


class TestStuckDeletion:
    def test_it_says_so_after_a_while_and_goes_on_trying(self) -> None:
        observed = seen("starting")
        assert not decide(desired(Want.GONE), observed, NOW, T).stuck
        plan = decide(desired(Want.GONE), observed, NOW + T.deletion_stuck, T)
        assert plan.stuck
        assert kinds(plan) == [ActionKind.DELETE]

    def test_a_person_can_let_it_go(self) -> None:
        plan = decide(desired(Want.GONE, forced=True), seen("starting"), NOW, T)
        assert kinds(plan) == [ActionKind.RELEASE]


def test_a_used_sandbox_is_renewed_once_half_of_its_auto_stop_has_passed() -> None:
    idle = timedelta(minutes=30)
    fresh = seen("started", auto_stop_interval=60, last_activity_at=NOW)
    assert kinds(decide(desired(), fresh, NOW + idle - timedelta(seconds=1), T)) == []
    plan = decide(desired(), fresh, NOW + idle, T)
    assert kinds(plan) == [ActionKind.RENEW]
    assert not plan.needs_evidence
    never_stops = seen("started", auto_stop_interval=0, last_activity_at=NOW)
    assert kinds(decide(desired(), never_stops, NOW + timedelta(days=9), T)) == []


def test_a_create_in_flight_is_waited_for_when_nothing_is_wanted_any_more() -> None:
    # R58
    stopped = desired(Want.STOPPED, memory=Memory(first_create=create_intent()))
    soon = Observed(Absent(), create_age=timedelta(0))
    late = Observed(Absent(), create_age=T.landing_horizon)
    assert decide(stopped, soon, NOW, T).next_check is not None
    assert decide(stopped, late, NOW, T).next_check is None


@pytest.mark.parametrize(("minutes", "seconds"), [(0.25, 1), (1, 4), (3, 12), (60, 12)])
def test_a_transition_is_looked_at_all_the_time_at_first_and_then_once_a_tick(
    minutes: float, seconds: float
) -> None:
    # R7
    since = NOW - timedelta(minutes=minutes)
    lasting = replace(KNOWN, state="building_snapshot", state_since=since)
    plan = decide(desired(memory=lasting), seen("building_snapshot"), NOW, T)
    assert plan.next_check == timedelta(seconds=seconds)
    new = decide(desired(memory=lasting), seen("starting"), NOW, T)
    assert new.next_check == T.settle_check, "what just began is looked at as often as ever"


class TestDeletionPace:
    def gaps(self, asked: Desired, first: datetime) -> list[float]:
        """Return the seconds between the tries of a deletion that is refused each time."""
        now, gaps = first, []
        for _ in range(12):
            plan = decide(asked, seen("started"), now, T)
            assert kinds(plan) == [ActionKind.DELETE]
            wait = setback(plan, Busy("a change is under way"), T).next_check
            assert wait is not None
            gaps.append(wait.total_seconds())
            now += wait
        return gaps

    def test_a_refused_deletion_is_tried_ever_more_seldom_but_never_given_up(self) -> None:
        gaps = self.gaps(desired(Want.GONE), NOW)
        assert gaps[:8] == [5, 5, 10, 20, 40, 80, 160, 320]
        assert set(gaps[8:]) == {600}

    def test_so_is_the_cleanup_after_a_run(self) -> None:
        # R92
        intent = Intent(
            kind=IntentKind.DELETE, at=NOW, name="x", attempt=1, sandbox_id=ID, reason="Cleanup"
        )
        memory = replace(desired().memory, intent=intent)
        asked = desired(Want.GONE, memory=memory, deleting_since=None)
        assert self.gaps(asked, NOW + T.deletion_limit)[:3] == [60, 120, 240]


def test_relabelling_keeps_what_others_wrote_on_the_sandbox() -> None:
    # R10: Daytona replaces all labels at once
    theirs = {"code-toolbox-language": "python"}
    labels = {**view("started").labels, "issuesandbox.dev/uid": "uid-gone", **theirs}
    found = Present(view("started", labels=labels))
    adopted = decide(desired(), Observed(found, holder=Holder.LEFTOVER), NOW, T).actions[0]
    assert adopted.labels == {**ME.labels("claude-issue-7", 1), **theirs}
    going = desired(Want.GONE, leave_behind=True)
    left = decide(going, Observed(found), NOW, T).actions[0]
    assert left.kind is ActionKind.DISOWN
    assert left.labels.keys() == labels.keys() - {"issuesandbox.dev/installation"}
