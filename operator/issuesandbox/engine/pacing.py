"""When a resource is looked at again if nothing wakes it before. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from issuesandbox.domain.model import Plan
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.reading import Reading


def seconds_to_the_next(
    reading: Reading,
    plan: Plan,
    run_check: timedelta | None,
    now: datetime,
    timings: Timings,
) -> float | None:
    """Return the seconds to the next pass, or None if only an event brings one."""
    waits = [plan.next_check] if plan.next_check is not None else []
    if run_check is not None:
        waits.append(min(run_check, timings.longest_wait))
    if plan.renew_at is not None:
        # Daytona shows activity with a delay, so a renewal that was just sent is not seen yet.
        ahead = plan.renew_at > now
        waits.append(plan.renew_at - now if ahead else timings.fleet_tick * 5)
    expiry = reading.expires_at
    if expiry is not None and expiry <= now:
        expiry += timings.tell_limit
    for moment in (reading.wish.until, expiry):
        if moment is not None:
            waits.append(min(max(moment - now, timedelta(0)), timings.longest_wait))
    if reading.desired.memory.unconfirmed:
        waits.append(timings.unknown_check)
    return min(waits).total_seconds() if waits else None
