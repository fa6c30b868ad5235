"""The work queue: which resource gets its next pass, and when.

One pass in flight per key, many keys side by side, the soonest deadline first. A key that is
added while its pass runs gets another pass right after it; a key that is added twice before
it runs gets one. A pass whose rest can wait stands back while others have not even begun. Some
places are kept for urgent keys, so that a stop never waits for slow passes of others. Knows nothing
of what a pass does.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import math
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Work = Callable[[Key], Awaitable[float | None]]
# Deadline, order of arrival, key; the soonest first.
_Line = list[tuple[float, int, Key]]

logger = logging.getLogger(__name__)

# A pass with nothing to do never waits: a hundred of them in a row would block the loop.
_AT_ONCE = 10
# With more passes than this on, others are better not held up by what can wait.
_CALM = 10
# What stands back takes memory.
_MOST_ASIDE = 1000


@dataclass(frozen=True, slots=True)
class BackOff:
    """Delays after failures: doubling, capped, with jitter so that failures spread out."""

    first: float = 1.0
    limit: float = 60.0

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        ceiling = min(self.limit, self.first * 2.0 ** (failures - 1))
        return ceiling * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing


@dataclass(frozen=True, slots=True)
class _Again:
    """A pass that was asked for while one was in flight."""

    deadline: float
    unless: tuple[Callable[[], bool], ...] | None
    """Each reason for it has been seen to if its condition holds; None: one has no condition."""

    def is_needed(self) -> bool:
        """Tell whether the pass that was in flight has left anything to see to."""
        return self.unless is None or not all(holds() for holds in self.unless)

    def joined_by(self, deadline: float, unless: Callable[[], bool] | None) -> _Again:
        """Return the same with one more reason."""
        known = self.unless
        conditions = None if known is None or unless is None else (*known, unless)
        return _Again(min(self.deadline, deadline), conditions)


class WorkQueue(Generic[Key]):
    """A de-duplicating, deadline-ordered queue of keys."""

    def __init__(
        self,
        *,
        parallel: int = 100,
        reserved: int = 50,
        is_urgent: Callable[[Key], bool] = lambda _: False,
        back_off: BackOff | None = None,
        meter: Callable[[float, float], None] = lambda _waited, _took: None,
    ) -> None:
        self._parallel = parallel
        self._reserved = reserved
        self._is_urgent = is_urgent
        self._meter = meter
        self._back_off = back_off or BackOff()
        self._deadlines: dict[Key, float] = {}
        self._all: _Line[Key] = []
        self._urgent: _Line[Key] = []
        self._order = itertools.count()
        self._in_flight: dict[Key, asyncio.Task[None]] = {}
        self._again: dict[Key, _Again] = {}
        self._failures: dict[Key, int] = {}
        self._aside: dict[asyncio.Future[None], None] = {}
        self._wake = asyncio.Event()

    @property
    def depth(self) -> int:
        """Return how many keys wait for a pass, due or not."""
        return len(self._deadlines) + len(self._again)

    @property
    def in_flight(self) -> int:
        """Return how many passes run right now."""
        return len(self._in_flight)

    def overdue(self) -> float:
        """Return for how many seconds the longest-waiting due key has been waiting."""
        soonest = self._soonest(self._all)
        return 0.0 if soonest is None else max(0.0, self._now() - soonest)

    def add(self, key: Key, delay: float = 0.0, unless: Callable[[], bool] | None = None) -> None:
        """Ask for a pass over `key` in `delay` seconds; a sooner one that is pending wins.

        While a pass is in flight the next one waits for its end; if `unless` holds by then, that
        pass has seen to it.
        """
        deadline = self._now() + max(0.0, delay)
        if key in self._in_flight:
            before = self._again.get(key, _Again(math.inf, ()))
            self._again[key] = before.joined_by(deadline, unless)
            return
        pending = self._deadlines.get(key, math.inf)
        urgent, deadline = self._is_urgent(key), min(deadline, pending)
        entry = (deadline, next(self._order), key)
        if deadline < pending:
            self._deadlines[key] = deadline
            heapq.heappush(self._all, entry)
        elif not urgent:
            return
        if urgent:
            # Also who waits in the long line since before it became urgent.
            heapq.heappush(self._urgent, entry)
        self._wake.set()

    def forget(self, key: Key) -> None:
        """Drop what is pending for `key`; a pass in flight goes on."""
        self._deadlines.pop(key, None)
        self._again.pop(key, None)
        self._failures.pop(key, None)

    async def stand_back(self, patience: float) -> None:
        """Let keys that are due go first; called from a pass, which holds no place meanwhile.

        Returns after so many seconds at the latest: what can wait must not wait for ever.
        """
        if not self._is_pressed() or len(self._aside) >= _MOST_ASIDE:
            return
        turn = asyncio.get_running_loop().create_future()
        self._aside[turn] = None
        self._wake.set()
        try:
            async with asyncio.timeout(patience):
                await turn
        except TimeoutError:
            return
        finally:
            self._aside.pop(turn, None)

    async def run(self, work: Work[Key]) -> None:
        """Serve keys until cancelled; `work` returns the delay to the next pass, or None."""
        try:
            while True:
                self._wake.clear()
                if self._start_due(work):
                    await asyncio.sleep(0)
                else:
                    await self._sleep_until_next()
        finally:
            tasks = list(self._in_flight.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start_due(self, work: Work[Key]) -> bool:
        """Start what is due, some at a time; tell whether there is more."""
        for _ in range(_AT_ONCE):
            due = [each for each in self._open_lines() if self._is_due(each)]
            if not due:
                return False
            deadline, _, key = heapq.heappop(due[0])
            del self._deadlines[key]
            waited = self._now() - deadline
            self._in_flight[key] = asyncio.create_task(self._pass(key, work, waited))
        return True

    async def _pass(self, key: Key, work: Work[Key], waited: float) -> None:
        delay: float | None = None
        began = self._now()
        try:
            delay = await work(key)
            self._failures.pop(key, None)
        except Exception:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = self._back_off.delay(failures)
            logger.exception("pass failed", extra={"key": str(key), "retry_in": delay})
        finally:
            self._meter(waited, self._now() - began)
            del self._in_flight[key]
            again = self._again.pop(key, None)
            if again is not None and again.is_needed():
                self.add(key, again.deadline - self._now())
            if delay is not None:
                self.add(key, delay)
            self._call_back()
            self._wake.set()

    async def _sleep_until_next(self) -> None:
        soonest = [self._soonest(each) for each in self._open_lines()]
        known = [each for each in soonest if each is not None]
        try:
            async with asyncio.timeout_at(min(known, default=None)):
                await self._wake.wait()
        except TimeoutError:
            return

    def _active(self) -> int:
        return len(self._in_flight) - len(self._aside)

    def _open_lines(self) -> list[_Line[Key]]:
        """Return the lines for which there is room now, the most urgent first."""
        active = self._active()
        lines = [self._urgent] if active < self._parallel + self._reserved else []
        return [*lines, self._all] if active < self._parallel else lines

    def _is_due(self, line: _Line[Key]) -> bool:
        soonest = self._soonest(line)
        return soonest is not None and soonest <= self._now()

    def _is_pressed(self) -> bool:
        return self._active() > _CALM or self._is_due(self._all)

    def _call_back(self) -> None:
        """Let those who stood back go on, the longest-waiting first, as far as there is room."""
        while self._aside and not self._is_pressed():
            turn = next(iter(self._aside))
            del self._aside[turn]
            if not turn.done():
                turn.set_result(None)

    def _soonest(self, line: _Line[Key]) -> float | None:
        while line:
            deadline, _, key = line[0]
            if self._deadlines.get(key) == deadline:
                return deadline
            heapq.heappop(line)  # superseded by a sooner deadline, begun, or forgotten
        return None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
