"""A stop does not wait for a state to see, be it that a look is refused or that none is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from tests.fakes.daytona import Tells
from tests.fakes.world import World
from tests.unit.crash.crash_stories import PLACE, create, want_stopped

from issuesandbox.api.status import Phase
from issuesandbox.api.status_sandbox import Intent, IntentKind
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.decide import decide
from issuesandbox.domain.model import ActionKind, Desired, Memory, Observed, Plan, Want
from issuesandbox.domain.naming import Identity
from issuesandbox.domain.sandbox import THROTTLED, Present, SandboxId, SandboxView, Unknown
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.setbacks import setback
from issuesandbox.ports.errors import Busy, Invalid, NotFound

NOW = datetime(2030, 1, 1, tzinfo=UTC)
T = Timings()
ME = Identity("inst", "team", "hello", "uid-1", "octo/hello", 7)
ID = SandboxId("sb-1")
RUNNING = Memory(sandbox_id=ID, name="claude-issue-7", attempt=1, state="started", state_since=NOW)
UNASKED = Observed(Unknown(THROTTLED, "no room"), evidence=True)


def plan_of(want: Want, memory: Memory = RUNNING, observed: Observed = UNASKED) -> Plan:
    since = NOW if want is Want.GONE and memory.cleanup_began is None else None
    base = Desired(ME, want, "claude-issue-7", has_finalizer=True, memory=memory)
    return decide(replace(base, deleting_since=since), observed, NOW, T)


def stops(plan: Plan) -> bool:
    return [(each.kind, each.sandbox_id) for each in plan.actions] == [(ActionKind.STOP, ID)]


@pytest.mark.parametrize("want", [Want.STOPPED, Want.GONE])
def test_what_is_to_end_is_stopped_though_nobody_may_look(want: Want) -> None:
    # R49
    assert stops(plan_of(want))
    assert not plan_of(want).synced, "nothing is proven by it"


@pytest.mark.parametrize("want", [Want.RUNNING, Want.REST])
def test_what_is_not_to_end_is_left_alone(want: Want) -> None:
    assert plan_of(want).actions == ()


@pytest.mark.parametrize("reason", ["DaytonaUnreachable", "Unauthorized", "WrongOrganization"])
def test_any_other_doubt_changes_nothing(reason: str) -> None:
    assert plan_of(Want.STOPPED, observed=Observed(Unknown(reason, "?"))).actions == ()


def test_what_is_not_known_or_does_not_run_is_left_alone() -> None:
    unknown = Memory(first_create=Intent(kind=IntentKind.CREATE, at=NOW, name="n", attempt=1))
    cleanup = Intent(
        kind=IntentKind.DELETE, at=NOW, name="n", attempt=1, sandbox_id=ID, reason=CLEANUP
    )
    for memory in (
        unknown,
        replace(RUNNING, state="stopped"),
        replace(RUNNING, state="archived"),
        replace(RUNNING, state="destroying"),
        replace(RUNNING, intent=cleanup),
    ):
        for want in (Want.STOPPED, Want.GONE):
            assert plan_of(want, memory).actions == (), memory


def test_it_is_sent_again_only_after_a_while() -> None:
    just_sent = replace(UNASKED, unseen_stop_for=T.unknown_check - timedelta(seconds=1))
    assert plan_of(Want.STOPPED, observed=just_sent).actions == ()
    assert stops(plan_of(Want.STOPPED, observed=replace(UNASKED, unseen_stop_for=T.unknown_check)))


@pytest.mark.parametrize("refusal", [Invalid("400"), NotFound("404"), Busy("409")])
def test_a_refusal_proves_nothing_and_is_not_told(refusal: Exception) -> None:
    plan = plan_of(Want.STOPPED)
    assert setback(plan, refusal, T) == plan  # type: ignore[arg-type]


class TestUntold:
    memory = replace(RUNNING, state=None)
    labels = ME.labels("claude-issue-7", 1)

    def seen(self, state: str | None, **sent: timedelta) -> Observed:
        sandbox = SandboxView(id=ID, name="claude-issue-7", state=state, labels=self.labels)
        return Observed(Present(sandbox), evidence=True, **sent)

    @pytest.mark.parametrize("state", [None, "brand_new"], ids=str)
    def test_what_tells_no_state_is_stopped_and_not_believed_to_be(self, state: str | None) -> None:
        # R49
        plan = plan_of(Want.STOPPED, replace(RUNNING, state=state), self.seen(state))
        assert stops(plan)
        assert (plan.phase, plan.synced) == (Phase.STOPPING, False)
        for refusal in (Invalid("400"), Busy("409")):
            assert setback(plan, refusal, T) == plan, "it may rest already; nobody sees it"

    @pytest.mark.parametrize("want", [Want.RUNNING, Want.REST])
    def test_what_is_not_to_end_is_left_alone(self, want: Want) -> None:
        assert plan_of(want, self.memory, self.seen(None)).actions == ()

    def test_it_is_sent_ever_more_seldom(self) -> None:
        soon, minute, long = T.unknown_check, timedelta(minutes=1), T.deletion_pause
        moment = timedelta(seconds=1)
        for took, pause in ((timedelta(0), soon), (minute, minute), (timedelta(days=1), long)):
            early = self.seen(None, unseen_stop_for=pause - moment, unseen_stops_took=took)
            due = self.seen(None, unseen_stop_for=pause, unseen_stops_took=took)
            held = plan_of(Want.STOPPED, self.memory, early)
            assert (held.actions, held.next_check) == ((), soon), "a state is looked for all along"
            assert stops(plan_of(Want.STOPPED, self.memory, due))


def test_a_fleet_that_tells_no_states_is_stopped_but_never_replaced() -> None:
    world = World()
    create(world)
    world.settle()
    world.daytona.tells = Tells.NOTHING
    world.live(900.0)
    (row,) = world.daytona.live()
    want_stopped(world)
    begin = len(world.network.journal)
    world.live(10.0)
    assert row.view.state == "stopped"
    world.live(3_600.0)
    sent = [each.at for each in world.network.journal[begin:] if each.verb == "stop"]
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert gaps == sorted(gaps), "ever more seldom"
    assert len(sent) < 15
    body = world.kube.find(*PLACE)
    assert body is not None
    assert body["status"]["phase"] == "Stopping", "nobody saw it rest"
    world.daytona.tells = Tells.TRUTH
    world.settle()
    assert [each.view.id for each in world.daytona.live()] == [row.view.id]
