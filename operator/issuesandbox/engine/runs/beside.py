"""Work that goes on beside other work of the same errand, so that neither waits for the other.

Knows nothing of what the work is. Ends with the block it was made for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Beside:
    """At most one piece of each kind of work at a time."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Begin with nothing."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End what is still under way."""
        for task in self._tasks.values():
            task.cancel()
        await self.settled()

    def begin(self, kind: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin a piece of work, unless one of its kind is under way."""
        task = self._tasks.get(kind)
        if task is None or task.done():
            self._tasks[kind] = asyncio.create_task(work())

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


def unattended(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Begin what somebody may come for, and whose failure is no news if nobody does."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


@asynccontextmanager
async def ahead(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Begin what is needed later; whoever leaves the block without it gives it up."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
