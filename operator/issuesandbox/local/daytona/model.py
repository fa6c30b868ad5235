"""The row that Daytona keeps of a sandbox, its states, and what is legal in each.

Pure: no time, no I/O, no HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NewType

from issuesandbox.local.daytona.errors import ApiError

SandboxId = NewType("SandboxId", str)

ERRORED_MESSAGE = "Sandbox is in an errored state"
BUSY_MESSAGE = "Sandbox state change in progress"


class State(StrEnum):
    """Every state a sandbox can be seen in, in the order of the service's own list."""

    CREATING = "creating"
    RESTORING = "restoring"
    DESTROYED = "destroyed"
    DESTROYING = "destroying"
    STARTED = "started"
    STOPPED = "stopped"
    STARTING = "starting"
    STOPPING = "stopping"
    ERROR = "error"
    BUILD_FAILED = "build_failed"
    PENDING_BUILD = "pending_build"
    BUILDING_SNAPSHOT = "building_snapshot"
    UNKNOWN = "unknown"
    PULLING_SNAPSHOT = "pulling_snapshot"
    ARCHIVED = "archived"
    ARCHIVING = "archiving"
    RESIZING = "resizing"
    SNAPSHOTTING = "snapshotting"
    FORKING = "forking"
    PAUSING = "pausing"
    PAUSED = "paused"
    RESUMING = "resuming"


class Desired(StrEnum):
    """Where a sandbox was last told to go."""

    DESTROYED = "destroyed"
    STARTED = "started"
    STOPPED = "stopped"
    ARCHIVED = "archived"
    PAUSED = "paused"


ERRORED = frozenset({State.ERROR, State.BUILD_FAILED})
# In these the sandbox holds CPU and memory; stopped ones hold their disk only.
POWERED_OFF = frozenset({State.STOPPED, State.ARCHIVED, State.DESTROYED} | ERRORED)
DISKLESS = frozenset({State.ARCHIVED, State.DESTROYED})
DELETABLE = ERRORED | {
    State.STARTED,
    State.STOPPED,
    State.PAUSED,
    State.ARCHIVED,
    State.ARCHIVING,
    State.PENDING_BUILD,
}
# After a timeout in one of these the service can go back to a completed backup.
_RECOVERED_FROM_BACKUP = frozenset({State.CREATING, State.STARTING, State.PULLING_SNAPSHOT})

# State and desired state that the service shows under a third name.
_DERIVED = {
    (State.STARTED, Desired.STOPPED): State.STOPPING,
    (State.STARTED, Desired.DESTROYED): State.DESTROYING,
    (State.STOPPED, Desired.DESTROYED): State.DESTROYING,
    (State.STOPPED, Desired.STARTED): State.STARTING,
    (State.STOPPED, Desired.ARCHIVED): State.ARCHIVING,
    (State.UNKNOWN, Desired.STARTED): State.CREATING,
}


@dataclass(slots=True)
class Step:
    """One state on the way to the desired one, and how long it lasts."""

    state: State
    seconds: float
    stuck: bool = False


@dataclass(slots=True)
class Plan:
    """A transition under way: where it ends and when the present step does."""

    steps: list[Step]
    end: State
    due_at: float
    stuck: bool = False
    cause: str = "api"


@dataclass(slots=True)
class Sandbox:
    """One sandbox; times are seconds since the epoch."""

    id: SandboxId
    organization: str
    name: str
    state: State
    desired: Desired
    created_at: float
    updated_at: float
    last_activity_at: float
    target: str = "us"
    user: str = "daytona"
    snapshot: str | None = None
    sandbox_class: str = "container"
    env: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    public: bool = False
    cpu: int = 1
    gpu: int = 0
    memory: int = 1
    disk: int = 3
    auto_stop: int = 15
    auto_pause: int = 0
    auto_archive: int = 10_080
    auto_delete: int = -1
    auto_destroy_at: float | None = None
    error_reason: str | None = None
    recoverable: bool = False
    recovered_at: float | None = None
    backup_state: str = "None"
    backup_at: float | None = None
    network_block_all: bool = False
    # Settings that are stored and shown but change nothing here (volumes, allow lists, ...).
    extra: dict[str, Any] | None = None
    plan: Plan | None = None
    # The container disappeared under the service's feet: started, but nobody is home.
    container_gone: bool = False
    container_lives: bool = False

    @property
    def ephemeral(self) -> bool:
        """Whether stopping it means deleting it."""
        return self.auto_delete == 0

    @property
    def hidden(self) -> bool:
        """Whether lookups answer 404 although the row is there."""
        if self.desired is not Desired.DESTROYED:
            return False
        return self.state is State.DESTROYED or self.state in ERRORED

    @property
    def busy(self) -> bool:
        """Whether it is on its way somewhere, which keeps other calls away; archiving does not."""
        if self.state in ERRORED or self.desired is Desired.ARCHIVED:
            return False
        return self.state.value != self.desired.value

    @property
    def recoverable_after_timeout(self) -> bool:
        """Whether the service could bring it back if it gave up on the present state."""
        return self.backup_state == "Completed" and self.shown_state in _RECOVERED_FROM_BACKUP

    @property
    def shown_state(self) -> State:
        """The state that GET shows."""
        return _DERIVED.get((self.state, self.desired), self.state)

    @property
    def listed_state(self) -> State:
        """The state that the list shows; it differs from GET in this one case."""
        if (self.state, self.desired) == (State.ARCHIVED, Desired.STARTED):
            return State.RESTORING
        return self.shown_state


def check_delete(sandbox: Sandbox) -> None:
    """Refuse a delete while another transition is under way."""
    on_its_way = sandbox.busy and sandbox.state is not State.PENDING_BUILD
    if on_its_way or sandbox.state not in DELETABLE:
        raise ApiError(409, BUSY_MESSAGE)


def check_start(sandbox: Sandbox) -> bool:
    """Return whether there is anything to start; refuse where the service refuses."""
    if sandbox.busy:
        raise ApiError(409, BUSY_MESSAGE)
    if sandbox.state in ERRORED:
        raise ApiError(400, ERRORED_MESSAGE)
    if sandbox.state is State.STARTED:
        return False
    if sandbox.state not in (State.STOPPED, State.ARCHIVED, State.ARCHIVING, State.PAUSED):
        raise ApiError(400, "Sandbox is not in valid state")
    return True


def check_stop(sandbox: Sandbox) -> None:
    """Refuse to stop what does not run."""
    if sandbox.busy:
        raise ApiError(409, BUSY_MESSAGE)
    if sandbox.state in ERRORED:
        raise ApiError(400, ERRORED_MESSAGE)
    if sandbox.state is not State.STARTED:
        raise ApiError(400, "Sandbox is not in a stoppable state")


def check_archive(sandbox: Sandbox) -> None:
    """Refuse to archive what is not at rest or would be deleted on stop."""
    if sandbox.ephemeral:
        raise ApiError(400, "Ephemeral sandboxes cannot be archived")
    if sandbox.busy or sandbox.state is State.ARCHIVING:
        raise ApiError(409, BUSY_MESSAGE)
    if sandbox.state is not State.STOPPED:
        raise ApiError(400, "Sandbox is not stopped")


def check_pause(sandbox: Sandbox) -> None:
    """Refuse to pause anything but a running virtual machine."""
    if sandbox.sandbox_class == "container":
        raise ApiError(422, "Pausing is not supported for sandboxes of class container")
    if sandbox.busy:
        raise ApiError(409, BUSY_MESSAGE)
    if sandbox.state is not State.STARTED:
        raise ApiError(400, "Sandbox is not started")


def check_recover(sandbox: Sandbox, now: float) -> None:
    """Refuse to recover what is healthy, beyond help, or was recovered within the hour."""
    if sandbox.busy:
        raise ApiError(409, BUSY_MESSAGE)
    if sandbox.state is not State.ERROR:
        raise ApiError(400, "Sandbox must be in error state to recover")
    if not sandbox.recoverable:
        raise ApiError(400, "Sandbox is not in a recoverable state")
    if sandbox.recovered_at is not None and now - sandbox.recovered_at < 3600:
        raise ApiError(409, "Sandbox was recovered recently, try again later")
