"""The auditor: looks on the remote whether a stopped or timed-out run was published after all.

Stands apart from everything that pushes: it hears of resources as the cache does, asks GitHub
when each branch was moved, and counts what must stay at zero. Changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import ValidationError

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.clock import Clock
from issuesandbox.domain import numbers
from issuesandbox.domain.audit import Case, Ending, RefChange, case_of, is_broken
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.tally import Tally
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import ResourceKey

logger = logging.getLogger(__name__)

_MOST = 1000
_TRIES = 5
_ENDINGS = frozenset({"Cancelled", "TimedOut"})


class Remote(Protocol):
    """What the auditor asks of GitHub."""

    async def own_login(self) -> str:
        """Return the login under which we act."""
        ...

    async def ref_changes(self, repository: str, branch: str) -> Sequence[RefChange]:
        """Return when a branch was moved, and by whom."""
        ...


class Auditor:
    """Looks at each run once, some time after its end."""

    def __init__(self, remote: Remote, tally: Tally, clock: Clock, timings: Timings) -> None:
        self._remote = remote
        self._tally = tally
        self._clock = clock
        self._delay = timings.audit_delay
        self._span = timings.audit_span
        self._open: dict[ResourceKey, tuple[Case, int]] = {}
        self._closed: dict[ResourceKey, str] = {}

    def hear(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        """Hear of a resource as it is now."""
        run = (body.get("status") or {}).get("run") or {}
        if run.get("outcome") not in _ENDINGS or self._closed.get(key) == run.get("id"):
            return
        try:
            case = case_of(IssueSandbox.model_validate(body))
        except ValidationError:
            return
        recent = case is not None and self._clock.now() - case.finished_at < self._span
        if case is not None and recent:
            if key not in self._open and len(self._open) >= _MOST:
                del self._open[next(iter(self._open))]
            self._open[key] = (case, self._open.get(key, (case, 0))[1])

    def miss(self, key: ResourceKey) -> None:
        """Forget what is closed of a resource that is gone; what is open is still looked at."""
        self._closed.pop(key, None)

    @property
    def waiting(self) -> int:
        """Return how many runs are still to be looked at."""
        return len(self._open)

    async def run(self, in_charge: Callable[[], bool]) -> None:
        """Look at what is due until cancelled, while in charge."""
        while True:
            self._forget_old()
            if in_charge():
                await self.look()
            await asyncio.sleep(self._delay.total_seconds() / 2)

    def _forget_old(self) -> None:
        """Forget what is long over: another replica was in charge and has looked at it."""
        since = self._clock.now() - self._span
        for key in [key for key, (case, _) in self._open.items() if case.finished_at < since]:
            del self._open[key]

    async def look(self) -> None:
        """Look at every run whose time has come."""
        now = self._clock.now()
        due = [
            (key, *entry)
            for key, entry in self._open.items()
            if now - entry[0].finished_at >= self._delay
        ]
        for key, case, tries in due:
            result = await self._judge(case)
            if result == "unknown" and tries + 1 < _TRIES:
                self._open[key] = (case, tries + 1)
                continue
            self._tally.count(numbers.AUDITS, result)
            del self._open[key]
            self._closed[key] = case.run_id
            if len(self._closed) > _MOST:
                # Of resources that are long gone; another look would do no harm.
                del self._closed[next(iter(self._closed))]

    async def _judge(self, case: Case) -> str:
        try:
            login = await self._remote.own_login()
            changes = await self._remote.ref_changes(case.repository, case.branch)
        except CallError as error:
            logger.info("audit not possible", extra={"run": case.run_id, "error": str(error)})
            return "unknown"
        until = case.finished_at + self._delay
        if not is_broken(case, changes, login, until):
            return "clean"
        stop = case.ending is Ending.STOP
        self._tally.count(numbers.PUSH_AFTER_STOP if stop else numbers.PUSH_AFTER_TIMEOUT)
        details = {"run": case.run_id, "repository": case.repository, "branch": case.branch}
        logger.error(f"a branch was written after its {case.ending}", extra=details)
        return "pushed"
