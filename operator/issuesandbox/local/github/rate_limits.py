"""GitHub's hourly budget of requests, per user, installation, App or nobody.

Counts and describes; the gate decides what costs something.
"""

from __future__ import annotations

from dataclasses import dataclass

from issuesandbox.clock import Clock
from issuesandbox.local.github.access import Caller
from issuesandbox.local.github.answers import GitHubError

_WINDOW_SECONDS = 3600
_DEFAULT = 5000
_ANONYMOUS = 60


@dataclass
class Budget:
    """What one identity has used of its hour."""

    limit: int
    reset: int
    used: int = 0

    @property
    def remaining(self) -> int:
        """Return how many requests are left."""
        return max(0, self.limit - self.used)

    def shown(self) -> dict[str, int]:
        """Show the budget as `/rate_limit` does."""
        return {
            "limit": self.limit,
            "remaining": self.remaining,
            "reset": self.reset,
            "used": min(self.used, self.limit),
        }

    def headers(self) -> dict[str, str]:
        """Show the budget as every answer does."""
        shown = {f"X-RateLimit-{name.title()}": str(value) for name, value in self.shown().items()}
        return {**shown, "X-RateLimit-Resource": "core"}


class RateLimits:
    """The budgets of all identities; they start anew with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._limit = _DEFAULT
        self._budgets: dict[str, Budget] = {}

    def of(self, caller: Caller) -> Budget:
        """Return the caller's budget of this hour."""
        key, limit = _key(caller), _ANONYMOUS if caller.is_anonymous else self._limit
        now = int(self._clock.now().timestamp())
        budget = self._budgets.get(key)
        if budget is None or budget.reset <= now:
            budget = self._budgets[key] = Budget(limit, now + _WINDOW_SECONDS)
        return budget

    def check(self, caller: Caller) -> None:
        """Refuse a caller who has used up the hour."""
        budget = self.of(caller)
        if budget.remaining == 0:
            message = f"API rate limit exceeded for {_key(caller)}."
            raise GitHubError(403, message, headers=budget.headers())

    def set_limit(self, limit: int) -> None:
        """Give everybody a new budget from now on."""
        self._limit = limit
        self._budgets.clear()


def _key(caller: Caller) -> str:
    if caller.is_app:
        return "the app"
    if caller.installation is not None:
        return f"installation ID {caller.installation.id}"
    return "127.0.0.1" if caller.account is None else f"user ID {caller.account.id}"
