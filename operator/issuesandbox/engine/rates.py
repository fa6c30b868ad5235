"""The gate in front of Daytona: calls go through while its rate limits have room for them.

Where they do not, kill goes before stop, stop before read, read before create. A call that
cannot go soon is refused at once: it was never sent, so it costs no attempt, and it holds no
place that a kill could need. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from issuesandbox.clock import Clock
from issuesandbox.domain.buckets import Answer, Bucket, Priority, Tokens
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import Throttled

_Waiter = asyncio.Future[None]

_purpose: ContextVar[Priority] = ContextVar("purpose", default=Priority.CREATE)
_permission: ContextVar[Callable[[], None]] = ContextVar("permission", default=lambda: None)


@contextmanager
def on_behalf_of(priority: Priority) -> Iterator[None]:
    """Give every call in this context at least this priority: a kill needs its reads as well."""
    token = _purpose.set(priority)
    try:
        yield
    finally:
        _purpose.reset(token)


@contextmanager
def while_allowed(check: Callable[[], None]) -> Iterator[None]:
    """Have every change in this context checked after all waiting, right before it is sent."""
    token = _permission.set(check)
    try:
        yield
    finally:
        _permission.reset(token)


@dataclass(slots=True)
class _Line:
    """Who waits for one bucket."""

    tokens: Tokens
    waiters: list[tuple[Priority, int, _Waiter]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class RateGate:
    """One gate per process, in front of all its calls to Daytona's control plane."""

    def __init__(
        self, clock: Clock, timings: Timings, replicas: Callable[[], int] = lambda: 1
    ) -> None:
        self._clock = clock
        self._patience = timings.gate_patience.total_seconds()
        self._replicas = replicas
        self._order = itertools.count()
        self._lines = {bucket: _Line(Tokens.assumed(bucket)) for bucket in Bucket}
        self.refused: Counter[Bucket] = Counter()

    def opens_in(self, bucket: Bucket, priority: Priority) -> float:
        """Return in how many seconds a call of this priority may go; 0 if it may now."""
        now = self._clock.monotonic()
        return self._lines[bucket].tokens.opens(priority, now, self._live()) - now

    def left(self) -> dict[str, float]:
        """Return how many more calls each bucket takes from us now; infinite without a limit."""
        now, live = self._clock.monotonic(), self._live()
        return {bucket: line.tokens.room(now, live) for bucket, line in self._lines.items()}

    async def pass_through(
        self, bucket: Bucket, priority: Priority, deadline: float | None = None
    ) -> None:
        """Return when a call may be sent; raise `Throttled` if it cannot be before `deadline`.

        The deadline is a moment of the clock's monotonic time; without one, patience rules.
        """
        priority = min(priority, _purpose.get())
        line = self._lines[bucket]
        if not line.waiters and self._take(line, priority):
            return
        patience = self._patience if deadline is None else deadline - self._clock.monotonic()
        wait = self.opens_in(bucket, priority)
        # What is only assumed may be told otherwise by the next answer: that is worth waiting.
        if wait > patience and line.tokens.known:
            raise self._refusal(bucket, wait)
        await self._stand_in_line(bucket, priority, patience)

    def last_look(self) -> None:
        """Raise what keeps a change from being sent, though it has waited for its turn."""
        _permission.get()()

    def learn(self, bucket: Bucket, answer: Answer) -> None:
        """Take note of what Daytona told about a bucket."""
        line = self._lines[bucket]
        line.tokens = line.tokens.learn(answer, self._clock.monotonic(), self._live())
        self._serve(bucket)

    async def _stand_in_line(self, bucket: Bucket, priority: Priority, patience: float) -> None:
        line = self._lines[bucket]
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        entry = (priority, next(self._order), waiter)
        heapq.heappush(line.waiters, entry)
        self._serve(bucket)
        try:
            async with asyncio.timeout(patience):
                await waiter
        except TimeoutError:
            # Its turn may have come in this very moment.
            if waiter.cancelled() and not self._take(line, priority):
                raise self._refusal(bucket, self.opens_in(bucket, priority)) from None
        finally:
            if entry in line.waiters:
                line.waiters.remove(entry)
                heapq.heapify(line.waiters)
                self._serve(bucket)

    def _serve(self, bucket: Bucket) -> None:
        """Let through whoever may go, the most urgent first, and come back when more may."""
        line = self._lines[bucket]
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        while line.waiters:
            priority, _, waiter = line.waiters[0]
            if not waiter.done():
                if not self._take(line, priority):
                    wait = self.opens_in(bucket, priority)
                    loop = asyncio.get_running_loop()
                    line.timer = loop.call_later(wait, self._serve, bucket)
                    return
                waiter.set_result(None)
            heapq.heappop(line.waiters)

    def _take(self, line: _Line, priority: Priority) -> bool:
        now, live = self._clock.monotonic(), self._live()
        if line.tokens.opens(priority, now, live) > now:
            return False
        line.tokens = line.tokens.take(now, live)
        return True

    def _refusal(self, bucket: Bucket, wait: float) -> Throttled:
        self.refused[bucket] += 1
        # Without the seconds: a text that changes each time would be written each time.
        text = f"Daytona's rate limit {bucket} has no room now; the call follows when it has"
        return Throttled(text, retry_after=wait)

    def _live(self) -> int:
        return max(1, self._replicas())
