"""Who may have a sandbox now, and who waits, where in the line and why.

A pure function over all resources, so that every replica comes to the same answer. Turns go
round the repositories: the one that holds the fewest slots is next, then the oldest resource.
Knows no cache and no clock.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from issuesandbox.api.conditions import Reason
from issuesandbox.domain.repository_globs import matches
from issuesandbox.domain.timings import Timings

Author = tuple[str, str]
Issue = tuple[str, int]

# The uid decides between resources of one second.
_AGE = attrgetter("created", "uid")

_KEPT = (
    "those kept after a run count, also when stopped. Room comes with the end of a run, with a "
    "shorter cleanup.retention, by deleting kept resources, or by raising"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A resource, reduced to what admission looks at."""

    uid: str
    namespace: str
    name: str
    repository: str
    """Lower case: GitHub ignores case here."""
    number: int
    created: str
    """The creation time as Kubernetes writes it; such texts sort by time."""
    author: str = ""
    live: bool = False
    """Holds a slot: has a sandbox in any state, or one is on its way."""
    wants: bool = False
    """Waits for a new run or sandbox to be admitted."""
    starts: tuple[datetime, ...] = ()
    """When its last runs were admitted; those of the last minute are enough."""

    @property
    def issue(self) -> Issue:
        """Return the issue it stands for."""
        return self.repository, self.number

    @property
    def by(self) -> Author:
        """Return whose new runs are counted together."""
        return self.repository, self.author


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be had at once."""

    installation: int = 20
    repository: int = 5
    new_runs: int = 10
    """New runs of one author in one repository, per window."""
    window: timedelta = Timings().run_rate_window
    allowed: Mapping[str, tuple[str, ...]] | None = None
    """Allowed repositories by namespace, as `owner/name` with `*`; None allows all of them."""

    def allow(self, namespace: str, repository: str) -> bool:
        """Tell whether a namespace may have sandboxes for a repository."""
        if self.allowed is None:
            return True
        return _any_matches(self.allowed.get(namespace, self.allowed.get("*", ())), repository)


class Verdict(NamedTuple):
    """Whether a resource may go on, else why not."""

    reason: Reason | None = None
    """None if it is admitted."""
    why: str = "It may have a sandbox."
    position: int | None = None
    """Its number in the queue, where that is known."""
    retry: timedelta | None = None
    """When to ask again, where only time helps."""

    @property
    def admitted(self) -> bool:
        """Tell whether it may go on."""
        return self.reason is None

    @property
    def message(self) -> str:
        """Return the verdict for people."""
        return self.why if self.position is None else f"Number {self.position} waits: {self.why}"


ADMITTED = Verdict()


def rank(candidates: Iterable[Candidate], limits: Limits, now: datetime) -> dict[str, Verdict]:
    """Return the verdict on each resource that wants or holds something, by uid."""
    known = tuple(candidates)
    owners = owners_of(known, limits)
    verdicts: dict[str, Verdict] = {}
    asking: list[Candidate] = []
    for each in known:
        verdict = standing(each, owners[each.issue], limits)
        if verdict is not None:
            verdicts[each.uid] = verdict
        elif each.wants:
            asking.append(each)
        elif each.live:
            verdicts[each.uid] = ADMITTED
    held = Counter(each.repository for each in known if each.live)
    verdicts.update(Turns(held, recent_starts(known, limits, now), limits, now).take(asking))
    return verdicts


def standing(candidate: Candidate, owner: Candidate, limits: Limits) -> Verdict | None:
    """Return why a resource may never be admitted as things stand, or None."""
    if not limits.allow(candidate.namespace, candidate.repository):
        text = (
            f"Namespace {candidate.namespace} may not use {candidate.repository}; "
            "an administrator can allow it in the operator's settings."
        )
        return Verdict(Reason.REPOSITORY_NOT_ALLOWED, text)
    if owner.uid != candidate.uid:
        text = (
            f"{owner.namespace}/{owner.name} stands for the same issue; "
            "this one is left alone while that one exists."
        )
        return Verdict(Reason.DUPLICATE_ISSUE, text)
    return None


def owners_of(candidates: Iterable[Candidate], limits: Limits) -> dict[Issue, Candidate]:
    """Return who stands for each issue: who has the sandbox, else the oldest."""
    owners: dict[Issue, Candidate] = {}
    for each in candidates:
        before = owners.setdefault(each.issue, each)
        if before is not each and _claim(each, limits) < _claim(before, limits):
            owners[each.issue] = each
    return owners


def recent_starts(
    candidates: Iterable[Candidate], limits: Limits, now: datetime
) -> dict[Author, list[datetime]]:
    """Return the new runs of the last window, by repository and author."""
    recent: dict[Author, list[datetime]] = defaultdict(list)
    for each in candidates:
        for start in each.starts:
            if start > now - limits.window:
                recent[each.by].append(start)
    return recent


class Turns:
    """Hands out the free slots one by one."""

    def __init__(
        self,
        held: Mapping[str, int],
        recent: Mapping[Author, list[datetime]],
        limits: Limits,
        now: datetime,
    ) -> None:
        self._held = held
        self._recent = recent
        self._limits = limits
        self._now = now
        self._free = limits.installation - sum(held.values())
        self._new: Counter[Author] = Counter()

    def take(self, asking: Iterable[Candidate]) -> dict[str, Verdict]:
        """Return the verdict on each of those who ask."""
        verdicts: dict[str, Verdict] = {}
        lines: dict[str, deque[Candidate]] = defaultdict(deque)
        for each in sorted(asking, key=_AGE):
            if each.live:
                # It has its slot already; only the rate of new runs counts.
                verdicts[each.uid] = self._if_rate_allows(each)
            else:
                lines[each.repository].append(each)
        turns = [
            (self._held.get(repository, 0), *_AGE(line[0]), repository)
            for repository, line in lines.items()
        ]
        heapq.heapify(turns)
        while turns and self._free > 0 and turns[0][0] < self._limits.repository:
            round_, _, _, repository = turns[0]
            line = lines[repository]
            each = line.popleft()
            verdict = verdicts[each.uid] = self._if_rate_allows(each)
            self._free -= verdict.admitted
            if line:
                # Who is held back by the rate has not used the repository's turn.
                turn = (round_ + verdict.admitted, *_AGE(line[0]), repository)
                heapq.heapreplace(turns, turn)
            else:
                heapq.heappop(turns)
        self._queue({repository: round_ for round_, _, _, repository in turns}, lines, verdicts)
        return verdicts

    def _queue(
        self,
        rounds: Mapping[str, int],
        lines: Mapping[str, deque[Candidate]],
        verdicts: dict[str, Verdict],
    ) -> None:
        limits = self._limits
        full = f"all {limits.installation} sandboxes are taken; {_KEPT} ISSUESANDBOX_MAX_SANDBOXES."
        if self._free > 0:
            taken = f"its repository has its {limits.repository} sandboxes"
            full = f"{taken}; {_KEPT} ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY."
        waiting = [
            (round_, each.created, each.uid)
            for repository, first in rounds.items()
            for round_, each in enumerate(lines[repository], first)
        ]
        waiting.sort()
        for position, (_, _, uid) in enumerate(waiting, 1):
            verdicts[uid] = Verdict(Reason.QUEUED, full, position)

    def _if_rate_allows(self, candidate: Candidate) -> Verdict:
        limits, by = self._limits, candidate.by
        recent = self._recent.get(by, [])
        if len(recent) + self._new[by] < limits.new_runs:
            self._new[by] += 1
            return ADMITTED
        wait = min(recent) + limits.window - self._now if recent else limits.window
        text = (
            f"{limits.new_runs} runs for {candidate.author or 'an unknown author'} in "
            f"{candidate.repository} began in the last {limits.window.total_seconds():g} s; "
            "it follows by itself."
        )
        return Verdict(Reason.RATE_LIMITED, text, retry=min(wait, limits.window))


def _claim(candidate: Candidate, limits: Limits) -> tuple[bool, bool, str, str]:
    # Otherwise a namespace could take any issue away from those who may work on it.
    barred = not limits.allow(candidate.namespace, candidate.repository)
    return not candidate.live, barred, candidate.created, candidate.uid


@lru_cache(maxsize=16_384)
def _any_matches(globs: tuple[str, ...], repository: str) -> bool:
    return any(matches(glob, repository) for glob in globs)
