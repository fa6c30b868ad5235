"""The right to push: got before a push is decided, and kept for the push.

A pause may lie between the two, and whoever gave a token may take it back: an old one is not used.
"""

from __future__ import annotations

from dataclasses import dataclass

from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.sources import destination
from issuesandbox.ports.github import RepositoryView, Token
from issuesandbox.ports.resources import ResourceKey


@dataclass(frozen=True, slots=True)
class _Right:
    run_id: str
    url: str
    token: Token
    until: float


class Rights:
    """The rights of all runs; at most one for each resource."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._rights: dict[ResourceKey, _Right] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop a right: nobody needs it any more, or it was refused."""
        self._rights.pop(key, None)

    async def renew(self, assignment: Assignment, view: RepositoryView | None = None) -> _Right:
        """Get the right of a run anew; `view` is the repository as seen just now."""
        url, token = await destination(assignment, self._outside, view)
        until = self._outside.clock.monotonic() + self._outside.timings.token_use.total_seconds()
        right = self._rights[assignment.key] = _Right(assignment.run.id, url, token, until)
        return right

    async def of(self, assignment: Assignment) -> tuple[str, Token]:
        """Return where a run may push to, and with what."""
        right = self._rights.get(assignment.key)
        fits = right is not None and right.run_id == assignment.run.id
        if right is None or not fits or self._outside.clock.monotonic() >= right.until:
            right = await self.renew(assignment)
        return right.url, right.token
