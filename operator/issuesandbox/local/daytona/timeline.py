"""The simulator's own time: it runs with the wall clock and can be pushed forward.

Knows nothing of sandboxes; it only runs what is due, in order.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from issuesandbox.clock import Clock

_log = logging.getLogger(__name__)

Action = Callable[[], Awaitable[None]]


@dataclass(order=True, slots=True)
class Appointment:
    """Something to do at a moment; it can be called off until it has begun."""

    due: float
    order: int
    action: Action | None = field(compare=False)

    def cancel(self) -> None:
        """Call it off."""
        self.action = None


class Timeline:
    """Runs actions at simulated moments; `advance` skips the waiting."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._epoch = clock.now().timestamp() - clock.monotonic()
        self._skipped = 0.0
        self._appointments: list[Appointment] = []
        self._made = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._running: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        """Return the simulated wall time in seconds since the epoch; it never goes back.

        The service counts in milliseconds: what it shows is exactly what it compares with.
        """
        return round(self._epoch + self._clock.monotonic() + self._skipped, 3)

    def call_at(self, due: float, action: Action) -> Appointment:
        """Run `action` once the simulated time is `due`."""
        self._made += 1
        appointment = Appointment(due, self._made, action)
        heapq.heappush(self._appointments, appointment)
        if self._appointments[0] is appointment:
            self._set_alarm()
        return appointment

    async def advance(self, seconds: float) -> None:
        """Move time forward and do, in order, everything that falls due on the way."""
        target = self.now() + seconds
        await self._idle()
        while self._appointments and self._appointments[0].due <= target:
            appointment = heapq.heappop(self._appointments)
            self._skipped += max(0.0, appointment.due - self.now())
            if appointment.action is not None:
                await self._run(appointment.action)
        self._skipped += max(0.0, target - self.now())
        self._set_alarm()
        await self._idle()

    async def close(self) -> None:
        """Drop what is not yet due and break off what has begun."""
        self._appointments.clear()
        self._set_alarm()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _idle(self) -> None:
        await asyncio.gather(*self._running)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._appointments and self._appointments[0].action is None:
            heapq.heappop(self._appointments)
        if self._appointments:
            delay = max(0.0, self._appointments[0].due - self.now())
            # A day at most: event loops dislike timers that are years away.
            self._alarm = asyncio.get_running_loop().call_later(min(delay, 86_400), self._ring)

    def _ring(self) -> None:
        now = self.now()
        while self._appointments and self._appointments[0].due <= now:
            appointment = heapq.heappop(self._appointments)
            if appointment.action is not None:
                task = asyncio.ensure_future(self._run(appointment.action))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        self._set_alarm()

    @staticmethod
    async def _run(action: Action) -> None:
        try:
            await action()
        except Exception:
            _log.exception("what was due could not be done")
