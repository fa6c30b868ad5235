"""Where everything outside the domain gets its time, so that tests can shrink or jump it.

Knows nothing of what the time is used for.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is shown and stored, monotonic time for what is measured."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the wall time, aware, in UTC."""
        return datetime.now(UTC)  # noqa: TID251 - this is the one place that may

    def monotonic(self) -> float:
        """Return seconds on a clock that never jumps."""
        return time.monotonic()
