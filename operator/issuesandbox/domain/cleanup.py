"""What becomes of the sandbox of a finished run and when, and when the resource itself may go.

Arithmetic on persisted times: asked again after a restart, it gives the same answer. Knows
nothing of how a sandbox is stopped or deleted, and of no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any

from issuesandbox.api.durations import Duration
from issuesandbox.api.spec_cleanup import Cleanup, CleanupAction, CleanupFields, Weekday, Window
from issuesandbox.api.status_run import Outcome

# The reason in the intent of a deletion that this policy asked for.
CLEANUP = "Cleanup"
# The reason of a run whose work is in its sandbox and nowhere else.
PUBLISH_DISABLED = "PublishDisabled"

_DAY = timedelta(days=1)
_WEEK = tuple(Weekday)
# Times are kept between these, so that adding to what a user wrote can never overflow.
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9000, 1, 1, tzinfo=UTC)


class Stage(StrEnum):
    """How far the cleanup of a sandbox should be."""

    LEAVE = "left as it is"
    STOP = "stopped"
    ARCHIVE = "archived"
    DELETE = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupPolicy:
    """The policy in force; the values here are the defaults."""

    on_success: CleanupAction = CleanupAction.DELETE
    on_failure: CleanupAction = CleanupAction.STOP
    on_cancel: CleanupAction = CleanupAction.STOP
    on_timeout: CleanupAction = CleanupAction.STOP
    delay: timedelta = timedelta(0)
    retention: timedelta = timedelta(hours=24)
    ttl_after_finished: timedelta = timedelta(days=7)
    delete_after: datetime | None = None
    window: Window | None = None

    def action(self, outcome: Outcome) -> CleanupAction:
        """Return what is done after a run with this outcome."""
        return {
            Outcome.SUCCEEDED: self.on_success,
            Outcome.FAILED: self.on_failure,
            Outcome.CANCELLED: self.on_cancel,
            Outcome.TIMED_OUT: self.on_timeout,
        }[outcome]

    def recorded(self) -> CleanupFields:
        """Return the values as the status of a run records them."""
        values = {name: getattr(self, name) for name in CleanupFields.model_fields}
        return CleanupFields(
            **{
                name: Duration.of(value) if isinstance(value, timedelta) else value
                for name, value in values.items()
            }
        )


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a run."""

    outcome: Outcome
    at: datetime
    alive_until: datetime | None = None
    """Until when keepAlive holds the sandbox; it counts after a success only."""
    unpublished: bool = False
    """The work is in the sandbox and nowhere else."""

    @property
    def cleaned_up_as(self) -> Outcome:
        """Return whose cleanup applies: work that is nowhere else is kept as after a failure."""
        return Outcome.FAILED if self.unpublished else self.outcome


@dataclass(frozen=True, slots=True)
class Due:
    """What should be true of the sandbox now, and when that changes; None: not by time."""

    stage: Stage
    until: datetime | None = None


def effective(cleanup: Cleanup | None, *settings: CleanupFields) -> CleanupPolicy:
    """Return the policy in force: the resource's, else the settings' in order, else defaults."""
    # Most resources have no policy of their own: theirs is worked out once.
    return _of_settings(*settings) if cleanup is None else _first_given(cleanup, *settings)


@lru_cache(maxsize=8)
def _of_settings(*settings: CleanupFields) -> CleanupPolicy:
    return _first_given(*settings)


def _first_given(*layers: Cleanup | CleanupFields) -> CleanupPolicy:
    given: dict[str, Any] = {}
    for layer in layers:
        for each in fields(CleanupPolicy):
            value = getattr(layer, each.name, None)
            if value is not None:
                given.setdefault(each.name, value)
    return CleanupPolicy(**given)


def schedule(policy: CleanupPolicy, finish: Finish, now: datetime) -> Due:
    """Return how far the cleanup should be. It says nothing of a deletion that has begun."""
    action = policy.action(finish.cleaned_up_as)
    begin = later(finish.at, policy.delay)
    if finish.outcome is Outcome.SUCCEEDED and finish.alive_until is not None:
        begin = max(begin, finish.alive_until)
        action = CleanupAction.STOP if action is CleanupAction.DELETE else action
    if action is CleanupAction.RETAIN:
        return Due(Stage.LEAVE)
    if now < begin:
        return Due(Stage.LEAVE, begin)
    deletion = begin if action is CleanupAction.DELETE else later(begin, policy.retention)
    if policy.delete_after is not None:
        deletion = max(deletion, _bounded(policy.delete_after))
    opens, closes = _opening(policy.window, max(deletion, now))
    if opens <= now:
        return Due(Stage.DELETE, closes)
    # What waits for its deletion need not run meanwhile.
    return Due(Stage.ARCHIVE if action is CleanupAction.ARCHIVE else Stage.STOP, opens)


def resource_due_at(
    policy: CleanupPolicy,
    finished_at: datetime | None,
    *,
    sandbox_gone: bool,
    kept: bool,
) -> datetime | None:
    """Return when a finished resource is due for deletion; None: not as things are."""
    never = kept or not policy.ttl_after_finished
    if never or finished_at is None or not sandbox_gone:
        return None
    return later(finished_at, policy.ttl_after_finished)


def later(at: datetime, wait: timedelta) -> datetime:
    """Return the time so long after `at`, in UTC; absurd times are pulled into range."""
    return min(_bounded(at) + wait, _LAST)


def _bounded(at: datetime) -> datetime:
    return min(max(at, _FIRST), _LAST).astimezone(UTC)


def _opening(window: Window | None, at: datetime) -> tuple[datetime, datetime | None]:
    """Return the span of the window that holds `at`, else of the next one; begin and end."""
    if window is None:
        return at, None
    start, end = _time_of_day(window.start), _time_of_day(window.end)
    length = (end - start) % _DAY or _DAY
    days = frozenset(window.days or _WEEK)
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    # A span that began yesterday may still be open; one day a week is at most a week away.
    begins = (midnight + timedelta(days=offset) for offset in range(-1, 8))
    opens = next(
        begin + start
        for begin in begins
        if _WEEK[begin.weekday()] in days and at < begin + start + length
    )
    return max(opens, at), opens + length


def _time_of_day(text: str) -> timedelta:
    hours, minutes = text.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes))
