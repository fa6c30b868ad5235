"""The decision holds its promises for everything that can be remembered and seen."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import MAX_RETIRED, Status
from issuesandbox.api.status_sandbox import Intent, IntentKind, Retired, SandboxStatus
from issuesandbox.domain.cleanup import CleanupPolicy
from issuesandbox.domain.decide import decide
from issuesandbox.domain.defaults import Defaults
from issuesandbox.domain.model import (
    DAYTONA_MUTATIONS,
    ActionKind,
    Desired,
    Holder,
    Memory,
    Observed,
    Revival,
    Want,
)
from issuesandbox.domain.naming import Identity
from issuesandbox.domain.sandbox import Absent, Present, SandboxId, SandboxView, Unknown
from issuesandbox.domain.states import SIGHTS
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Facts, Wanted
from issuesandbox.engine.acting import Did, findings_of
from issuesandbox.engine.lodging import lodged, with_intent
from issuesandbox.engine.reading import Reading

NOW = datetime(2030, 1, 1, tzinfo=UTC)
TIMINGS = Timings()
ME = Identity("ours", "team", "hello", "uid-1", "octo/hello", 7)
NAME = "claude-issue-7"
BODY = {
    "metadata": {"name": "hello", "namespace": "team"},
    "spec": {"issue": {"repository": "octo/hello", "number": 7}},
}

ages = st.sampled_from([timedelta(seconds=each) for each in (-3600, 0, 1, 20, 130, 700, 90_000)])
moments = ages.map(lambda age: NOW - age)
ids = st.sampled_from([SandboxId("sandbox-1"), SandboxId("sandbox-2")])
intents = st.builds(
    Intent,
    kind=st.sampled_from(IntentKind),
    at=moments,
    name=st.sampled_from([NAME, f"{NAME}-abcdef", None]),
    sandbox_id=st.none() | ids,
    attempt=st.none() | st.integers(min_value=0, max_value=9),
)
memories = st.builds(
    Memory,
    sandbox_id=st.none() | ids,
    name=st.none() | st.just(NAME),
    state_since=st.none() | moments,
    attempt=st.integers(min_value=0, max_value=9),
    failures=st.integers(min_value=0, max_value=4),
    intent=st.none() | intents,
    first_create=st.none() | intents,
    unconfirmed=st.lists(ids, max_size=5).map(tuple),
)
desires = st.builds(
    Desired,
    identity=st.just(ME),
    want=st.sampled_from(Want),
    base_name=st.just(NAME),
    revival=st.sampled_from(Revival),
    archive=st.booleans(),
    has_finalizer=st.booleans(),
    deleting_since=st.none() | moments,
    forced=st.booleans(),
    paused=st.booleans(),
    leave_behind=st.booleans(),
    suffix_on_collision=st.booleans(),
    memory=memories,
)
sandboxes = st.builds(
    SandboxView,
    id=ids,
    name=st.just(NAME),
    state=st.sampled_from([*SIGHTS, None, "brand_new"]),
    desired_state=st.sampled_from([None, "started", "destroyed"]),
    recoverable=st.none() | st.booleans(),
    labels=st.just(ME.labels(NAME, 1)),
    auto_stop_interval=st.none() | st.just(60),
    last_activity_at=st.none() | moments,
)
sights = st.one_of(
    st.builds(Observed, st.just(Unknown("DaytonaUnreachable", "down")), evidence=st.just(True)),
    st.builds(
        Observed,
        st.just(Absent()),
        evidence=st.just(True),
        absent_for=st.none() | ages,
        create_age=st.none() | ages,
        fleet_is_clear=st.booleans(),
    ),
    st.builds(
        Observed,
        sandboxes.map(Present),
        evidence=st.booleans(),
        holder=st.sampled_from(Holder),
        create_age=st.none() | ages,
        fleet_is_clear=st.booleans(),
        breaker=st.none() | st.just("too many are unwell"),
    ),
)


@settings(max_examples=1_000, deadline=None)
@given(desires, sights)
def test_a_decision_is_total_repeatable_and_makes_at_most_one_change(
    desired: Desired, observed: Observed
) -> None:
    plan = decide(desired, observed, NOW, TIMINGS)
    assert plan == decide(desired, observed, NOW, TIMINGS)
    changes = [each for each in plan.actions if each.kind in DAYTONA_MUTATIONS]
    assert len(changes) <= 1
    assert plan.next_check is None or plan.next_check > timedelta(0)


@settings(max_examples=1_000, deadline=None)
@given(desires, sights)
def test_a_create_is_always_announced_under_its_own_name(
    desired: Desired, observed: Observed
) -> None:
    plan = decide(desired, observed, NOW, TIMINGS)
    announced = [each.intent for each in plan.actions if each.intent is not None]
    if not announced and desired.memory.open_create is not None:
        announced = [desired.memory.open_create]
    for each in plan.actions:
        if each.kind is ActionKind.CREATE:
            assert [intent.name or desired.name for intent in announced] == [each.name]


@settings(max_examples=1_000, deadline=None)
@given(desires, sights)
def test_what_cannot_be_seen_or_is_not_ours_is_left_alone(
    desired: Desired, observed: Observed
) -> None:
    kinds = {each.kind for each in decide(desired, observed, NOW, TIMINGS).actions}
    if isinstance(observed.sandbox, Unknown):
        assert kinds <= {ActionKind.RELEASE}
        assert not kinds or desired.leave_behind or desired.forced
    elif observed.holder is Holder.LEFTOVER:
        assert kinds & DAYTONA_MUTATIONS <= {ActionKind.ADOPT, ActionKind.CREATE}
    elif observed.holder is not Holder.OURS:
        assert kinds & DAYTONA_MUTATIONS <= {ActionKind.CREATE}


# Those who want a sandbox: few of the others would ask for another one.
seekers = st.builds(
    Desired,
    identity=st.just(ME),
    want=st.just(Want.RUNNING),
    base_name=st.just(NAME),
    has_finalizer=st.booleans(),
    announced=st.booleans(),
    broken=st.booleans(),
    memory=memories,
)
FULL = tuple(SandboxId(f"retired-{number}") for number in range(MAX_RETIRED))


@settings(max_examples=1_000, deadline=None)
@given(seekers, sights)
def test_no_sandbox_is_made_or_replaced_while_the_list_of_retired_ones_is_full(
    desired: Desired, observed: Observed
) -> None:
    full = replace(desired, memory=replace(desired.memory, unconfirmed=FULL))
    kinds = {each.kind for each in decide(full, observed, NOW, TIMINGS).actions}
    assert not kinds & {ActionKind.CREATE, ActionKind.DELETE}


@settings(max_examples=1_000, deadline=None)
@given(seekers | desires, sights, st.integers(min_value=0, max_value=MAX_RETIRED))
def test_whatever_a_plan_announces_and_does_the_status_can_be_written(
    desired: Desired, observed: Observed, given_up: int
) -> None:
    desired = replace(desired, memory=replace(desired.memory, unconfirmed=FULL[:given_up]))
    status, plan = _status_of(desired.memory), decide(desired, observed, NOW, TIMINGS)
    for each in plan.actions:
        if each.kind is ActionKind.WRITE_INTENT and each.intent is not None:
            status = with_intent(status, each.intent).fitted()
    done = tuple(each.kind for each in plan.actions)
    findings = findings_of(observed, plan, Did(done, None, None))
    status = lodged(status, _reading(desired), plan, findings, NOW).fitted()
    kept = {each.id for each in status.retired if each.gone_at is None}
    assert set(FULL[:given_up]) <= kept, "one was forgotten that may still be there"


def _status_of(memory: Memory) -> Status:
    return Status(
        sandbox=SandboxStatus(id=memory.sandbox_id, name=memory.name, attempt=memory.attempt),
        intent=memory.intent,
        retired=tuple(Retired(id=each, reason="Gone", at=NOW) for each in memory.unconfirmed),
    )


def _reading(desired: Desired) -> Reading:
    policy = CleanupPolicy()
    return Reading(
        resource=IssueSandbox.model_validate(BODY),
        facts=Facts(policy=policy),
        wish=Wanted(desired.want, "AtRest", ""),
        policy=policy,
        desired=desired,
        defaults=Defaults(),
    )


@settings(max_examples=1_000, deadline=None)
@given(desires, sights)
def test_a_resource_is_let_go_only_when_nothing_of_it_is_left(
    desired: Desired, observed: Observed
) -> None:
    kinds = [each.kind for each in decide(desired, observed, NOW, TIMINGS).actions]
    if ActionKind.RELEASE not in kinds:
        return
    assert desired.deleting
    if desired.leave_behind or desired.forced:
        return
    assert not desired.memory.unconfirmed
    assert isinstance(observed.sandbox, Absent) or observed.holder is not Holder.OURS
    if desired.memory.open_create is not None:
        assert observed.create_age is not None
        assert observed.create_age >= TIMINGS.landing_horizon
