"""One lease: won, renewed, lost and released, whatever the network and the clocks do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from election_world import Fate, Node, World
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.clock import Clock, SystemClock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.election import Elector, unique_identity
from issuesandbox.ports.errors import Denied, Invalid, NotFound, Throttled, Unavailable
from issuesandbox.ports.leases import LeaseRecord, Leases

HOLD, DURATION = 10.0, 15.0
LOST = Fate(answered=False)
NEVER_SENT = Fate(lands=False)


@dataclass
class Replica:
    elector: Elector
    heard: list[bool] = field(default_factory=list)

    def holds(self) -> bool:
        return self.elector.holds()


@contextmanager
def world_with(timings: Timings) -> Iterator[World[Replica]]:
    def starter(
        identity: str, leases: Leases, clock: Clock
    ) -> tuple[Replica, Coroutine[Any, Any, None]]:
        replica = Replica(Elector("leader", identity, leases, timings, clock))
        return replica, replica.elector.run(replica.heard.append)

    with World(starter) as made:

        def check() -> None:
            holders = [each.identity for each in made.nodes if each.program.holds()]
            assert len(holders) <= 1, f"{holders} at {made.now}"

        made.check = check
        yield made


@pytest.fixture
def world() -> Iterator[World[Replica]]:
    with world_with(Timings()) as made:
        yield made


def led_by(node: Node[Replica]) -> bool:
    return node.program.holds()


def leader_and_standby(world: World[Replica]) -> tuple[Node[Replica], Node[Replica]]:
    leader = world.start()
    world.run(5)
    standby = world.start()
    world.run(30)
    assert led_by(leader)
    return leader, standby


def test_the_first_replica_wins_at_once_and_keeps_the_lease(world: World[Replica]) -> None:
    node = world.start()
    assert world.run(5, until=lambda: led_by(node)) < 0.1
    world.check = lambda: None
    for _ in range(100):
        world.run(1)
        assert led_by(node)
    record = world.store.records["leader"]
    assert (record.holder, record.transitions, record.duration) == ("node-0", 0, DURATION)
    assert node.program.heard == [True]


def test_a_steady_leader_sends_one_write_per_period_and_a_standby_one_read(
    world: World[Replica],
) -> None:
    leader_and_standby(world)
    before = len(world.requests)
    world.run(100)
    sent = [(who, call) for _, who, call in world.requests[before:]]
    assert set(sent) == {("node-0", "replace"), ("node-1", "get")}
    assert 90 <= len(sent) <= 101


def test_a_killed_leader_is_followed_within_twenty_seconds_but_not_while_it_could_act(
    world: World[Replica],
) -> None:
    leader, standby = leader_and_standby(world)
    world.kill(leader)
    taken_after = world.run(60, until=lambda: led_by(standby))
    assert HOLD <= taken_after <= 17.1
    assert world.store.records["leader"].transitions == 1


def test_a_terminated_leader_is_followed_within_three_seconds(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    world.terminate(leader)
    assert world.run(60, until=lambda: led_by(standby)) <= 2.1
    assert leader.task.done()
    assert leader.program.heard == [True, False]


def test_a_leader_stops_before_it_asks_others_to_take_over(world: World[Replica]) -> None:
    leader, _ = leader_and_standby(world)
    world.terminate(leader)
    world.run(1, until=lambda: not led_by(leader))
    assert world.store.records["leader"].holder == leader.identity


def test_a_lease_is_released_although_the_last_renewal_lost_its_answer(
    world: World[Replica],
) -> None:
    leader, standby = leader_and_standby(world)
    count = len(world.requests)
    world.kill(standby)
    world.fates = [LOST]
    world.run(5, until=lambda: len(world.requests) > count)
    world.terminate(leader)
    world.run(1)
    assert world.store.records["leader"].holder == ""


def test_a_release_that_meets_the_renewal_it_cut_off_is_repeated(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    count = len(world.requests)
    world.kill(standby)
    # The renewal lands between the look and the write of the release.
    world.fates = [Fate(outward=0.012, answered=False)]
    world.run(5, until=lambda: len(world.requests) > count)
    world.terminate(leader)
    world.run(1)
    calls = [call for _, _, call in world.requests[count:]]
    assert calls == ["replace", "get", "replace", "get", "replace"]
    assert world.store.records["leader"].holder == ""


def test_a_replica_that_cannot_release_ends_all_the_same(
    world: World[Replica], caplog: pytest.LogCaptureFixture
) -> None:
    leader, _ = leader_and_standby(world)
    leader.cut_off = True
    world.terminate(leader)
    assert world.run(60, until=leader.task.done) <= 2.1
    assert "lease not released" in caplog.messages


def test_a_standby_that_ends_touches_nothing(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    world.terminate(standby)
    world.run(10)
    assert led_by(leader)
    assert (standby.identity, "replace") not in {(who, call) for _, who, call in world.requests}


def test_a_frozen_leader_no_longer_holds_and_does_not_disturb_its_follower(
    world: World[Replica],
) -> None:
    leader, standby = leader_and_standby(world)
    world.freeze(leader, 40)
    world.run(HOLD)
    assert not led_by(leader)
    world.run(20, until=lambda: led_by(standby))
    world.run(60)
    assert led_by(standby)
    assert leader.program.heard == [True, False]


def test_a_leader_frozen_with_a_renewal_under_way_does_not_count_its_late_answer(
    world: World[Replica],
) -> None:
    leader, standby = leader_and_standby(world)
    count = len(world.requests)
    world.run(5, until=lambda: ("node-0", "replace") in [r[1:] for r in world.requests[count:]])
    world.freeze(leader, 40)
    world.run(41)
    assert led_by(standby)
    assert not led_by(leader)


@pytest.mark.parametrize("fate", [NEVER_SENT, Fate(error=Unavailable("refused"))])
def test_a_leader_without_answers_hears_of_its_loss_at_the_deadline(fate: Fate) -> None:
    with world_with(Timings(lease_hold=timedelta(seconds=9))) as world:
        leader = world.start()
        world.run(1)  # the next renewal is due at 2 s, and then always at an even second
        world.fates = [fate] * 20
        lost_after = world.run(60, until=lambda: leader.program.heard == [True, False])
        assert lost_after == pytest.approx(8, abs=0.1)


def test_a_lost_lease_is_contested_again(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    leader.cut_off = True
    world.run(40)
    leader.cut_off = False
    world.run(10)
    assert led_by(standby)
    world.terminate(standby)
    world.run(3)
    assert leader.program.heard == [True, False, True]


def test_a_short_outage_costs_nothing(world: World[Replica]) -> None:
    leader, _ = leader_and_standby(world)
    world.fates = [NEVER_SENT] * 6
    world.run(30)
    assert leader.program.heard == [True]


@pytest.mark.parametrize(
    "error",
    [Unavailable("x"), Denied("x"), Throttled("x"), Invalid("x"), OSError("x"), TimeoutError()],
)
def test_no_failed_request_ends_the_elector_and_a_streak_is_said_once(
    world: World[Replica], error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.fates = [Fate(error=error)] * 20
    node = world.start()
    world.run(39)
    assert not led_by(node)
    assert node.program.elector.failures == 20
    world.run(2)
    assert led_by(node)
    assert caplog.messages == ["lease out of reach", "lease within reach again", "lease won"]


def test_a_created_lease_whose_answer_was_lost_is_still_used(world: World[Replica]) -> None:
    world.fates = [LOST, Fate()]
    node = world.start()
    assert world.run(20, until=lambda: led_by(node)) <= 2.1
    assert world.store.records["leader"].transitions == 0


def test_wall_clocks_that_jump_move_no_lease(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    for days in (1, -2, 400, -400):
        leader.clock.wall_offset = timedelta(days=days)
        standby.clock.wall_offset = timedelta(days=-days)
        world.run(20)
    assert leader.program.heard == [True]
    assert standby.program.heard == []


def test_a_wall_clock_that_stands_still_does_not_hide_renewals(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    leader.clock.wall_stuck = leader.clock.now()
    world.run(60)
    assert leader.program.heard == [True]
    assert standby.program.heard == []


def test_a_lease_deleted_by_hand_stays_with_its_holder(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    del world.store.records["leader"]
    world.run(60)
    assert led_by(leader)
    assert leader.program.heard == [True]
    del world.store.records["leader"]
    world.kill(leader)
    assert world.run(60, until=lambda: led_by(standby)) >= DURATION


def test_a_deleted_lease_is_not_recreated_by_one_that_lost_it_before(world: World[Replica]) -> None:
    leader, standby = leader_and_standby(world)
    world.freeze(leader, 30)
    world.run(30)
    assert led_by(standby)
    standby.cut_off = True
    del world.store.records["leader"]
    world.run(HOLD, until=lambda: led_by(leader))
    assert not led_by(leader)


def test_a_holder_written_by_hand_ends_the_hold_at_the_next_renewal(world: World[Replica]) -> None:
    leader, _ = leader_and_standby(world)
    world.check = lambda: None
    record = world.store.records["leader"]
    world.store.replace(replace(record, holder="somebody"))
    assert world.run(60, until=lambda: not led_by(leader)) <= 2.1


def test_a_holder_that_asks_for_more_patience_gets_it(world: World[Replica]) -> None:
    world.store.create(LeaseRecord(name="leader", holder="somebody", duration=40))
    node = world.start()
    assert 40 <= world.run(100, until=lambda: led_by(node)) <= 40.1


def test_a_holder_that_names_no_duration_is_given_the_usual_one(world: World[Replica]) -> None:
    world.store.create(LeaseRecord(name="leader", holder="somebody"))
    node = world.start()
    assert DURATION <= world.run(100, until=lambda: led_by(node)) <= DURATION + 0.1


def test_what_others_wrote_on_the_lease_is_kept(world: World[Replica]) -> None:
    world.store.create(LeaseRecord(name="leader", metadata={"labels": {"team": "a"}}))
    node = world.start()
    world.run(10)
    assert led_by(node)
    assert world.store.records["leader"].metadata == {"labels": {"team": "a"}}


async def test_acquired_waits_for_the_win() -> None:
    class NoLeases:
        async def get(self, name: str) -> LeaseRecord:
            return LeaseRecord(name=name, version="1")

        async def replace(self, record: LeaseRecord) -> LeaseRecord:
            return record

    leases: Any = NoLeases()
    elector = Elector("leader", "a", leases, Timings(), SystemClock())
    waiting = asyncio.create_task(elector.acquired())
    await asyncio.sleep(0)
    assert not waiting.done()
    running = asyncio.create_task(elector.run(lambda _: None))
    await asyncio.wait_for(waiting, 5)
    assert elector.holds()
    running.cancel()
    await asyncio.wait([running])
    assert not elector.holds()


class SlowLook:
    """Leases that refuse one renewal, and then take so long to show that the hold is over."""

    def __init__(self, time: FakeTime, hold: float) -> None:
        self._time, self._hold = time, hold
        self._record: LeaseRecord | None = None
        self._refuses = True

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        self._record = record
        return record

    async def get(self, name: str) -> LeaseRecord:
        if self._record is None:
            raise NotFound(name)
        self._time.seconds += self._hold
        return self._record

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        if self._refuses:
            self._refuses = False
            raise Unavailable("not now")
        return record


async def test_a_hold_that_lapses_while_it_is_renewed_is_heard_as_lost_and_won_again() -> None:
    short = Timings(lease_retry=timedelta(milliseconds=10))
    time, heard = FakeTime(), list[bool]()
    leases: Any = SlowLook(time, short.lease_hold.total_seconds())
    elector = Elector("leader", "node", leases, short, FakeClock(time))
    since: list[datetime | None] = []

    def hear(won: bool) -> None:
        heard.append(won)
        since.append(elector.held_since)

    running = asyncio.create_task(elector.run(hear))
    async with asyncio.timeout(10):
        while len(heard) < 3:
            await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert heard[:3] == [True, False, True]
    first, _, again = since[:3]
    assert first is not None
    assert again is not None
    assert first < again, "between the two another replica may have acted"


def test_two_processes_on_one_host_have_different_identities() -> None:
    assert unique_identity("host") != unique_identity("host")


@pytest.mark.parametrize("bad", [{"lease_hold": 15}, {"lease_retry": 10}, {"lease_duration": 5}])
def test_timings_that_would_allow_two_holders_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="lease_hold"):
        Timings(**{name: timedelta(seconds=value) for name, value in bad.items()})
