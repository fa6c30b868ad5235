"""How long a run may take: the limits in force, and the absolute ends that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from issuesandbox.api.durations import Duration
from issuesandbox.api.spec_run import InactivitySource, LimitFields
from issuesandbox.api.status_run import Deadlines, RunPhase, RunStatus

_AFTERWORK = timedelta(minutes=10)
_WARNED_PART = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """The limits in force; the values here are the defaults."""

    inactivity: timedelta = timedelta(seconds=60)
    agent: timedelta = timedelta(minutes=5)
    run: timedelta = timedelta(minutes=15)
    source: InactivitySource = InactivitySource.OUTPUT

    def recorded(self) -> LimitFields:
        """Return the limits as the status records them."""
        return LimitFields(
            inactivity=Duration.of(self.inactivity),
            agent=Duration.of(self.agent),
            run=Duration.of(self.run),
            inactivity_source=self.source,
        )


def limits_in_force(asked: LimitFields | None, defaults: RunLimits) -> RunLimits:
    """Return the limits of a resource, filled up with the operator's own.

    Only limits given together are compared at the door, so a long agent limit stretches the
    run's where that one is not given.
    """
    asked = asked or LimitFields()
    agent = asked.agent or defaults.agent
    run = asked.run or max(defaults.run, agent + _AFTERWORK)
    return RunLimits(
        inactivity=asked.inactivity or defaults.inactivity,
        agent=agent,
        run=run,
        source=asked.inactivity_source or defaults.source,
    )


def deadlines(run: RunStatus, limits: RunLimits) -> Deadlines:
    """Return the absolute ends, counted from the stored starts."""
    started = run.agent_started_at
    return Deadlines(
        agent=started + limits.agent if started is not None else None,
        run=run.started_at + limits.run,
    )


@dataclass(frozen=True, slots=True)
class DeadlineWarning:
    """People are told that a run will be ended soon."""

    at: datetime
    end: datetime
    limit: str
    """The field of the resource that sets the limit."""


def next_warning(run: RunStatus, lead: timedelta) -> DeadlineWarning | None:
    """Return when to warn of the next end; None if there is none or people know of it."""
    ends = run.deadlines
    if ends is None or run.outcome is not None or run.publish is not None:
        return None
    known: list[tuple[datetime, datetime, str]] = []
    if ends.run is not None:
        known.append((ends.run, run.started_at, "limits.run"))
    started = run.agent_started_at
    if ends.agent is not None and started is not None and run.phase is RunPhase.EXECUTING:
        known.append((ends.agent, started, "limits.agent"))
    if not known:
        return None
    end, begun, limit = min(known)
    # A short limit has a short warning: it must not come with the beginning.
    warning = DeadlineWarning(end - min(lead, (end - begun) / _WARNED_PART), end, limit)
    return None if run.warned_of == end else warning


def overdue(run: RunStatus, now: datetime, *, enforced: bool = True) -> str | None:
    """Return the reason of the limit that a run is over, or None.

    The agent's own limit is its supervisor's business, unless nobody enforces limits inside.
    """
    ends = run.deadlines
    if ends is None:
        return None
    if ends.run is not None and now >= ends.run:
        return "RunTimeout"
    if not enforced and ends.agent is not None and now >= ends.agent:
        return "AgentTimeout" if run.phase is RunPhase.EXECUTING else None
    return None
