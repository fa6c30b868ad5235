"""The API server's time, so that all replicas judge deadlines by one clock.

Wall clocks of nodes differ and jump; what is persisted in a status is compared with the time of
the one server that every replica speaks with. Knows nothing of what the time is used for.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime

from issuesandbox.clock import Clock

# The Date header has whole seconds, and an answer travels for a while.
_TOLERANCE = timedelta(seconds=2)


class ServerClock:
    """The time that an answer of the API server told, going on with a clock that never jumps.

    The local wall clock counts only until the first answer: somebody may set it at any moment.
    """

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._told = local.now()
        self._at = local.monotonic()
        self._read: tuple[str, datetime] | None = None

    @property
    def offset(self) -> timedelta:
        """Return how far the server's clock is ahead of ours."""
        return self.now() - self._local.now()

    def now(self) -> datetime:
        """Return the server's wall time, aware, in UTC."""
        return self._told + timedelta(seconds=self._local.monotonic() - self._at)

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return self._local.monotonic()

    def learn(self, date: str) -> None:
        """Take the Date header of an answer into account."""
        if self._read is None or self._read[0] != date:
            # Many answers come within one second: each text is read once.
            try:
                self._read = date, parsedate_to_datetime(date)
            except ValueError:
                return
        if abs(self._read[1] - self.now()) > _TOLERANCE:
            self._told, self._at = self._read[1], self._local.monotonic()
