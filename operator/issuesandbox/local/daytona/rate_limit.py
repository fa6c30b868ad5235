"""The three request buckets of an organisation, and the headers they speak through.

A window starts with its first request. Whoever exceeds it stays out for a whole window more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from issuesandbox.local.daytona.config import RateLimits
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.timeline import Timeline

TOO_MANY = "ThrottlerException: Too Many Requests"


class Bucket(StrEnum):
    """Which bucket a call is taken from; every call has exactly one."""

    AUTHENTICATED = "authenticated"
    CREATE = "sandbox-create"
    LIFECYCLE = "sandbox-lifecycle"


@dataclass(slots=True)
class _Window:
    ends_at: float
    used: int = 0
    blocked_until: float = 0.0


class RateLimiter:
    """Counts the requests of every organisation."""

    def __init__(self, limits: RateLimits | None, timeline: Timeline) -> None:
        self.limits = limits
        self._timeline = timeline
        self._windows: dict[tuple[str, Bucket], _Window] = {}

    def switch(self, limits: RateLimits | None) -> None:
        """Use other limits from now on, with all counters at zero."""
        self.limits = limits
        self._windows.clear()

    def admit(self, organization: str, bucket: Bucket) -> dict[str, str]:
        """Count one request; return the headers of its answer or refuse it."""
        if self.limits is None:
            return {}
        limit = self._limit(self.limits, bucket)
        now = self._timeline.now()
        window = self._windows.get((organization, bucket))
        if window is None or (now >= window.ends_at and now >= window.blocked_until):
            window = self._windows[organization, bucket] = _Window(now + self.limits.window)
        window.used += 1
        if window.used > limit and not window.blocked_until:
            window.blocked_until = now + self.limits.window
        if window.blocked_until > now:
            raise too_many(bucket, window.blocked_until - now)
        return {
            f"X-RateLimit-Limit-{bucket}": str(limit),
            f"X-RateLimit-Remaining-{bucket}": str(limit - window.used),
            f"X-RateLimit-Reset-{bucket}": str(math.ceil(window.ends_at - now)),
        }

    @staticmethod
    def _limit(limits: RateLimits, bucket: Bucket) -> int:
        return {
            Bucket.AUTHENTICATED: limits.authenticated,
            Bucket.CREATE: limits.create,
            Bucket.LIFECYCLE: limits.lifecycle,
        }[bucket]


def too_many(bucket: Bucket, seconds: float) -> ApiError:
    """Return the refusal; its header carries the bucket's name, plain Retry-After is not sent."""
    return ApiError(429, TOO_MANY, {f"Retry-After-{bucket}": str(math.ceil(seconds))})
