"""Events are posted beside the work: in order, whatever becomes of one, and the last ones too."""

from __future__ import annotations

import asyncio

from issuesandbox.adapters.kube.backlog import Backlog
from issuesandbox.ports.errors import Unavailable


class Post:
    """Takes note of what was posted; some of it is refused."""

    def __init__(self) -> None:
        self.done: list[int] = []
        self.open = asyncio.Event()

    async def send(self, number: int) -> None:
        await self.open.wait()
        if number == 2:
            raise Unavailable("not now")
        self.done.append(number)


async def test_whoever_tells_something_does_not_wait_and_a_failure_stops_nothing() -> None:
    backlog, post = Backlog(), Post()
    running = asyncio.create_task(backlog.run())
    for number in (1, 2, 3):
        backlog.add(lambda number=number: post.send(number))
    await asyncio.sleep(0)
    assert post.done == []
    post.open.set()
    async with asyncio.timeout(5):
        while len(post.done) < 2:
            await asyncio.sleep(0)
    assert post.done == [1, 3]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_what_is_left_at_the_end_is_told_as_well() -> None:
    backlog, post = Backlog(), Post()
    running = asyncio.create_task(backlog.run())
    await asyncio.sleep(0)
    post.open.set()
    for number in (4, 5):
        backlog.add(lambda number=number: post.send(number))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert post.done == [4, 5]


async def test_the_end_does_not_wait_for_ever() -> None:
    backlog, post = Backlog(), Post()
    running = asyncio.create_task(backlog.run())
    backlog.add(lambda: post.send(6))
    await asyncio.sleep(0)
    running.cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(running, return_exceptions=True)
    assert post.done == []
