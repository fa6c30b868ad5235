"""A resource as it lies in the cache, read into what a decision needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from issuesandbox.api.names import (
    ANNOTATION_ANNOUNCED,
    ANNOTATION_FIRST_CREATE,
    ANNOTATION_FORCE_FINALIZE,
    ANNOTATION_PAUSED,
    FINALIZER,
    LABEL_KEEP,
)
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DeletionPolicy
from issuesandbox.api.spec_sandbox import NameCollisionPolicy, Sandbox
from issuesandbox.api.status import Status
from issuesandbox.api.status_sandbox import Intent
from issuesandbox.clock import Clock
from issuesandbox.domain.cleanup import CleanupPolicy, effective, resource_due_at
from issuesandbox.domain.defaults import Defaults, RecoveryPolicy
from issuesandbox.domain.flags import ALL_ON, FlagSet
from issuesandbox.domain.model import ANNOUNCED, Desired, HeldBack, Memory, Want
from issuesandbox.domain.naming import Identity, sandbox_name
from issuesandbox.domain.runs.health import Cure, cure_of
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Facts, Turn, Wanted, asks_again, facts_of, wanted
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.newborns import Newborns
from issuesandbox.engine.switches import Switches

Admission = Callable[[str], HeldBack | None]
_BLANK = Status()


@dataclass(frozen=True, slots=True)
class Reading:
    """The parsed resource, what it wants, and the decision's view of it."""

    resource: IssueSandbox
    facts: Facts
    wish: Wanted
    policy: CleanupPolicy
    desired: Desired
    defaults: Defaults
    flags: FlagSet = ALL_ON
    deaf: bool = False
    """The present run hears no stop: a feature flag is off."""

    @property
    def version(self) -> str:
        """Return the version every write of this pass is guarded by."""
        return self.resource.metadata.resource_version or ""

    @property
    def recovery(self) -> RecoveryPolicy:
        """Return what is tried before its run is given up."""
        return self.defaults.recovery.under(self.resource.spec.recovery)

    @property
    def is_up_to_date(self) -> bool:
        """Tell whether the present sandbox, if there is one, was made from the present spec."""
        sandbox = self.resource.status.sandbox
        made_from = sandbox.spec_hash if sandbox is not None else None
        return made_from in (None, fingerprint(self.resource.spec.sandbox))

    @property
    def expires_at(self) -> datetime | None:
        """Return when the finished resource itself is to be deleted."""
        memory = self.desired.memory
        return resource_due_at(
            self.policy,
            self.facts.settled_at,
            sandbox_gone=self.facts.sandbox is None and not memory.unconfirmed,
            kept=self.resource.metadata.labels.get(LABEL_KEEP) == "true",
        )


@dataclass(frozen=True, slots=True)
class Views:
    """What a resource is read against, beside its own body."""

    fleet: Fleet
    admission: Admission = lambda _: None
    switches: Switches = field(default_factory=Switches)
    newborns: Newborns = field(default_factory=Newborns)


class Reader:
    """Reads bodies; knows the settings and the views that a resource is read against."""

    def __init__(self, installation: str, timings: Timings, clock: Clock, views: Views) -> None:
        self._installation = installation
        self._timings = timings
        self._clock = clock
        self._fleet = views.fleet
        self._admission = views.admission
        self._switches = views.switches
        self._newborns = views.newborns
        self._defaults = Defaults()

    def adopt(self, defaults: Defaults) -> bool:
        """Fill in other values from now on; tell whether they differ."""
        changed, self._defaults = defaults != self._defaults, defaults
        return changed

    def read(self, body: Mapping[str, Any]) -> Reading:
        """Parse a resource's body and find out what it wants now."""
        resource = IssueSandbox.model_validate(body)
        if self._switches.is_frozen():
            resource = _as_paused(resource)
        memory = memory_of(resource)
        policy = effective(resource.spec.cleanup, self._defaults.cleanup)
        held_back = self._held_back(resource, memory)
        announced = _is_announced(resource, memory)
        newborn = announced and self._is_newborn(resource)
        if announced and not newborn:
            memory = replace(memory, first_create=_as_announced(resource))
        flags, deaf = self._switches.flags_of(resource), self._switches.is_deaf(resource)
        facts = facts_of(
            resource,
            memory,
            policy,
            self._timings,
            admitted=held_back is None,
            last_activity=self._last_activity(resource, memory),
        )
        if deaf or not flags.authoritative_timeout:
            heard = facts.stop and not deaf
            facts = replace(facts, stop=heard, enforced=flags.authoritative_timeout)
        wish = wanted(facts, self._timings, self._clock.now())
        desired = self._desired(resource, memory, facts, wish, held_back, announced=newborn)
        return Reading(resource, facts, wish, policy, desired, self._defaults, flags, deaf)

    def _desired(
        self,
        resource: IssueSandbox,
        memory: Memory,
        facts: Facts,
        wish: Wanted,
        held_back: HeldBack | None,
        *,
        announced: bool,
    ) -> Desired:
        metadata, spec = resource.metadata, resource.spec
        sandbox = spec.sandbox
        finished = facts.finish is not None and facts.turn is not Turn.ADMITTED
        waits = wish.want is Want.RUNNING or (facts.turn is Turn.WAITING and not facts.stop)
        return Desired(
            identity=self._identity(resource),
            want=wish.want,
            base_name=sandbox_name(spec.issue.id or spec.issue.number),
            revival=wish.revival,
            archive=wish.archive,
            broken=cure_of(resource.status.run, memory.attempt) is Cure.REPLACEMENT,
            held_back=held_back if waits else None,
            outcome=facts.finish.outcome if facts.finish is not None and finished else None,
            announced=announced,
            has_finalizer=FINALIZER in metadata.finalizers,
            deleting_since=metadata.deletion_timestamp,
            forced=metadata.annotations.get(ANNOTATION_FORCE_FINALIZE) == "true",
            paused=metadata.annotations.get(ANNOTATION_PAUSED) == "true",
            leave_behind=spec.deletion_policy is DeletionPolicy.ORPHAN,
            suffix_on_collision=sandbox is None
            or sandbox.name_collision_policy is NameCollisionPolicy.SUFFIX,
            max_attempts=self._defaults.recovery.under(spec.recovery).max_attempts,
            start_limit=sandbox.start_timeout if sandbox is not None else None,
            memory=memory,
        )

    def _identity(self, resource: IssueSandbox) -> Identity:
        metadata, issue = resource.metadata, resource.spec.issue
        return Identity(
            installation=self._installation,
            namespace=metadata.namespace or "",
            resource=metadata.name,
            uid=metadata.uid or "",
            repository=issue.repository,
            number=issue.number,
            home=self._fleet.home,
        )

    def _is_newborn(self, resource: IssueSandbox) -> bool:
        metadata, repository = resource.metadata, resource.spec.issue.repository
        return self._newborns.knows(metadata.uid or "", repository, metadata.creation_timestamp)

    def _held_back(self, resource: IssueSandbox, memory: Memory) -> HeldBack | None:
        create = memory.open_create
        begun = create is not None and create.reason != ANNOUNCED
        placed = memory.sandbox_id is not None or begun
        if placed and not asks_again(resource):
            return None  # it has its place already
        return self._admission(resource.metadata.uid or "")

    def _last_activity(self, resource: IssueSandbox, memory: Memory) -> datetime | None:
        view = self._fleet.view
        shown = view.by_uid.get(resource.metadata.uid or "", ()) if view is not None else ()
        for sandbox in shown:
            # A state change counts as activity at Daytona; only use counts here.
            if sandbox.id == memory.sandbox_id and sandbox.state == "started":
                return sandbox.last_activity_at
        return None


def _as_paused(resource: IssueSandbox) -> IssueSandbox:
    """Return the resource as if it were paused: a freeze is a pause of everything."""
    metadata = resource.metadata
    annotations = {**metadata.annotations, ANNOTATION_PAUSED: "true"}
    paused = metadata.model_copy(update={"annotations": annotations})
    return resource.model_copy(update={"metadata": paused})


def memory_of(resource: IssueSandbox) -> Memory:
    """Return what is persisted of a resource's sandbox."""
    status = resource.status
    sandbox = status.sandbox
    first_create = _first_create(resource) if sandbox is None and status.intent is None else None
    unconfirmed = tuple(SandboxId(each.id) for each in status.retired if each.gone_at is None)
    if sandbox is None:
        return Memory(intent=status.intent, first_create=first_create, unconfirmed=unconfirmed)
    return Memory(
        sandbox_id=SandboxId(sandbox.id) if sandbox.id else None,
        name=sandbox.name,
        organization_id=sandbox.organization_id,
        state=sandbox.state,
        state_since=sandbox.state_since,
        attempt=sandbox.attempt or 0,
        failures=_failures(resource),
        worn=_is_worn(resource),
        ran=sandbox.ran_at is not None,
        recovered_at=sandbox.recovered_at,
        start_asked_at=sandbox.start_asked_at,
        failed_starts=sandbox.failed_starts or 0,
        repeated_create_at=sandbox.repeated_create_at,
        intent=status.intent,
        deletion=status.sandbox_deletion,
        unconfirmed=unconfirmed,
    )


def fingerprint(sandbox: Sandbox | None) -> str:
    """Return a short fingerprint of what a sandbox was asked for."""
    asked = sandbox.model_dump_json(by_alias=True, exclude_none=True) if sandbox else ""
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def _failures(resource: IssueSandbox) -> int:
    """Return how many sandboxes the present run has used up so far."""
    counters, run = resource.status.counters, resource.status.run
    lost = run.recreations if run is not None and run.outcome is None else 0
    return lost + (counters.failures if counters is not None else 0)


def _is_worn(resource: IssueSandbox) -> bool:
    sandbox, run = resource.status.sandbox, resource.status.run
    if sandbox is None:
        return False
    if sandbox.spec_hash not in (None, fingerprint(resource.spec.sandbox)):
        return True
    return run is not None and asks_again(resource) and run.attempt == sandbox.attempt


def _is_announced(resource: IssueSandbox, memory: Memory) -> bool:
    """Tell whether what its maker announced is all that is known of a resource's sandbox.

    It holds until an operator wrote anything: who waits for a sandbox gets it the usual way.
    """
    metadata, issue = resource.metadata, resource.spec.issue
    name = metadata.annotations.get(ANNOTATION_ANNOUNCED)
    if name is None or FINALIZER not in metadata.finalizers or memory.first_create is not None:
        return False
    return name == sandbox_name(issue.id or issue.number) and resource.status == _BLANK


def _as_announced(resource: IssueSandbox) -> Intent:
    issue = resource.spec.issue
    return Intent.model_validate(
        {
            "kind": "Create",
            "at": resource.metadata.creation_timestamp,
            "name": sandbox_name(issue.id or issue.number),
            "attempt": 1,
            "reason": ANNOUNCED,
        }
    )


def _first_create(resource: IssueSandbox) -> Intent | None:
    announced = resource.metadata.annotations.get(ANNOTATION_FIRST_CREATE)
    if announced is None:
        return None
    try:
        return Intent.model_validate_json(announced)
    except ValidationError:
        # Somebody edited it: the name it would have held is the one we would choose anyway,
        # and the oldest possible time is the resource's own.
        return Intent.model_validate(
            {"kind": "Create", "at": resource.metadata.creation_timestamp, "attempt": 1}
        )
