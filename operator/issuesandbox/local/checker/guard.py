"""Judges one world from the beginning of a block to its end, as every end-to-end test wants it.

async with guarded(sources, kubeconfig) as guard:
    ...  # the test; what it breaks on purpose it names: guard.lapse("no-orphan")
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from issuesandbox.clock import SystemClock
from issuesandbox.domain.flags import Flags
from issuesandbox.local.checker.collect import Sources, cluster_texts, collect
from issuesandbox.local.checker.evidence import Moment, Span, Violation
from issuesandbox.local.checker.recorder import Recorder
from issuesandbox.local.checker.verdict import check

_ANSWER_SECONDS = 2.0


class BrokenInvariantsError(AssertionError):
    """What was promised did not hold; the message has one line per violation."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("\n".join(["invariants are broken:", *map(str, violations)]))
        self.violations = tuple(violations)


class Guard:
    """What a test may tell the checker about itself."""

    def __init__(self, sources: Sources) -> None:
        self.lapsed: set[str] = set()
        self.at_rest = True
        self.bounds = False
        self.flags: list[Flags] = [Flags()]
        self.texts: dict[str, str] = {}
        self.frozen: list[Span] = []
        # Where operators and adapters export their metrics; those that are still up are read.
        self.metrics: list[str] = []
        self.recorder: Recorder | None = None
        self._sources = sources
        self._github_seq = 0

    def lapse(self, *rules: str) -> None:
        """Leave rules out that this test breaks on purpose."""
        self.lapsed.update(rules)

    async def writes(self, name: str) -> int:
        """Return how often a resource of this world was written to so far, by anybody."""
        assert self.recorder is not None, "only a guard on duty has seen anything"
        history = await asyncio.to_thread(self.recorder.history)
        own = self._sources.namespaces
        seen = [each.object["metadata"] for each in history]
        return sum(
            each["name"] == name and (own is None or each["namespace"] in own) for each in seen
        )

    async def freeze(self) -> None:
        """Note that everything is frozen from now on."""
        self.frozen.append(Span(await self._now()))

    async def unfreeze(self) -> None:
        """Note that nothing is frozen any more."""
        self.frozen[-1] = Span(self.frozen[-1].start, await self._now())

    def positions(self) -> tuple[int | None, int | None]:
        """Return how far the journals are; asks the simulators, so never on their own loop."""
        daytona = self._sources.daytona_admin
        health = None if daytona is None else _ask(f"{daytona}/health")
        if self._sources.github is not None:
            fresh = _ask(f"{self._sources.github}/_sim/journal?since={self._github_seq}")
            self._github_seq = fresh[-1]["seq"] if fresh else self._github_seq
        return health["seq"] if health else None, self._github_seq or None

    async def _now(self) -> Moment:
        positions = await asyncio.to_thread(self.positions)
        return Moment(SystemClock().now().timestamp(), *positions)


@asynccontextmanager
async def guarded(sources: Sources, kubeconfig: Path) -> AsyncIterator[Guard]:
    """Watch a world during a block, and raise BrokenInvariantsError if it broke a promise.

    A block that fails by itself is not judged: its own error tells more.
    """
    guard = Guard(sources)
    recorder = guard.recorder = await asyncio.to_thread(Recorder, kubeconfig, guard.positions)
    await asyncio.to_thread(recorder.__enter__)
    try:
        yield guard
        history = await asyncio.to_thread(recorder.history)
        cluster = await asyncio.to_thread(cluster_texts, kubeconfig)
    finally:
        await asyncio.to_thread(recorder.__exit__, None, None, None)
    texts = {**cluster, **guard.texts}
    evidence = await collect(
        sources, history, texts=texts, frozen=guard.frozen, metrics=guard.metrics
    )
    evidence = replace(evidence, flags=tuple(guard.flags))
    violations = check(evidence, at_rest=guard.at_rest, bounds=guard.bounds, lapsed=guard.lapsed)
    if violations:
        raise BrokenInvariantsError(violations)


def _ask(url: str) -> Any:
    try:
        with urlopen(url, timeout=_ANSWER_SECONDS) as response:  # noqa: S310 - our own simulator
            return json.load(response)
    except (URLError, TimeoutError, ValueError):
        return None
