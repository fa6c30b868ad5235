"""What the operator fills in where a resource is silent. Knows nothing of where it is set."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from issuesandbox.api.spec_cleanup import CleanupFields, RecoveryFields, SaveWork


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPolicy:
    """What is tried before a run is given up; the values here are the defaults."""

    max_attempts: int = 3
    save_work: SaveWork = SaveWork.BRANCH

    def under(self, asked: RecoveryFields | None) -> RecoveryPolicy:
        """Return what is in force for a resource that asks for this."""
        if asked is None:
            return self
        return RecoveryPolicy(
            max_attempts=asked.max_attempts or self.max_attempts,
            save_work=asked.save_work or self.save_work,
        )

    def recorded(self) -> RecoveryFields:
        """Return the values as the status of a run records them."""
        return RecoveryFields(max_attempts=self.max_attempts, save_work=self.save_work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The operator's own values; those here are in force where nobody set others."""

    target: str | None = None
    snapshot: str | None = None
    auto_stop: timedelta = timedelta(hours=1)
    auto_archive: timedelta = timedelta(hours=24)
    auto_delete: timedelta | None = None
    """None: after 72 h, and never before the retention is over."""
    ttl: timedelta = timedelta(hours=168)
    cleanup: CleanupFields = field(default_factory=CleanupFields)
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)
