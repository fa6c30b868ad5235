"""Time under a test's control: one true time, and the clocks of machines that may be wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
# Not zero: a machine has been up for a while, and code must not take 0.0 for "never".
_UPTIME = 5_000.0


class FakeTime:
    """The true time; it only goes forward, and only when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        """Return the true time of day."""
        return EPOCH + timedelta(seconds=self.seconds)


class FakeClock:
    """The clocks of one machine: the wall clock may jump, the monotonic one never does."""

    def __init__(self, time: FakeTime) -> None:
        self._time = time
        self._skew = timedelta(0)

    def now(self) -> datetime:
        """Return what the wall clock shows."""
        return self._time.now() + self._skew

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return self._time.seconds + _UPTIME

    def set_ahead(self, by: timedelta) -> None:
        """Set the wall clock this far ahead of the true time; behind it if negative."""
        self._skew = by
