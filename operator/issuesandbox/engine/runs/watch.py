"""What is known of one agent that runs, learnt look by look. Asks nobody itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.supervision import Pulse, RunState


@dataclass(slots=True)
class Watch:
    """What is known of an agent that runs."""

    run_id: str
    reader: StreamReader
    offset: int = 0
    started_at: datetime | None = None
    last_output_at: datetime | None = None
    redactor: Redactor = field(default_factory=Redactor)
    informed: bool = False
    """The redactor knows the secrets that the agent was given."""
    missed: bool = False
    """The supervisor was not there at the last look."""
    unheard_since: datetime | None = None
    """When the sandbox gave no answer for the first time since its last one."""
    complete: bool = False
    """The agent has ended, and all that it printed was read."""

    def take(self, pulse: Pulse, now: datetime) -> None:
        """Learn from one look."""
        self.unheard_since = None
        if pulse.chunk:
            self.reader.feed(pulse.chunk, pulse.chunk_offset)
        self.offset = pulse.next_offset(self.offset)
        self.complete = pulse.state is RunState.ENDED and self.offset >= pulse.size
        if pulse.state is not RunState.ABSENT:
            self.started_at = self.started_at or now - timedelta(seconds=pulse.started_ago)
            self.last_output_at = now - timedelta(seconds=pulse.silent_for)
