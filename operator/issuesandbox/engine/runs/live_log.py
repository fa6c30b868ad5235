"""What agents printed last, kept where `kubectl isb logs` reads it while they run.

In the ConfigMap that holds the whole transcript later. A courtesy: losing it fails nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.supervision import Pulse
from issuesandbox.domain.transcript import excerpt
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import ResourceKey

_TAIL = 64 * 1024


@dataclass(slots=True)
class _Log:
    run_id: str
    tail: bytearray = field(default_factory=bytearray)
    end: int = 0
    """Where the tail ends in the whole output."""
    kept_at: float | None = None
    is_new: bool = False


class LiveLog:
    """Keeps the last output of each running agent, every few seconds if there is any."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._logs: dict[ResourceKey, _Log] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop the output of a resource's agent."""
        self._logs.pop(key, None)

    def is_kept(self, assignment: Assignment) -> bool:
        """Tell whether a part of an agent's output is where people read it."""
        log = self._logs.get(assignment.key)
        return log is not None and log.run_id == assignment.run.id and log.kept_at is not None

    def all_until(self, assignment: Assignment, end: int) -> bytes | None:
        """Return an agent's output up to `end`, if nothing of it was dropped or missed."""
        log = self._logs.get(assignment.key)
        if log is None or log.run_id != assignment.run.id or log.end != end:
            return None
        return bytes(log.tail) if len(log.tail) == end else None

    def take(self, assignment: Assignment, pulse: Pulse) -> bool:
        """Take what an agent printed since the last look; tell whether to keep it now."""
        log = self._logs.get(assignment.key)
        if log is None or log.run_id != assignment.run.id:
            log = self._logs[assignment.key] = _Log(assignment.run.id)
        if pulse.chunk:
            if pulse.chunk_offset != log.end:
                log.tail.clear()
            log.tail += pulse.chunk
            log.end = pulse.chunk_offset + len(pulse.chunk)
        del log.tail[:-_TAIL]
        log.is_new = log.is_new or bool(pulse.chunk)
        due = log.kept_at is None or self._outside.clock.monotonic() - log.kept_at >= self._gap()
        return log.is_new and due

    async def keep(self, assignment: Assignment, redactor: Redactor) -> None:
        """Copy what an agent printed last to where people read it."""
        log = self._logs[assignment.key]
        new = log.kept_at is None
        log.kept_at, log.is_new = self._outside.clock.monotonic(), False
        text = excerpt(bytes(log.tail), redactor, cut=len(log.tail) < log.end)
        try:
            name = assignment.transcript_name
            await self._outside.ledgers.put(assignment.key, name, {"transcript": text}, new=new)
        except CallError:
            log.is_new = True

    def _gap(self) -> float:
        """Return how long a copy lasts: with many agents longer, the store is everybody's."""
        timings = self._outside.timings
        return max(timings.live_log_gap, timings.live_log_share * len(self._logs)).total_seconds()
