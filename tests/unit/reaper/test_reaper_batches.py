"""Work on many items: ten at a time, results in order."""

from __future__ import annotations

import asyncio

from issuesandbox.engine.batch import in_batches


async def test_never_more_than_ten_at_once_and_every_result_in_its_place() -> None:
    # R84
    at_once, most = 0, 0

    async def double(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001 * (number % 3))
        at_once -= 1
        return number * 2

    assert await in_batches(range(25), double) == [number * 2 for number in range(25)]
    assert most == 10


async def test_nothing_to_do_is_done_at_once() -> None:
    async def never(item: object) -> None:
        raise AssertionError

    assert await in_batches([], never) == []
