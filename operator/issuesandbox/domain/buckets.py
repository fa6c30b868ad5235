"""How many more calls Daytona will take from us, as far as its own answers tell.

One `Tokens` value per bucket; time and the number of live replicas come as arguments. Knows no
headers and waits for nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Final

# Daytona counts in windows of a minute and shuts out whoever exceeds one for another.
WINDOW: Final = 60.0
RESERVE: Final = 0.2
# Windows are announced in whole seconds, so two looks at one window may differ by one.
_SAME_WINDOW: Final = 1.5


class Bucket(StrEnum):
    """The buckets in which Daytona counts the calls of an organisation, by its names."""

    CREATE = "sandbox-create"
    LIFECYCLE = "sandbox-lifecycle"
    GENERAL = "authenticated"


class Priority(IntEnum):
    """Who goes first where not all can go."""

    KILL = 0
    STOP = 1
    READ = 2
    CREATE = 3


# The first tier of the hosted service: assumed until the first answer tells.
_DOCUMENTED: Final = {Bucket.CREATE: 300, Bucket.LIFECYCLE: 10_000, Bucket.GENERAL: 10_000}


@dataclass(frozen=True, slots=True)
class Allowance:
    """An answer told how much of the bucket is left."""

    limit: int
    remaining: int
    reset: float
    """Seconds until the window ends."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer told that the bucket is closed."""

    retry_after: float


@dataclass(frozen=True, slots=True)
class NoLimit:
    """An answer told nothing of the bucket: servers that people host themselves count nothing."""


Answer = Allowance | Refusal | NoLimit


@dataclass(frozen=True, slots=True)
class Tokens:
    """What is left of one bucket for this replica."""

    bucket: Bucket
    limit: int | None
    """Calls per window for all replicas together; None if nothing is counted."""
    left: float = 0.0
    ends: float = -math.inf
    """When the window ends; a new one begins with the first call after it."""
    closed_until: float = -math.inf
    known: bool = False
    """Whether Daytona has told anything yet."""

    @classmethod
    def assumed(cls, bucket: Bucket) -> Tokens:
        """Return the tokens of a bucket that Daytona has not spoken about yet."""
        return cls(bucket, _DOCUMENTED[bucket])

    def opens(self, priority: Priority, now: float, replicas: int) -> float:
        """Return from when on a call of this priority may go; `now` if it may at once."""
        if now < self.closed_until:
            return self.closed_until
        if self.limit is None:
            return now
        share = _share(self.limit, replicas)
        left = share if now >= self.ends else self.left
        return now if left >= 1 + self._reserve(priority, share) else self.ends

    def room(self, now: float, replicas: int) -> float:
        """Return how many calls may go now."""
        if now < self.closed_until:
            return 0.0
        if self.limit is None:
            return math.inf
        return _share(self.limit, replicas) if now >= self.ends else max(0.0, self.left)

    def take(self, now: float, replicas: int) -> Tokens:
        """Return what is left after one call."""
        if self.limit is None:
            return self
        if now >= self.ends:
            return replace(self, left=_share(self.limit, replicas) - 1, ends=now + WINDOW)
        return replace(self, left=self.left - 1)

    def learn(self, answer: Answer, now: float, replicas: int) -> Tokens:
        """Return what is left after Daytona told about the bucket."""
        if isinstance(answer, NoLimit):
            return replace(self, limit=None, known=True)
        if isinstance(answer, Refusal):
            closed = max(self.closed_until, now + answer.retry_after)
            return replace(self, closed_until=closed, ends=-math.inf, known=True)
        ends, left = now + answer.reset, answer.remaining / replicas
        if self.limit is not None and now < self.ends and ends <= self.ends + _SAME_WINDOW:
            # Calls on their way are taken from `left` but may not be counted by Daytona yet.
            left = min(left, self.left + (answer.limit - self.limit) / replicas)
        return replace(self, limit=answer.limit, left=left, ends=ends, known=True)

    def _reserve(self, priority: Priority, share: float) -> float:
        # Nothing is ever killed or stopped through the bucket of creations.
        if priority <= Priority.STOP or self.bucket is Bucket.CREATE:
            return 0.0
        return min(RESERVE * share, share - 1)


def _share(limit: int, replicas: int) -> float:
    return max(1.0, limit / replicas)
