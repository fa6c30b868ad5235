"""Keeps the books: what was written down of resources becomes numbers, in one place."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from issuesandbox.api.status import Status
from issuesandbox.domain import numbers
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.transitions import facts
from issuesandbox.engine.stop_meter import StopMeter
from issuesandbox.engine.tally import Tally
from issuesandbox.ports.resources import ResourceKey

logger = logging.getLogger(__name__)

_REMEMBERED = 200


class Books:
    """One for each process."""

    def __init__(self, timings: Timings) -> None:
        self.tally = Tally()
        self.stops = StopMeter(self.tally, timings)
        self._installed: tuple[str, ...] = ()

    def installed(self, sandbox_id: str, *, works: bool) -> None:
        """Book that an agent was installed; twice in one sandbox is a loop."""
        self.tally.count(numbers.INSTALLS, numbers.OK if works else "failed")
        if sandbox_id in self._installed:
            self.tally.count(numbers.INSTALLS, "again")
        self._installed = (*self._installed[-_REMEMBERED:], sandbox_id)

    def written(
        self, key: ResourceKey, body: Mapping[str, Any], before: Status, after: Status, at: datetime
    ) -> None:
        """Book what a status that was just written says happened; never fails a pass."""
        try:
            for fact in facts(before, after, at):
                if fact.seconds is None:
                    self.tally.count(fact.family, *fact.values, by=fact.by)
                else:
                    self.tally.time(fact.family, fact.seconds, *fact.values)
            self.stops.note(key, body, before, after, at)
        except Exception:
            logger.exception("not booked", extra={"resource": str(key)})
