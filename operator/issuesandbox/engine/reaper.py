"""The reaper: kills the sandboxes of this installation that no resource owns.

One per installation, under a lease. Sandboxes are listed before resources, so that whatever was
created in between has its resource in the second list. Every kill is confirmed by a GET of the
sandbox and of the resource. What it remembers is only ever a reason to wait.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from issuesandbox.api.names import (
    LABEL_NAMESPACE,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_RESOURCE,
    LABEL_UID,
)
from issuesandbox.clock import Clock
from issuesandbox.domain.buckets import Priority
from issuesandbox.domain.naming import attempt_of, installation_labels
from issuesandbox.domain.orphans import (
    Assessment,
    Doubt,
    Finding,
    Look,
    OrphanRules,
    Scope,
    Sightings,
    Verdict,
)
from issuesandbox.engine.batch import in_batches
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.rates import on_behalf_of, while_allowed
from issuesandbox.ports.errors import Busy, CallError, NotFound
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes

logger = logging.getLogger(__name__)


class Registry(Protocol):
    """The resources as the API server has them now, not as a cache remembers them."""

    def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
        """Yield the keys of all resources, chunk by chunk."""
        ...

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return the resource at this place."""
        ...


class _NotInCharge(Exception):
    """Nothing may be killed any more."""


class Fate(StrEnum):
    """What became of an orphan that was due."""

    KILLED = "killed"
    WOULD = "would be killed"
    SPARED = "spared"
    BUSY = "busy"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Treated:
    """An orphan that was due, and what became of it."""

    finding: Finding
    fate: Fate
    why: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one sweep found and did."""

    assessment: Assessment
    treated: tuple[Treated, ...] = ()

    @property
    def summary(self) -> dict[str, int]:
        """Return the numbers of the sweep."""
        fates = Counter(each.fate for each in self.treated)
        return {
            "found": self.assessment.orphans,
            "killed": fates[Fate.KILLED],
            "skipped": self.assessment.orphans - fates[Fate.KILLED] - fates[Fate.ERROR],
            "errors": fates[Fate.ERROR],
        }


@dataclass(frozen=True, slots=True)
class Outside:
    """The outside, as the reaper needs it."""

    sandboxes: Sandboxes
    registry: Registry
    clock: Clock


class Reaper:
    """Sweeps; one sweep at a time."""

    def __init__(
        self,
        outside: Outside,
        rules: OrphanRules,
        *,
        may_sweep: Callable[[], bool] = lambda: True,
        dry_run: bool = False,
    ) -> None:
        self._outside = outside
        self._rules = rules
        self._may_sweep = may_sweep
        """Asked before each sweep and right before each kill: a lease is lost at any time, and
        a freeze holds from the moment it is there."""
        self._dry_run = dry_run
        self._sightings: Sightings = {}
        self._said: object = None
        self.fates: Counter[Fate] = Counter()
        self.orphans = 0
        self.kept: Counter[Doubt] = Counter()
        self.breaker: str | None = None

    async def run(self, suspects: Callable[[], bool] = lambda: True) -> None:
        """Sweep each tick until cancelled, while it may and unless there are no suspects."""
        while True:
            if self._may_sweep() and (self._sightings or suspects()):
                try:
                    await self.sweep()
                except Exception:
                    logger.exception("sweep failed")
            # Jitter keeps the operators of an organisation from listing in step.
            tick = self._rules.timings.reap_tick.total_seconds()
            await asyncio.sleep(tick * random.uniform(0.9, 1.1))  # noqa: S311

    async def sweep(self) -> Sweep:
        """Look once at everything and kill what has passed all gates."""
        assessment = await self._assess()
        self._sightings = assessment.sightings
        self.breaker = assessment.breaker
        if assessment.findings or assessment.breaker is None:
            self.orphans, self.kept = assessment.orphans, assessment.kept
        with on_behalf_of(Priority.KILL):
            treated = await in_batches(assessment.due, self._treat)
        sweep = Sweep(assessment, tuple(treated))
        self.fates.update(each.fate for each in treated)
        self._say(sweep)
        return sweep

    async def _assess(self) -> Assessment:
        scope, outside = self._rules.scope, self._outside
        living: set[str] = set()
        try:
            listed = await outside.sandboxes.list_owned(installation_labels(scope.installation))
        except CallError as error:
            return self._blind(error)
        try:
            async for chunk in outside.registry.uids(scope.namespaces):
                living.update(key.uid for key in chunk)
        except NotFound as error:
            # Without the definition every resource looks gone.
            return Assessment((), breaker=f"IssueSandbox resources are not served: {error}")
        except CallError as error:
            return self._blind(error)
        return self._rules.assess(listed, self._look(frozenset(living)))

    def _blind(self, error: CallError) -> Assessment:
        return Assessment((), sightings=self._sightings, breaker=f"a list failed: {error}")

    def _look(self, living: frozenset[str]) -> Look:
        clock = self._outside.clock
        return Look(living, clock.now(), clock.monotonic(), self._sightings)

    async def _treat(self, finding: Finding) -> Treated:
        try:
            treated = await self._kill(finding)
        except Busy as error:
            treated = Treated(finding, Fate.BUSY, f"{error}; the next sweep tries again")
        except CallError as error:
            treated = Treated(finding, Fate.ERROR, str(error))
        except Exception as error:
            logger.exception("an orphan could not be treated")
            treated = Treated(finding, Fate.ERROR, repr(error))
        labels = finding.sandbox.labels
        log = logger.warning if treated.fate is Fate.ERROR else logger.info
        log(
            "orphan",
            extra={
                "fate": treated.fate.value,
                "sandbox": finding.sandbox.id,
                "uid": labels[LABEL_UID],
                "resource": finding.resource,
                "issue": f"{labels.get(LABEL_REPOSITORY, '')}#{labels.get(LABEL_NUMBER, '')}",
                "attempt": attempt_of(labels, None),
                "observed": finding.sandbox.state,
                "action": "delete",
                "reason": treated.why or finding.why,
            },
        )
        return treated

    async def _kill(self, finding: Finding) -> Treated:
        try:
            doubt = await self._doubt(finding)
            if doubt is not None:
                return Treated(finding, Fate.SPARED, doubt)
            if self._dry_run:
                return Treated(finding, Fate.WOULD)
            self._check_charge()
            # It may have to wait for its turn at Daytona's rate limit.
            with while_allowed(self._check_charge):
                await self._outside.sandboxes.delete(finding.sandbox.id)
        except NotFound:
            return Treated(finding, Fate.SPARED, "it is gone already")
        except _NotInCharge:
            text = "another operator is in charge now, or all is frozen"
            return Treated(finding, Fate.SPARED, text)
        return Treated(finding, Fate.KILLED)

    def _check_charge(self) -> None:
        if not self._may_sweep():
            raise _NotInCharge

    async def _doubt(self, finding: Finding) -> str | None:
        """Ask both sides once more; return what speaks for the sandbox, if anything does."""
        evidence = await self._outside.sandboxes.get(finding.sandbox.id)
        again = self._rules.judge(evidence, self._look(frozenset()))
        if again.verdict is not Verdict.DUE or again.sighting != finding.sighting:
            return f"seen from near it is {again.verdict}: {again.why}"
        if await self._resource_exists(evidence.labels):
            return "its resource exists after all"
        return None

    async def _resource_exists(self, labels: Mapping[str, str]) -> bool:
        key = ResourceKey(labels[LABEL_NAMESPACE], labels[LABEL_RESOURCE], labels[LABEL_UID])
        try:
            body = await self._outside.registry.get(key)
        except NotFound:
            return False
        return bool(body["metadata"]["uid"] == key.uid)

    def _say(self, sweep: Sweep) -> None:
        """Log the sweep unless the last one was just the same."""
        breaker, summary = sweep.assessment.breaker, sweep.summary
        said, self._said = self._said, (breaker, summary)
        if said == self._said or (said is None and breaker is None and not summary["found"]):
            return
        if breaker is not None:
            logger.warning("sweep stopped", extra={"reason": breaker, **summary})
        else:
            logger.info("sweep", extra=summary)


def suspicion(fleet: Fleet, cache: ResourceCache, scope: Scope) -> Callable[[], bool]:
    """Return a question to the views at hand: could a sweep find anything?

    With it a steady fleet costs no call. A delete that the watch missed is found after the
    resync of the cache.
    """

    def suspects() -> bool:
        view = fleet.view
        if view is None:
            return True
        known = {key.uid for key in cache.keys()}  # noqa: SIM118 - not a mapping
        return any(
            scope.covers(sandboxes[0].labels)
            for uid, sandboxes in view.by_uid.items()
            if uid not in known
        )

    return suspects
