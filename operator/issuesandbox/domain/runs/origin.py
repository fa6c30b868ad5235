"""How a run came by its sandbox, as far as the status tells. Pure."""

from __future__ import annotations

from enum import StrEnum

from issuesandbox.api.status import Status
from issuesandbox.api.status_sandbox import Counters


class Origin(StrEnum):
    """What was done to give a run its sandbox; the words of its log line."""

    REUSED = "reused"
    RESTARTED = "restarted"
    CREATED = "created"
    RECREATED = "recreated"


def origin(status: Status, attempt: int) -> Origin:
    """Return how the run that is about to begin came by the sandbox of this attempt."""
    last, sandbox = status.run, status.sandbox
    if last is None:
        # Of what was made in this very pass nothing is recorded yet; what was adopted, is.
        made = sandbox is None or (status.counters or Counters()).creates
        first = Origin.CREATED if made else Origin.REUSED
        return Origin.RECREATED if attempt > 1 else first
    if last.attempt != attempt:
        return Origin.RECREATED
    since = sandbox.state_since if sandbox is not None else None
    ended = last.finished_at or last.started_at
    return Origin.RESTARTED if since is not None and since > ended else Origin.REUSED
