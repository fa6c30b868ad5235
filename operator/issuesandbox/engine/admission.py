"""The desk where a pass asks whether its resource may have a sandbox now.

Keeps count of who holds and who waits, so that asking costs nothing while there is room; only a
queue is ranked, and not for every newcomer. Every replica has a full desk and admits its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from issuesandbox.api.conditions import Reason
from issuesandbox.clock import Clock
from issuesandbox.domain.admission import (
    ADMITTED,
    Author,
    Candidate,
    Issue,
    Limits,
    Turns,
    Verdict,
    owners_of,
    standing,
)
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.resources import ResourceKey

Counted = TypeVar("Counted", bound=Hashable)


class AdmissionDesk:
    """Holds every resource as a candidate; one instance per process."""

    def __init__(self, limits: Limits, timings: Timings, clock: Clock) -> None:
        self._limits = replace(limits, window=timings.run_rate_window)
        self._refresh = timings.rank_refresh
        self._clock = clock
        self._known: dict[str, Candidate] = {}
        self._issues: dict[Issue, tuple[Candidate, ...]] = {}
        self._held: Counter[str] = Counter()
        self.live = 0
        self._asking: dict[str, Candidate] = {}
        self._asking_in: Counter[str] = Counter()
        self._asking_by: Counter[Author] = Counter()
        self._started: dict[Author, dict[str, tuple[datetime, ...]]] = defaultdict(dict)
        self._turned_away: set[str] = set()
        self._ranking: dict[str, Verdict] = {}
        self._ranked_at = float("-inf")
        self._changed = asyncio.Event()

    def adopt(self, limits: Limits) -> None:
        """Go by other limits from now on; who has a sandbox keeps it."""
        self._limits = replace(limits, window=self._limits.window)
        self._changed.set()

    @property
    def asking(self) -> int:
        """Return how many wait for an answer or for their turn."""
        return len(self._asking)

    def put(self, candidate: Candidate) -> None:
        """Take note of a resource as it is now."""
        if candidate.starts:
            recent = _since(self._clock.now() - self._limits.window, candidate.starts)
            candidate = replace(candidate, starts=tuple(recent))
        before = self._known.get(candidate.uid)
        if before == candidate:
            return
        if before is not None:
            self._remove(before)
        self._known[candidate.uid] = candidate
        self._issues[candidate.issue] = (*self._issues.get(candidate.issue, ()), candidate)
        if candidate.live:
            self.live += 1
            self._held[candidate.repository] += 1
        if candidate.wants:
            self._asking[candidate.uid] = candidate
            self._asking_in[candidate.repository] += 1
            self._asking_by[candidate.by] += 1
        if candidate.starts:
            self._started[candidate.by][candidate.uid] = candidate.starts
        self._changed.set()

    def drop(self, uid: str) -> None:
        """Forget a resource that is gone."""
        before = self._known.pop(uid, None)
        self._turned_away.discard(uid)
        if before is not None:
            self._remove(before)
            self._changed.set()

    def ask(self, uid: str) -> Verdict | None:
        """Return the verdict on a resource, None if it asks for nothing; admission takes a slot."""
        candidate = self._known.get(uid)
        verdict = self._judge(candidate) if candidate is not None else None
        if verdict is not None and not verdict.admitted:
            if uid not in self._turned_away:
                self._turned_away.add(uid)
                self._changed.set()
        else:
            self._turned_away.discard(uid)
        return verdict

    def _judge(self, candidate: Candidate) -> Verdict | None:
        verdict = self._standing(candidate)
        if verdict is not None:
            return verdict
        if not candidate.wants:
            return ADMITTED if candidate.live else None
        now = self._clock.now()
        verdict = ADMITTED if self._room_for_all(candidate, now) else self._ranked(candidate, now)
        if verdict.admitted:
            starts = (*_since(now - self._limits.window, candidate.starts), now)
            self.put(replace(candidate, wants=False, live=True, starts=starts))
        return verdict

    async def run(self, wake: Callable[[str], None]) -> None:
        """Wake whoever's turn has come, until cancelled; who never asked has a pass due anyway."""
        while True:
            self._changed.clear()
            if self._turned_away:
                self._rank(self._clock.now())
            told = [self._ranking.get(uid) for uid in self._turned_away]
            waits = [each.retry for each in told if each is not None and each.retry is not None]
            for uid, verdict in zip(tuple(self._turned_away), told, strict=True):
                if verdict is not None and verdict.admitted:
                    wake(uid)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(waits).total_seconds() if waits else None):
                    await self._changed.wait()
            await asyncio.sleep(self._refresh.total_seconds())

    def _remove(self, candidate: Candidate) -> None:
        others = tuple(each for each in self._issues.pop(candidate.issue) if each != candidate)
        if others:
            self._issues[candidate.issue] = others
        if candidate.live:
            self.live -= 1
            _uncount(self._held, candidate.repository)
        if self._asking.pop(candidate.uid, None) is not None:
            _uncount(self._asking_in, candidate.repository)
            _uncount(self._asking_by, candidate.by)
        if candidate.starts and candidate.by in self._started:
            self._forget_starts(candidate.by, [candidate.uid])

    def _standing(self, candidate: Candidate) -> Verdict | None:
        owners = owners_of(self._issues[candidate.issue], self._limits)
        return standing(candidate, owners[candidate.issue], self._limits)

    def _room_for_all(self, candidate: Candidate, now: datetime) -> bool:
        """Tell whether all who ask could be admitted, so that no order is needed."""
        others_here = self._asking_in[candidate.repository] - 1
        others_by = self._asking_by[candidate.by] - 1
        return self._fits(candidate, now, self.asking - 1, others_here, others_by)

    def _fits(
        self, candidate: Candidate, now: datetime, others: int, others_here: int, others_by: int
    ) -> bool:
        """Tell whether a resource could be admitted beside so many others."""
        limits = self._limits
        if len(self._recent(candidate.by, now)) + others_by >= limits.new_runs:
            return False
        here = self._held[candidate.repository] + others_here
        free = self.live + others < limits.installation and here < limits.repository
        return candidate.live or free

    def _ranked(self, candidate: Candidate, now: datetime) -> Verdict:
        verdict = self._ranking.get(candidate.uid)
        fresh = self._clock.monotonic() - self._ranked_at < self._refresh.total_seconds()
        # Whoever a ranking admits stays admitted until somebody else took the place.
        taken = verdict == ADMITTED and not self._fits(candidate, now, 0, 0, 0)
        if taken or not fresh:
            self._rank(now)
            verdict = self._ranking.get(candidate.uid)
        if verdict is None:
            text = "In the queue; its number is not known yet."
            return Verdict(Reason.QUEUED, text, retry=self._refresh)
        return verdict

    def _rank(self, now: datetime) -> None:
        eligible = [each for each in self._asking.values() if self._standing(each) is None]
        recent = {by: self._recent(by, now) for by in {each.by for each in eligible}}
        self._ranking = Turns(self._held, recent, self._limits, now).take(eligible)
        self._ranked_at = self._clock.monotonic()

    def _recent(self, by: Author, now: datetime) -> list[datetime]:
        started, since = self._started.get(by, {}), now - self._limits.window
        past = [uid for uid, starts in started.items() if max(starts) <= since]
        if past:
            self._forget_starts(by, past)
        return [start for starts in started.values() for start in _since(since, starts)]

    def _forget_starts(self, by: Author, uids: list[str]) -> None:
        started = self._started[by]
        for uid in uids:
            started.pop(uid, None)
        if not started:
            del self._started[by]


def _uncount(counts: Counter[Counted], of: Counted) -> None:
    """Count one less, and keep nothing of what is at zero: there may be any number of them."""
    counts[of] -= 1
    if not counts[of]:
        del counts[of]


def _since(since: datetime, starts: tuple[datetime, ...]) -> list[datetime]:
    return [start for start in starts if start > since]


def candidate_of(
    key: ResourceKey,
    body: Mapping[str, Any],
    *,
    wants: bool,
    live: bool,
    starts: tuple[datetime, ...] = (),
) -> Candidate:
    """Return a resource as a candidate; texts that many share are kept once."""
    issue = body["spec"]["issue"]
    return Candidate(
        uid=key.uid,
        namespace=sys.intern(key.namespace),
        name=key.name,
        repository=sys.intern(issue["repository"].lower()),
        number=issue["number"],
        created=sys.intern(body["metadata"]["creationTimestamp"]),
        author=sys.intern((issue.get("author") or "").lower()),
        wants=wants,
        live=live,
        starts=starts,
    )
