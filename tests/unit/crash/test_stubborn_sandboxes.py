"""Sandboxes that keep their name, do not start, or are there twice: bounded, told and replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from tests.fakes.daytona import FakeDaytona, Row, Starts
from tests.fakes.operator_process import INSTALLATION
from tests.fakes.wire import Fate
from tests.fakes.world import TIMINGS, World
from tests.unit.crash.crash_stories import PLACE, create, create_for_runs, succeed

from issuesandbox.domain.naming import Identity
from issuesandbox.ports.errors import Busy, CallError, Invalid, Throttled, Unavailable
from issuesandbox.ports.sandboxes import SandboxOrder

NAME = "claude-issue-7"
MINUTE = 60.0


def served() -> tuple[World, Row]:
    """Have a resource with all that it asks for."""
    world = World()
    create(world)
    world.settle()
    (row,) = world.daytona.live()
    return world, row


def status(world: World) -> dict[str, Any]:
    body = world.kube.find(*PLACE)
    assert body is not None
    found: dict[str, Any] = body["status"]
    return found


def synced(world: World) -> str:
    conditions = status(world)["conditions"]
    return str(next(each["reason"] for each in conditions if each["type"] == "Synced"))


def sent(world: World, verb: str, since: int = 0) -> int:
    return sum(each.verb == verb for each in world.network.journal[since:])


def delete_from_outside(world: World, row: Row) -> None:
    """Delete a running sandbox, which then never ends."""
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    world.daytona.delete(row.view.id)
    world.daytona.witness = judge
    row.ends_at = None


class Stubborn(FakeDaytona):
    """A Daytona that does not start any, or delete one, of its sandboxes."""

    kept = ""
    no_starts: CallError | None = None
    no_recovery: CallError | None = None
    deaf = False
    """Whether it accepts the deletion that it does not carry out."""

    def start(self, sandbox_id: str) -> None:
        if self.no_starts is not None:
            raise self.no_starts
        super().start(sandbox_id)

    def recover(self, sandbox_id: str) -> None:
        if self.no_recovery is not None:
            raise self.no_recovery
        super().recover(sandbox_id)

    def delete(self, sandbox_id: str) -> None:
        if sandbox_id == self.kept:
            if self.deaf:
                return
            raise Busy("Sandbox state change in progress")
        super().delete(sandbox_id)


def stubborn(world: World) -> Stubborn:
    world.daytona.__class__ = Stubborn
    return cast("Stubborn", world.daytona)


class TestKeptNames:
    """R12: an own sandbox that cannot be deleted holds the name."""

    @pytest.mark.parametrize("hidden", [True, False], ids=["hidden", "destroying"])
    def test_after_a_while_the_next_generation_of_the_name_is_used(self, hidden: bool) -> None:
        world, row = served()
        world.daytona.keeps_names = True
        if hidden:
            world.daytona.break_down(row, recoverable=False)
        else:
            delete_from_outside(world, row)
        begin = len(world.network.journal)
        world.live(25 * MINUTE)
        assert synced(world) == "NameTaken"
        assert world.daytona.live() == []
        assert sent(world, "create", begin) <= 20, "it is tried ever more seldom"
        written = sent(world, "patch_status", begin)
        assert written <= 10, f"the status was written {written} times"
        world.live(20 * MINUTE)
        (second,) = world.daytona.live()
        assert second.view.name == f"{NAME}-g2"
        world.settle()
        assert synced(world) == "Synced"

    def test_a_name_that_becomes_free_is_used_again(self) -> None:
        world, row = served()
        world.daytona.keeps_names = True
        world.daytona.break_down(row, recoverable=False)
        world.live(5 * MINUTE)
        world.daytona.free_names()
        world.settle()
        (second,) = world.daytona.live()
        assert second.view.name == NAME

    def test_a_resource_whose_name_is_kept_can_be_deleted(self) -> None:
        world, row = served()
        world.daytona.keeps_names = True
        world.daytona.break_down(row, recoverable=False)
        world.live(5 * MINUTE)
        world.kube.delete(*PLACE)
        world.settle()
        assert world.kube.find(*PLACE) is None


class TestStarts:
    """R24: a start that fails leads to a new sandbox."""

    @pytest.mark.parametrize("starts", [Starts.IDLE, Starts.REFUSED], ids=["idle", "refused"])
    @pytest.mark.parametrize("state", ["stopped", "archived"])
    def test_what_cannot_be_started_is_replaced(self, starts: Starts, state: str) -> None:
        world, row = served()
        world.daytona.starts = starts
        world.daytona.rest(row, state)
        begin = len(world.network.journal)
        world.live(TIMINGS.restore_limit.total_seconds() + 3 * MINUTE)
        world.settle()
        (second,) = world.daytona.live()
        assert second is not row
        limit = {("archived", Starts.IDLE): 200, ("stopped", Starts.IDLE): 12}
        assert sent(world, "start", begin) <= limit.get((state, starts), 2)

    def test_a_start_that_falls_back_twice_has_failed(self) -> None:
        world, row = served()
        for _ in range(2):
            world.daytona.rest(row, "stopped")
            while row.view.state == "stopped":
                world.live(1.0)
            world.daytona.hang(row)
            world.live(15.0)
        assert world.daytona.live() == [row]
        world.daytona.rest(row, "stopped")
        world.settle()
        assert row not in world.daytona.live()

    @pytest.mark.parametrize("trouble", [Throttled("no room"), Unavailable("503")], ids=str)
    def test_whoever_is_not_answered_has_not_failed(self, trouble: CallError) -> None:
        # The disk of a sandbox is not given up because Daytona has no room or is away.
        world, row = served()
        daytona = stubborn(world)
        daytona.no_starts = trouble
        world.daytona.rest(row, "stopped")
        world.live(2 * TIMINGS.start_limit.total_seconds())
        daytona.no_starts = None
        world.settle()
        assert world.daytona.live() == [row]

    def test_one_that_daytona_puts_off_for_too_long_has_failed(self) -> None:
        # An answer without a known text is "not now" as well, for ever maybe.
        world, row = served()
        daytona = stubborn(world)
        daytona.no_starts = Busy("try again later")
        world.daytona.rest(row, "stopped")
        begin = len(world.network.journal)
        world.live(TIMINGS.start_limit.total_seconds() + MINUTE)
        assert sent(world, "start", begin) <= 12
        daytona.no_starts = None
        world.settle()
        assert row not in world.daytona.live()

    def test_a_start_that_was_called_off_is_forgotten(self) -> None:
        world, row = served()
        world.daytona.starts = Starts.IDLE
        world.daytona.rest(row, "stopped")
        world.live(30.0)
        assert "startAskedAt" in status(world)["sandbox"]
        world.kube.edit(*PLACE, {"spec": {"desiredState": "Stopped"}})
        world.settle()
        assert "startAskedAt" not in status(world)["sandbox"]
        world.daytona.starts = Starts.WORK
        world.live(TIMINGS.start_limit.total_seconds())
        world.kube.edit(*PLACE, {"spec": {"desiredState": "Running"}})
        world.settle()
        assert world.daytona.live() == [row]


class TestTwice:
    """R5: never two."""

    def test_the_suffix_is_not_taken_while_a_create_may_land(self) -> None:
        world = World()
        world.operators[0].line.faults = {"create": Fate.LANDS_LATE}
        create(world)
        world.live(1.0)
        world.daytona.plant(NAME, {})
        world.live(MINUTE)
        for row in world.daytona.live():
            world.daytona.vanish(row)
        world.live(2 * MINUTE)
        assert world.oracle.violation is None
        world.settle()
        (row,) = world.daytona.live()
        assert row.view.name == NAME

    def test_a_name_that_is_surely_taken_is_left_at_once(self) -> None:
        world = World()
        world.daytona.plant(NAME, {})
        create(world)
        world.live(20.0)
        assert len(world.daytona.live()) == 2
        assert sent(world, "create") == 2

    @pytest.mark.parametrize("answer", [Fate.ARRIVES, Fate.ANSWER_LOST])
    def test_a_create_is_not_forgotten_when_another_sandbox_is_adopted(self, answer: Fate) -> None:
        world = World()
        gone = Identity(INSTALLATION, *PLACE, "uid-gone", "octo/hello", 7)
        plant_own(world, NAME, gone.labels(NAME, 1))
        world.pass_time(MINUTE)
        world.operators[0].line.faults = {"create": Fate.LANDS_LATE, "relabel": answer}
        create(world)
        world.live(20.0)
        assert sent(world, "relabel") == 1
        world.kube.delete(*PLACE)
        world.settle()
        assert world.oracle.violation is None
        assert world.kube.find(*PLACE) is None
        assert world.daytona.live() == []

    def test_a_second_live_one_is_given_up_and_deleted(self) -> None:
        world, row = served()
        second = plant_own(world, "second", row.view.labels)
        world.settle()
        assert world.daytona.live() == [row]
        assert [each["id"] for each in status(world)["retired"]] == [second]

    def test_but_not_while_the_resource_is_paused(self) -> None:
        world, row = served()
        world.kube.edit(*PLACE, {"metadata": {"annotations": {"issuesandbox.dev/paused": "true"}}})
        plant_own(world, "second", row.view.labels)
        world.live(5 * MINUTE)
        assert len(world.daytona.live()) == 2


def plant_own(world: World, name: str, labels: Mapping[str, str]) -> str:
    judge, world.daytona.witness = world.daytona.witness, lambda verb, row: None
    made = world.daytona.create(SandboxOrder(name, labels))
    world.daytona.witness = judge
    return made.id


class TestRetired:
    def test_one_that_cannot_be_deleted_does_not_stand_in_the_way_of_others(self) -> None:
        world, row = served()
        ids = [plant_own(world, name, row.view.labels) for name in ("stays", "goes")]
        stubborn(world).kept = ids[0]
        at = world.time.now().isoformat().replace("+00:00", "Z")
        given_up = [{"id": each, "name": "x", "reason": "Replaced", "at": at} for each in ids]
        world.kube.edit(*PLACE, {"status": {"retired": given_up}})
        begin = len(world.network.journal)
        world.live(2 * MINUTE)
        assert not world.daytona.rows[ids[1]].live
        world.live(58 * MINUTE)
        deletes = [each for each in world.network.journal[begin:] if each.target == ids[0]]
        tries = [each.at - deletes[0].at for each in deletes if each.verb == "delete"]
        assert 5 <= len(tries) <= 15, "each time later"
        assert tries[3] <= 2 * MINUTE, "but not late at once"


REFUSALS = [Busy("recovered recently, try again later"), Invalid("not in a recoverable state")]


class TestRecovery:
    """R8: once for each incident."""

    @pytest.mark.parametrize("refusal", REFUSALS, ids=["409", "400"])
    def test_a_refused_one_is_not_asked_for_all_the_time(self, refusal: CallError) -> None:
        world, row = served()
        daytona = stubborn(world)
        daytona.no_recovery = refusal
        world.daytona.break_down(row, recoverable=True)
        begin = len(world.network.journal)
        world.live(TIMINGS.recover_limit.total_seconds() + MINUTE)
        assert 1 <= sent(world, "recover", begin) <= 2
        world.settle()
        assert row not in world.daytona.live(), "what cannot be recovered is replaced"

    def test_a_refusal_of_the_moment_costs_nothing(self) -> None:
        world, row = served()
        world.operators[0].line.faults = {"recover": Fate.REFUSED}
        world.daytona.break_down(row, recoverable=True)
        world.settle()
        assert world.daytona.live() == [row]


class TestDeletion:
    """R20: what cannot be deleted is asked for ever more seldom, whatever brings a pass forward."""

    def refused(self) -> tuple[World, Row, Stubborn]:
        world, row = served()
        daytona = stubborn(world)
        daytona.kept = row.view.id
        return world, row, daytona

    def test_of_a_resource_that_is_deleted(self) -> None:
        world, row, daytona = self.refused()
        begin = len(world.network.journal)
        world.kube.delete(*PLACE)
        world.live(60 * MINUTE)
        assert 5 <= sent(world, "delete", begin) <= 15
        assert sent(world, "patch_status", begin) <= 5, "nor is the same told again and again"
        daytona.kept = ""
        world.settle()
        assert not row.live

    def test_after_a_run(self) -> None:
        world = World()
        create_for_runs(world)
        world.settle()
        (row,) = world.daytona.live()
        stubborn(world).kept = row.view.id
        begin = len(world.network.journal)
        succeed(world)
        world.live(60 * MINUTE)
        assert 5 <= sent(world, "delete", begin) <= 15

    def test_one_that_is_accepted_and_does_nothing(self) -> None:
        world, row, daytona = self.refused()
        daytona.deaf = True
        begin = len(world.network.journal)
        world.kube.delete(*PLACE)
        world.live(60 * MINUTE)
        assert 5 <= sent(world, "delete", begin) <= 15
        assert row.live

    def test_another_state_is_another_chance(self) -> None:
        world, row, daytona = self.refused()
        world.kube.delete(*PLACE)
        world.live(20 * MINUTE)
        world.daytona.rest(row, "stopped")
        daytona.kept = ""
        world.live(TIMINGS.fleet_tick.total_seconds() + 1.0)
        assert not row.live

    def test_another_wish_is_another_chance(self) -> None:
        world, row, daytona = self.refused()
        world.daytona.break_down(row, recoverable=False)
        world.live(20 * MINUTE)
        daytona.kept = ""
        world.kube.delete(*PLACE)
        world.live(1.0)
        assert not row.live


def test_what_takes_long_is_looked_at_once_a_tick() -> None:
    # R7
    world, row = served()
    world.daytona.rest(row, "building_snapshot")
    begin = len(world.network.journal)
    world.live(60 * MINUTE)
    assert sent(world, "get", begin) <= 60 * MINUTE / TIMINGS.fleet_tick.total_seconds() + 60
    assert sent(world, "patch_status", begin) == 1
