"""The gate lets calls through in the order of their urgency, and refuses rather than waits long."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from issuesandbox.clock import SystemClock
from issuesandbox.domain.buckets import Allowance, Bucket, NoLimit, Priority, Refusal
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.rates import RateGate, on_behalf_of
from issuesandbox.ports.errors import Throttled

LIFECYCLE = Bucket.LIFECYCLE


class HandClock(SystemClock):
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def gate() -> RateGate:
    return RateGate(SystemClock(), Timings(gate_patience=timedelta(seconds=2)))


async def test_calls_pass_at_once_while_there_is_room(gate: RateGate) -> None:
    gate.learn(LIFECYCLE, Allowance(100, 100, 60))
    for priority in Priority:
        await asyncio.wait_for(gate.pass_through(LIFECYCLE, priority), 0.5)
    assert gate.opens_in(LIFECYCLE, Priority.CREATE) == 0


async def test_a_call_that_cannot_go_in_time_is_refused_at_once_and_told_when(
    gate: RateGate,
) -> None:
    gate.learn(LIFECYCLE, Refusal(40))
    with pytest.raises(Throttled, match="sandbox-lifecycle has no room now") as refused:
        async with asyncio.timeout(0.5):
            await gate.pass_through(LIFECYCLE, Priority.KILL)
    assert refused.value.retry_after == pytest.approx(40, abs=1)
    assert gate.refused[LIFECYCLE] == 1
    assert gate.opens_in(LIFECYCLE, Priority.KILL) == pytest.approx(40, abs=1)
    await gate.pass_through(Bucket.GENERAL, Priority.READ)


async def test_a_deadline_replaces_the_usual_patience(gate: RateGate) -> None:
    gate.learn(LIFECYCLE, Refusal(0.2))
    with pytest.raises(Throttled):
        await gate.pass_through(LIFECYCLE, Priority.KILL, SystemClock().monotonic() + 0.05)
    await gate.pass_through(LIFECYCLE, Priority.KILL, SystemClock().monotonic() + 5)


async def test_kill_goes_before_stop_before_read_before_create(gate: RateGate) -> None:
    gate.learn(LIFECYCLE, Allowance(1000, 1000, 60))
    gate.learn(LIFECYCLE, Refusal(0.1))
    went: list[Priority] = []

    async def call(priority: Priority) -> None:
        await gate.pass_through(LIFECYCLE, priority)
        went.append(priority)

    async with asyncio.TaskGroup() as group:
        for priority in [Priority.CREATE, Priority.READ, Priority.STOP, Priority.KILL] * 3:
            group.create_task(call(priority))
    assert went == sorted(went)


async def test_whoever_arrives_later_but_is_less_urgent_stays_behind(gate: RateGate) -> None:
    gate.learn(LIFECYCLE, Allowance(10, 0, 0.2))
    went: list[str] = []

    async def call(name: str, priority: Priority) -> None:
        await gate.pass_through(LIFECYCLE, priority)
        went.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(call("kill", Priority.KILL))
        await asyncio.sleep(0)
        group.create_task(call("read", Priority.READ))
    assert went == ["kill", "read"]


async def test_a_read_on_behalf_of_a_kill_may_use_the_reserve(gate: RateGate) -> None:
    gate.learn(Bucket.GENERAL, Allowance(100, 10, 60))
    with pytest.raises(Throttled):
        await gate.pass_through(Bucket.GENERAL, Priority.READ)
    with on_behalf_of(Priority.KILL):
        await gate.pass_through(Bucket.GENERAL, Priority.READ)
    with pytest.raises(Throttled):
        await gate.pass_through(Bucket.GENERAL, Priority.READ)


async def test_before_the_first_answer_calls_wait_for_it_rather_than_fail(gate: RateGate) -> None:
    for _ in range(300):
        await gate.pass_through(Bucket.CREATE, Priority.CREATE)
    waiting = asyncio.create_task(gate.pass_through(Bucket.CREATE, Priority.CREATE))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.learn(Bucket.CREATE, NoLimit())
    async with asyncio.timeout(1):
        await waiting


async def test_patience_ends(gate: RateGate) -> None:
    for _ in range(300):
        await gate.pass_through(Bucket.CREATE, Priority.CREATE)
    with pytest.raises(Throttled):
        await gate.pass_through(Bucket.CREATE, Priority.CREATE, SystemClock().monotonic() + 0.05)
    gate.learn(Bucket.CREATE, NoLimit())
    await gate.pass_through(Bucket.CREATE, Priority.CREATE)


async def test_whoever_gives_up_waiting_takes_nobodys_place() -> None:
    clock = HandClock()
    gate = RateGate(clock, Timings(gate_patience=timedelta(seconds=2)))
    gate.learn(LIFECYCLE, Allowance(1, 0, 1))
    given_up = asyncio.create_task(gate.pass_through(LIFECYCLE, Priority.KILL))
    patient = asyncio.create_task(gate.pass_through(LIFECYCLE, Priority.STOP))
    await asyncio.sleep(0)
    given_up.cancel()
    clock.seconds += 1
    gate.learn(LIFECYCLE, Allowance(1, 1, 60))
    async with asyncio.timeout(1):
        await patient


async def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    clock = HandClock()
    gate = RateGate(clock, Timings(gate_patience=timedelta(seconds=2)))
    gate.learn(LIFECYCLE, Allowance(1, 0, 1))
    waiting = asyncio.create_task(gate.pass_through(LIFECYCLE, Priority.STOP))
    await asyncio.sleep(0)
    # The window is over, but nobody has looked at the clock yet.
    clock.seconds += 1
    with pytest.raises(Throttled):
        await gate.pass_through(LIFECYCLE, Priority.STOP, clock.monotonic() + 0.05)
    async with asyncio.timeout(1):
        await waiting


async def test_patience_that_ends_with_the_window_is_rewarded() -> None:
    clock = HandClock()
    gate = RateGate(clock, Timings(gate_patience=timedelta(milliseconds=50)))
    gate.learn(LIFECYCLE, Allowance(1, 0, 0.05))
    waiting = asyncio.create_task(gate.pass_through(LIFECYCLE, Priority.STOP))
    await asyncio.sleep(0)
    clock.seconds += 0.05
    await waiting
    assert gate.opens_in(LIFECYCLE, Priority.KILL) > 0, "the token is used"


async def test_replicas_that_join_shrink_the_share() -> None:
    live = 1
    gate = RateGate(SystemClock(), Timings(), replicas=lambda: live)
    gate.learn(Bucket.CREATE, Allowance(10, 4, 60))
    live = 4
    gate.learn(Bucket.CREATE, Allowance(10, 4, 60))
    await gate.pass_through(Bucket.CREATE, Priority.CREATE)
    with pytest.raises(Throttled):
        await gate.pass_through(Bucket.CREATE, Priority.CREATE)
