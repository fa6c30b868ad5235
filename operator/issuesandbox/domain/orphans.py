"""Which sandboxes nobody owns, and which of them may be killed now.

Killing many at once is a mistake until proven otherwise, so every doubt keeps a sandbox: its own
dead-man switch ends it later. Pure; what was seen before comes in and goes out as a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from issuesandbox.api.names import (
    LABEL_INSTALLATION,
    LABEL_NAMESPACE,
    LABEL_RESOURCE,
    LABEL_UID,
)
from issuesandbox.domain.naming import is_from_elsewhere
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.states import Sight, sight_of
from issuesandbox.domain.timings import Timings

# When each orphan was first seen as one, by its id and the resource it named then.
Sightings = Mapping[tuple[SandboxId, str], float]


class Verdict(StrEnum):
    """What a sandbox is to the reaper."""

    OWNED = "owned"
    OUTSIDE = "outside"
    UNCLEAR = "unclear"
    ENDING = "ending"
    HELD = "held"
    DUE = "due"


class Doubt(StrEnum):
    """What keeps an orphan for now."""

    STATE = "strange_state"
    AGE = "unknown_age"
    YOUNG = "young"
    NEW = "seen_once"
    CAP = "over_the_cap"
    BREAKER = "breaker"


ORPHANS = frozenset({Verdict.HELD, Verdict.DUE})
_LIVE = ORPHANS | {Verdict.OWNED}


@dataclass(frozen=True, slots=True)
class Scope:
    """What one operator may look after."""

    installation: str
    namespaces: tuple[str, ...] = ()
    """Empty for all of them."""
    home: str = ""
    """The uid of the operator's namespace; empty if it is not known."""

    def covers(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a sandbox with these labels is this operator's business."""
        if labels.get(LABEL_INSTALLATION) != self.installation:
            return False
        if is_from_elsewhere(labels, self.home):
            return False
        return not self.namespaces or labels.get(LABEL_NAMESPACE) in self.namespaces


@dataclass(frozen=True, slots=True)
class Caps:
    """How much a sweep may destroy."""

    per_sweep: int = 50
    few: int = 3
    share: float = 0.2

    def trips(self, orphans: int, owned: int) -> bool:
        """Tell whether so many orphans at once are rather a mistake of ours."""
        return orphans > max(self.few, self.share * owned)


@dataclass(frozen=True, slots=True)
class Look:
    """What is known at the moment of one sweep."""

    living: frozenset[str]
    """The uids of all resources, listed after the sandboxes were."""
    now: datetime
    moment: float
    """The same moment on the clock that never jumps."""
    sightings: Sightings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One sandbox and what the reaper makes of it."""

    sandbox: SandboxView
    verdict: Verdict
    why: str
    age: timedelta | None = None
    doubt: Doubt | None = None
    """What keeps it, where it has no owner."""

    @property
    def sighting(self) -> tuple[SandboxId, str]:
        """Return under what the sandbox is remembered."""
        return self.sandbox.id, self.sandbox.labels.get(LABEL_UID, "")

    @property
    def resource(self) -> str:
        """Return the place of the resource that its labels name."""
        labels = self.sandbox.labels
        return f"{labels.get(LABEL_NAMESPACE, '?')}/{labels.get(LABEL_RESOURCE, '?')}"


@dataclass(frozen=True, slots=True)
class Assessment:
    """What one sweep found, what to kill now, and what to remember."""

    findings: tuple[Finding, ...]
    due: tuple[Finding, ...] = ()
    sightings: Sightings = field(default_factory=dict)
    breaker: str | None = None
    """Why nothing may be killed, if so."""

    @property
    def orphans(self) -> int:
        """Return how many sandboxes have no resource."""
        return sum(each.verdict in ORPHANS for each in self.findings)

    @property
    def kept(self) -> Counter[Doubt]:
        """Return how many of them are kept for now, by what keeps them."""
        if self.breaker is not None:
            return Counter({Doubt.BREAKER: self.orphans})
        kept = Counter(each.doubt for each in self.findings if each.doubt is not None)
        kept[Doubt.CAP] = self.orphans - kept.total() - len(self.due)
        return kept


@dataclass(frozen=True, slots=True)
class OrphanRules:
    """The gates that an orphan passes on its way to its end."""

    scope: Scope
    timings: Timings
    caps: Caps = Caps()

    def assess(self, listed: Iterable[SandboxView], look: Look) -> Assessment:
        """Judge all listed sandboxes at once."""
        findings = tuple(self.judge(each, look) for each in listed)
        orphans = [each for each in findings if each.verdict in ORPHANS]
        owned = sum(each.verdict in _LIVE for each in findings)
        if self.caps.trips(len(orphans), owned):
            # Forgotten on purpose: once calm returns, everybody needs two new sightings.
            text = f"{len(orphans)} of {owned} sandboxes look like orphans, too many to believe"
            return Assessment(findings, breaker=text)
        sightings = {
            each.sighting: look.sightings.get(each.sighting, look.moment) for each in orphans
        }
        due = [each for each in orphans if each.verdict is Verdict.DUE]
        due.sort(key=lambda each: (sightings[each.sighting], each.sandbox.id))
        return Assessment(findings, tuple(due[: self.caps.per_sweep]), sightings)

    def judge(self, sandbox: SandboxView, look: Look) -> Finding:
        """Return what to make of one sandbox."""
        age = _age(sandbox, look.now)
        verdict, why = self._standing(sandbox, look)
        finding = Finding(sandbox, verdict, why, age)
        if verdict is not Verdict.DUE:
            return finding
        doubt = self._doubt(finding, look)
        if doubt is None:
            return finding
        return Finding(sandbox, Verdict.HELD, why=doubt[1], age=age, doubt=doubt[0])

    def _standing(self, sandbox: SandboxView, look: Look) -> tuple[Verdict, str]:
        labels = sandbox.labels
        if not self.scope.covers(labels):
            return Verdict.OUTSIDE, "belongs to another installation or namespace"
        if not all(labels.get(name) for name in (LABEL_NAMESPACE, LABEL_RESOURCE, LABEL_UID)):
            return Verdict.UNCLEAR, "its labels name no resource"
        if labels[LABEL_UID] in look.living:
            return Verdict.OWNED, "its resource exists"
        if sight_of(sandbox) is Sight.DESTROYING:
            return Verdict.ENDING, "is being destroyed"
        return Verdict.DUE, "its resource does not exist"

    def _doubt(self, finding: Finding, look: Look) -> tuple[Doubt, str] | None:
        timings, sight = self.timings, sight_of(finding.sandbox)
        if sight is Sight.STRANGE:
            shown = finding.sandbox.state or "none at all"
            return Doubt.STATE, f"an orphan whose state nobody knows: {shown}"
        if finding.age is None:
            return Doubt.AGE, "an orphan of unknown age"
        if finding.age < timings.orphan_age:
            return Doubt.YOUNG, f"an orphan younger than {_words(timings.orphan_age)}"
        first_seen = look.sightings.get(finding.sighting, look.moment)
        gap = timings.orphan_reshape if sight is Sight.RESHAPING else timings.orphan_gap
        if timedelta(seconds=look.moment - first_seen) < gap:
            text = f"an orphan that must be seen again {_words(gap)} after the first time"
            return Doubt.NEW, text
        return None


def _age(sandbox: SandboxView, now: datetime) -> timedelta | None:
    created = sandbox.created_at
    if created is None:
        return None
    return now - (created if created.tzinfo else created.replace(tzinfo=UTC))


def _words(span: timedelta) -> str:
    return f"{span.total_seconds():g} s"
