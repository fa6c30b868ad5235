"""The work queue: de-duplication, order, one pass per key, back-off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from issuesandbox.engine.workqueue import BackOff, WorkQueue

Work = Callable[[str], Awaitable[float | None]]


@asynccontextmanager
async def serving(queue: WorkQueue[str], work: Work) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(work))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_key_added_many_times_before_its_pass_gets_one_pass() -> None:
    queue: WorkQueue[str] = WorkQueue()
    passes: list[str] = []

    async def work(key: str) -> None:
        passes.append(key)

    for _ in range(50):
        queue.add("a")
    queue.add("b")
    async with serving(queue, work):
        await until(lambda: "b" in passes)
    assert sorted(passes) == ["a", "b"]


async def test_a_key_added_during_its_pass_gets_exactly_one_more_and_never_two_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    running, most, passes = 0, 0, 0
    gate = asyncio.Event()

    async def work(key: str) -> None:
        nonlocal running, most, passes
        running, passes = running + 1, passes + 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    async with serving(queue, work):
        queue.add("a")
        await until(lambda: running == 1)
        for _ in range(10):
            queue.add("a")
        gate.set()
        await until(lambda: passes == 2 and running == 0)
        await until(lambda: queue.depth == 0)
    assert (passes, most) == (2, 1)


async def test_the_soonest_deadline_wins_and_later_ones_do_not_repeat_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    passes: list[str] = []

    async def work(key: str) -> None:
        passes.append(key)

    async with serving(queue, work):
        queue.add("late", 0.1)
        queue.add("late", 60)
        queue.add("soon", 60)
        queue.add("soon", 0)
        await until(lambda: passes == ["soon", "late"])
        assert queue.depth == 0


async def test_a_soon_deadline_behind_a_busy_key_is_still_served_on_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    passes: list[str] = []
    gate = asyncio.Event()

    async def work(key: str) -> None:
        passes.append(key)
        if key == "busy":
            await gate.wait()

    async with serving(queue, work):
        queue.add("busy")
        await until(lambda: passes == ["busy"])
        queue.add("busy")
        queue.add("other", 0.05)
        queue.add("far", 60)
        await until(lambda: "other" in passes)
        gate.set()
        await until(lambda: passes.count("busy") == 2)
    assert "far" not in passes


async def test_the_returned_delay_brings_the_key_back() -> None:
    queue: WorkQueue[str] = WorkQueue()
    passes = 0

    async def work(key: str) -> float | None:
        nonlocal passes
        passes += 1
        return 0.01 if passes < 3 else None

    async with serving(queue, work):
        queue.add("a")
        await until(lambda: passes == 3)
        assert queue.depth == 0


async def test_a_failing_key_backs_off_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue: WorkQueue[str] = WorkQueue(back_off=BackOff(first=0.01, limit=0.02))
    passes: list[str] = []

    async def work(key: str) -> None:
        passes.append(key)
        if key == "bad" and passes.count("bad") < 4:
            raise RuntimeError("planted")

    async with serving(queue, work):
        queue.add("bad")
        queue.add("good")
        await until(lambda: passes.count("bad") == 4)
    assert passes.count("good") == 1
    assert len([each for each in caplog.records if each.message == "pass failed"]) == 3


async def test_no_more_passes_than_allowed_run_side_by_side() -> None:
    queue: WorkQueue[int] = WorkQueue(parallel=3)
    running, most, done = 0, 0, 0

    async def work(key: int) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running, done = running - 1, done + 1

    for key in range(20):
        queue.add(key)
    task = asyncio.create_task(queue.run(work))
    await until(lambda: done == 20)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert most == 3


async def test_an_urgent_key_never_waits_for_slow_passes_of_others() -> None:
    urgent: set[int] = set()
    queue: WorkQueue[int] = WorkQueue(reserved=3, is_urgent=urgent.__contains__)
    begun: list[int] = []
    gate = asyncio.Event()

    async def work(key: int) -> None:
        begun.append(key)
        await gate.wait()

    for key in range(1000):
        queue.add(key)
    async with serving(queue, work):
        await until(lambda: len(begun) == 100)
        urgent |= {2000, 500, 501, 502}
        queue.add(2000)
        queue.add(500)  # it waits in the line already
        await until(lambda: set(begun[100:]) == {2000, 500})
        queue.add(501, 0.01)
        queue.add(502, 0.01)
        await until(lambda: len(begun) == 103)
        assert queue.in_flight == 103, "the reserve has an end, too"
        gate.set()
        await until(lambda: len(begun) == 1001)
    assert len(set(begun)) == 1001
    assert begun[103] in {501, 502}, "the urgent ones go first"


def test_delays_double_up_to_the_limit_with_jitter() -> None:
    back_off = BackOff(first=1, limit=60)
    for failures, ceiling in ((1, 1), (2, 2), (5, 16), (7, 60), (100, 60)):
        delays = {back_off.delay(failures) for _ in range(50)}
        assert all(ceiling / 2 <= delay <= ceiling for delay in delays)
        assert len(delays) > 1


@pytest.mark.parametrize(("seen_to", "passes"), [(True, 1), (False, 2)])
async def test_what_a_pass_has_seen_to_by_its_end_needs_no_other(
    seen_to: bool, passes: int
) -> None:
    queue: WorkQueue[str] = WorkQueue()
    made: list[str] = []
    gate = asyncio.Event()

    async def work(key: str) -> None:
        made.append(key)
        if key == "a":
            await gate.wait()

    queue.add("a")
    async with serving(queue, work):
        await until(lambda: bool(made))
        queue.add("a", unless=lambda: seen_to)
        gate.set()
        await until(lambda: not queue.in_flight)
        queue.add("last", 0.01)
        await until(lambda: "last" in made)
    assert made.count("a") == passes


@pytest.mark.parametrize(
    "conditions", [(True, None, True), (None, True), (False, True), (True, False)]
)
async def test_another_reason_for_a_pass_stands_beside_one_that_may_be_moot(
    conditions: tuple[bool | None, ...],
) -> None:
    queue: WorkQueue[str] = WorkQueue()
    made: list[str] = []
    gate = asyncio.Event()

    async def work(key: str) -> None:
        made.append(key)
        await gate.wait()

    queue.add("a")
    async with serving(queue, work):
        await until(lambda: bool(made))
        for seen_to in conditions:
            queue.add("a", unless=None if seen_to is None else partial(bool, seen_to))
        gate.set()
        await until(lambda: len(made) == 2)


async def test_what_can_wait_lets_others_begin_first_and_holds_no_place() -> None:
    queue: WorkQueue[int] = WorkQueue(parallel=20)
    begun: list[int] = []
    ended: list[int] = []

    async def work(key: int) -> None:
        begun.append(key)
        await asyncio.sleep(0)
        await queue.stand_back(60)
        ended.append(len(begun))

    for key in range(100):
        queue.add(key)
    async with serving(queue, work):
        await until(lambda: len(ended) == 100)
    assert ended[0] > 80, "the first pass ended before most others had begun"


async def test_who_stands_back_goes_on_after_a_while_whatever_others_do() -> None:
    queue: WorkQueue[str] = WorkQueue()
    gone_on, gate = asyncio.Event(), asyncio.Event()

    async def work(key: str) -> None:
        if key == "patient":
            await queue.stand_back(0.05)
            gone_on.set()
        await gate.wait()

    for number in range(50):
        queue.add(f"busy {number}")
    async with serving(queue, work):
        await until(lambda: queue.in_flight == 50)
        queue.add("patient")
        async with asyncio.timeout(5):
            await gone_on.wait()
        gate.set()


async def test_nobody_stands_back_where_there_is_room() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with asyncio.timeout(5):
        await queue.stand_back(60)
