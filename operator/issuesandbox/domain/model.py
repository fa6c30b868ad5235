"""The values that go into a decision and come out of it. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from issuesandbox.api.status import Phase
from issuesandbox.api.status_run import Outcome
from issuesandbox.api.status_sandbox import Intent, IntentKind, SandboxDeletion
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.naming import Identity, Ownership
from issuesandbox.domain.sandbox import Observation, SandboxId, SandboxView

# The reason in the intent of a create that was answered: the name is taken. If it was sent more
# than once, it was given up for that.
NAME_TAKEN = "NameTaken"
# The reason in the intent of a create that only the resource's maker announced: another operator
# may have sent it, so it may land, but it holds no place in the queue.
ANNOUNCED = "Announced"


class Want(StrEnum):
    """What a resource asks of its sandbox; the columns of the decision table."""

    RUNNING = "wanted running"
    STOPPED = "wanted stopped"
    GONE = "wanted gone"
    REST = "left as it is"


class Holder(StrEnum):
    """Whose the sandbox is that was seen."""

    OURS = "ours"
    LEFTOVER = "of a resource for this issue that is gone"
    TWIN = "of another resource for this issue"
    FOREIGN = "somebody else's"


@dataclass(frozen=True, slots=True)
class Memory:
    """What earlier passes persisted about the sandbox."""

    sandbox_id: SandboxId | None = None
    name: str | None = None
    organization_id: str | None = None
    state: str | None = None
    state_since: datetime | None = None
    attempt: int = 0
    failures: int = 0
    """How many sandboxes in a row the present run has used up."""
    worn: bool = False
    """It served an earlier run, or was made from an older spec: no attempt of what is asked now."""
    ran: bool = False
    """It was seen running: something may lie on its disk."""
    recovered_at: datetime | None = None
    start_asked_at: datetime | None = None
    failed_starts: int = 0
    repeated_create_at: datetime | None = None
    intent: Intent | None = None
    first_create: Intent | None = None
    deletion: SandboxDeletion | None = None
    """How the sandbox of the last run is being cleaned up."""
    unconfirmed: tuple[SandboxId, ...] = ()
    """Retired sandboxes that Daytona has not confirmed gone."""

    @property
    def open_create(self) -> Intent | None:
        """Return the create that was announced and whose result is not recorded yet."""
        if self.intent is not None:
            return self.intent if self.intent.kind is IntentKind.CREATE else None
        return self.first_create if self.sandbox_id is None else None

    @property
    def unanswered_create(self) -> Intent | None:
        """Return the open create if it may still land: nobody knows what became of it."""
        create = self.open_create
        answered = create is not None and create.reason == NAME_TAKEN and not create.repeated
        return None if answered else create

    @property
    def cleanup_began(self) -> datetime | None:
        """Return when the deletion of this sandbox after its run was announced."""
        intent = self.intent
        if intent is None or self.sandbox_id is None or intent.sandbox_id != self.sandbox_id:
            return None
        ours = (intent.kind, intent.reason) == (IntentKind.DELETE, CLEANUP)
        return intent.at if ours else None


class Revival(StrEnum):
    """What is brought back of a sandbox that is stopped, broken or missing."""

    NONE = "nothing"
    SAME = "the same sandbox"
    ANY = "the same sandbox, or a new one"


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why a resource may not have a sandbox yet."""

    reason: str
    message: str
    retry: timedelta | None = None
    settled: bool = True
    """Whether this is the answer; else it is too early to say anything."""

    @classmethod
    def undecided(cls, message: str, retry: timedelta | None = None) -> HeldBack:
        """Return the answer of a desk that cannot tell yet."""
        return cls("Queued", message, retry, settled=False)


@dataclass(frozen=True, slots=True)
class Desired:
    """A resource, reduced to what the decision about its sandbox needs."""

    identity: Identity
    want: Want
    base_name: str
    revival: Revival = Revival.ANY
    archive: bool = False
    """Whether a sandbox that is wanted stopped is archived as well."""
    broken: bool = False
    """Whether the sandbox is proven unusable, though Daytona says that it runs."""
    held_back: HeldBack | None = None
    outcome: Outcome | None = None
    """How the last run ended, while no other is on."""
    has_finalizer: bool = False
    deleting_since: datetime | None = None
    forced: bool = False
    paused: bool = False
    leave_behind: bool = False
    suffix_on_collision: bool = True
    max_attempts: int = 3
    start_limit: timedelta | None = None
    """How long a start may take, where the resource itself says so."""
    announced: bool = False
    """Whoever made the resource announced its first sandbox, and nobody can have asked for it."""
    memory: Memory = field(default_factory=Memory)

    @property
    def deleting(self) -> bool:
        """Tell whether the resource itself is being deleted."""
        return self.deleting_since is not None

    def owns(self, sandbox: SandboxView, known_id: str | None, known_name: str | None) -> bool:
        """Tell whether a sandbox is ours by its labels, or by its id if people took them off."""
        if self.identity.ownership(sandbox.labels) is Ownership.OURS:
            return True
        given_up = self.deleting and self.leave_behind
        known = (known_id, self.memory.organization_id, known_name)
        same = (sandbox.id, sandbox.organization_id, sandbox.name) == known
        return same and not given_up and self.identity.is_stripped(sandbox.labels)

    @property
    def last_create_at(self) -> datetime | None:
        """Return until when creates were sent that may still land, or None if none may.

        An announced one is sent again and again, until the resource is deleted.
        """
        create = self.memory.unanswered_create
        if create is None:
            return self.memory.repeated_create_at
        return max(create.at, self.deleting_since or create.at)

    @property
    def name(self) -> str:
        """Return the sandbox's name: chosen once, kept for every attempt.

        An open create comes first: it may just have moved to another name.
        """
        create = self.memory.open_create
        return (create and create.name) or self.memory.name or self.base_name


@dataclass(frozen=True, slots=True)
class Observed:
    """What was seen, and how sure that is."""

    sandbox: Observation
    evidence: bool = False
    """Whether Daytona was asked for this one sandbox; the fleet view is only a hint."""
    holder: Holder = Holder.OURS
    fleet_is_clear: bool = True
    """Whether a fresh fleet view shows no sandbox of this resource that is not accounted for."""
    absent_for: timedelta | None = None
    """For how long nothing of ours has been seen, also if others hold the name."""
    held_for: timedelta | None = None
    """For how long others have been seen to hold the name."""
    strays: tuple[SandboxId, ...] = ()
    """Other live sandboxes that the fleet view shows of this resource, beside the one found."""
    create_age: timedelta | None = None
    """How long ago the last create was sent that may still land."""
    unseen_stop_for: timedelta | None = None
    """How long ago a stop was sent whose effect nobody saw; None if a look told a state since."""
    unseen_stops_took: timedelta = timedelta(0)
    """How long before that one the first of such stops was sent."""
    paced: Paced | None = None
    """The last change that was sent, while it is too early to send it again."""
    breaker: str | None = None
    """Why nothing that is broken may be replaced now, if so."""


class ActionKind(StrEnum):
    """Everything a pass can do to the world."""

    ANNOUNCE_FIRST_CREATE = "announce the first create"
    WRITE_INTENT = "write the intent"
    CREATE = "create"
    START = "start"
    STOP = "stop"
    RECOVER = "recover"
    DELETE = "delete"
    ARCHIVE = "archive"
    ADOPT = "adopt"
    DISOWN = "disown"
    RENEW = "renew"
    RELEASE = "release the finalizer"


ANNOUNCEMENTS = frozenset({ActionKind.ANNOUNCE_FIRST_CREATE, ActionKind.WRITE_INTENT})

DAYTONA_MUTATIONS = frozenset(
    {
        ActionKind.CREATE,
        ActionKind.START,
        ActionKind.STOP,
        ActionKind.RECOVER,
        ActionKind.DELETE,
        ActionKind.ARCHIVE,
        ActionKind.ADOPT,
        ActionKind.DISOWN,
        ActionKind.RENEW,
    }
)


# Changes that are sent again only when their plan says so. A start has a pace of its own, and a
# stop waits for nothing.
PACED = frozenset(
    {
        ActionKind.RECOVER,
        ActionKind.DELETE,
        ActionKind.ARCHIVE,
        ActionKind.ADOPT,
        ActionKind.DISOWN,
    }
)


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do; whatever it needs is in here."""

    kind: ActionKind
    name: str = ""
    sandbox_id: SandboxId | None = None
    attempt: int = 0
    intent: Intent | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """All labels that a relabelled sandbox is to have; Daytona replaces the whole of them."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, what to tell people, and when to look again."""

    row: str
    phase: Phase
    reason: str
    message: str
    actions: tuple[Action, ...] = ()
    ready: bool = False
    synced: bool = True
    admitted: bool = True
    stuck: bool = False
    last_try: bool = False
    """Whether a step has been tried for so long that another refusal is the last one."""
    pace: timedelta | None = None
    """How soon a create is tried again whose name is taken, by whomever."""
    renew_at: datetime | None = None
    next_check: timedelta | None = None

    @property
    def change(self) -> Action | None:
        """Return the one change at Daytona that it holds, if any."""
        return next((each for each in self.actions if each.kind in DAYTONA_MUTATIONS), None)

    @property
    def needs_evidence(self) -> bool:
        """Tell whether the plan must not be carried out on the fleet view's word alone.

        A renewal may: it destroys nothing and costs a call per half interval as it is.
        """
        return any(each.kind is not ActionKind.RENEW for each in self.actions)


@dataclass(frozen=True, slots=True)
class Paced:
    """A change that was sent, and that is not sent again so soon while nothing is new."""

    plan: Plan
    """What it was sent for, and what was told of it."""
    state: str | None
    """What state the sandbox was in: in another one the change may have become possible."""
    left: timedelta
