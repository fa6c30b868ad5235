"""Times, durations and random policies that the tests of the cleanup share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st

from issuesandbox.api.spec_cleanup import CleanupAction, Weekday, Window
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.cleanup import CleanupPolicy, Finish
from issuesandbox.domain.wanted import Facts, Lodging, Turn

END = datetime(2030, 1, 1, 12, tzinfo=UTC)  # a Tuesday
TICK = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Durations:
    """The durations of the design."""

    idle_limit: timedelta = 15 * MINUTE
    keep_alive_limit: timedelta = 30 * MINUTE
    work_hold: timedelta = timedelta(seconds=30)
    rescue_hold: timedelta = 2 * MINUTE
    deletion_retry: timedelta = timedelta(seconds=5)
    deletion_limit: timedelta = timedelta(seconds=60)


T = Durations()


def window(start: str, end: str, *days: str) -> Window:
    """Return a window; no days means every day."""
    given: dict[str, Any] = {"start": start, "end": end, "days": days or None}
    return Window.model_validate(given)


times_of_day = st.lists(st.integers(0, 1439), min_size=2, max_size=2, unique=True).map(
    lambda minutes: tuple(f"{each // 60:02}:{each % 60:02}" for each in minutes)
)
windows = st.builds(
    lambda times, days: window(*times, *days),
    times_of_day,
    st.lists(st.sampled_from(Weekday), max_size=3, unique=True),
)
short = st.timedeltas(timedelta(0), timedelta(days=3))
moments = st.timedeltas(-30 * DAY, 60 * DAY).map(lambda distance: END + distance)
# As a user may write them: also absurd ones, in any zone.
zones = st.sampled_from([UTC, timezone(14 * HOUR), timezone(-12 * HOUR)])
any_times = st.datetimes(timezones=zones)
policies = st.builds(
    CleanupPolicy,
    on_success=st.sampled_from(CleanupAction),
    on_failure=st.sampled_from(CleanupAction),
    on_cancel=st.sampled_from(CleanupAction),
    on_timeout=st.sampled_from(CleanupAction),
    delay=short,
    retention=short,
    ttl_after_finished=short,
    delete_after=st.none() | moments | any_times,
    window=st.none() | windows,
)
finishes = st.builds(Finish, st.sampled_from(Outcome), moments | any_times, st.none() | moments)
lodgings = st.builds(
    Lodging,
    state=st.sampled_from([None, "started", "stopping", "stopped", "archived", "brand_new"]),
    since=st.none() | moments | any_times,
    last_activity=st.none() | moments | any_times,
    stopped_by_us=st.booleans(),
)
facts = st.builds(
    Facts,
    policy=policies,
    deleting=st.booleans(),
    stop=st.booleans(),
    stopping=st.booleans(),
    paused=st.booleans(),
    sandbox_only=st.booleans(),
    turn=st.sampled_from(Turn),
    keep_alive=st.booleans(),
    finish=st.none() | finishes,
    settled=st.booleans(),
    deletion_began=st.booleans(),
    hold_until=st.none() | moments,
    sandbox=st.none() | lodgings,
)
