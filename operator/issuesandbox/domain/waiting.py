"""Until when a cell of the decision table waits: for the decision, and for whoever tells of it.

Pure. In one place, so that people are told the very moment at which something happens.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from issuesandbox.api.status_sandbox import IntentKind
from issuesandbox.domain.model import Memory
from issuesandbox.domain.table import Cell, Step
from issuesandbox.domain.timings import Timings


def end_of_wait(
    cell: Cell, memory: Memory, start_limit: timedelta | None, timings: Timings
) -> datetime | None:
    """Return when a cell's limit ends, or None while nothing is waited for.

    `start_limit` is what the resource itself says of a start.
    """
    if cell.limit is None:
        return None
    limit: timedelta = getattr(timings, cell.limit)
    if cell.limit == "start_limit":
        limit = start_limit or limit
    began = _began(cell, memory)
    return None if began is None else began + limit


def _began(cell: Cell, memory: Memory) -> datetime | None:
    if cell.step is Step.RECOVER:
        intent = memory.intent
        return intent.at if intent and intent.kind is IntentKind.RECOVER else None
    # What rests may have done so for long: its start counts from when it was asked for.
    return memory.start_asked_at if cell.step is Step.START else memory.state_since
