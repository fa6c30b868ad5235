"""What GitHub says about a run, asked while its sandbox is still on its way.

A courtesy to the run, which would otherwise wait for the one and then for the other. What was found
is used once and only while it is fresh; whatever went wrong is asked again by the run itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from issuesandbox.domain.prompt import IssueFacts
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.engine.runs.sources import Hopeless, Source, source_of
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import ResourceKey


@dataclass(frozen=True, slots=True)
class Scouted:
    """Where the work of a run comes from and goes to, and what it is about."""

    source: Source
    facts: IssueFacts


@dataclass(frozen=True, slots=True)
class _Scout:
    generation: int | None
    began: float
    task: asyncio.Task[Scouted | None]


class Scouts:
    """At most one on its way for each resource."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._fresh_for = outside.timings.scout_use.total_seconds()
        self._scouts: dict[ResourceKey, _Scout] = {}

    def __len__(self) -> int:
        return len(self._scouts)

    def send(self, assignment: Assignment) -> None:
        """Begin to ask, unless somebody is asking."""
        self._dismiss()
        key = assignment.key
        if key not in self._scouts:
            task = asyncio.create_task(_attempted(assignment, self._outside))
            began, generation = self._now(), assignment.resource.metadata.generation
            scout = self._scouts[key] = _Scout(generation, began, task)
            # Also where nobody is sent or reports any more.
            asyncio.get_running_loop().call_later(self._fresh_for, self._expire, key, scout)

    def recall(self, key: ResourceKey) -> None:
        """Forget what was found out for a resource that is gone, or that others act for."""
        sent = self._scouts.pop(key, None)
        if sent is not None:
            sent.task.cancel()

    async def report(self, assignment: Assignment) -> Scouted:
        """Return what GitHub says, from whoever asked before or now."""
        self._dismiss()
        sent = self._scouts.pop(assignment.key, None)
        found = None
        if sent is not None and sent.generation == assignment.resource.metadata.generation:
            found = await sent.task
        elif sent is not None:
            sent.task.cancel()
        return found or await _scouted(assignment, self._outside)

    def _dismiss(self) -> None:
        """Forget what nobody came for in time: there are tokens in it."""
        oldest = self._now() - self._fresh_for
        for key in [key for key, each in self._scouts.items() if each.began < oldest]:
            self.recall(key)

    def _expire(self, key: ResourceKey, scout: _Scout) -> None:
        if self._scouts.get(key) is scout:
            self.recall(key)

    def _now(self) -> float:
        return self._outside.clock.monotonic()


async def _attempted(assignment: Assignment, outside: Outside) -> Scouted | None:
    try:
        return await _scouted(assignment, outside)
    except (Hopeless, CallError):
        return None


async def _scouted(assignment: Assignment, outside: Outside) -> Scouted:
    # What is wrong with the repository is told first.
    async with ahead(_facts(assignment, outside)) as facts:
        source = await source_of(assignment, outside)
        return Scouted(source, await facts)


async def _facts(assignment: Assignment, outside: Outside) -> IssueFacts:
    issue = assignment.resource.spec.issue
    title, body, labels, author = issue.title, issue.body, issue.labels, issue.author
    if None in (title, body, labels) and outside.github is not None:
        try:
            seen = await outside.github.issue(issue.repository, issue.number)
        except FINAL as error:
            raise Hopeless(
                "IssueNotFound", f"GitHub does not show {issue.repository}#{issue.number}: {error}"
            ) from None
        title, body = title or seen.title, body if body is not None else seen.body
        labels, author = seen.labels if labels is None else labels, author or seen.author
    return IssueFacts(
        number=issue.number,
        title=title or "",
        body=body or "",
        labels=tuple(labels or ()),
        author=author or "",
    )
