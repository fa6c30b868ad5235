"""What is told beside the work: posted later, in order, one at a time.

A pass that waits for its Events holds a place that another resource could have, and in a burst
the API server has better things to do. Nothing here is needed for correctness: what is still
waiting when the process is killed is lost, as an Event may be.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from issuesandbox.ports.errors import CallError

_MOST = 10_000
# So long the last words of a process that ends may take.
_FAREWELL_SECONDS = 1.0
# Whoever tells something goes on with its work first.
_MOMENT_SECONDS = 0.2

logger = logging.getLogger(__name__)


class Backlog:
    """Small things to do, in the order in which they came; of too many the oldest are dropped."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], Awaitable[None]]] = deque(maxlen=_MOST)
        self._came = asyncio.Event()

    def add(self, work: Callable[[], Awaitable[None]]) -> None:
        """Have something done later."""
        self._waiting.append(work)
        self._came.set()

    async def run(self) -> None:
        """Do what comes until cancelled, then what is left, as far as there is time."""
        try:
            while True:
                await self._came.wait()
                await asyncio.sleep(_MOMENT_SECONDS)
                self._came.clear()
                await self._do_all()
        finally:
            try:
                async with asyncio.timeout(_FAREWELL_SECONDS):
                    await self._do_all()
            except TimeoutError:
                logger.info("events lost", extra={"count": len(self._waiting)})

    async def _do_all(self) -> None:
        while self._waiting:
            try:
                await self._waiting.popleft()()
            except CallError as error:
                # An Event is a courtesy; losing one must not fail anything.
                logger.warning("event lost", extra={"error": str(error)})
