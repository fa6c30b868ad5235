"""What each Daytona state means for a decision. Total: also for values nobody knows yet."""

from __future__ import annotations

from enum import StrEnum

from issuesandbox.domain.sandbox import SandboxView


class Sight(StrEnum):
    """What a pass sees when it looks for its sandbox; the rows of the decision table."""

    UNKNOWN = "Daytona cannot be asked"
    UNASKED = "Daytona's rate limit takes no questions"
    NEVER = "nothing was created yet"
    IN_FLIGHT = "a create may still land"
    VANISHED = "absent once, though its id is known"
    GONE = "absent twice, apart"
    FOREIGN = "the name is somebody else's"
    LEFTOVER = "made for this issue by a resource that is gone"
    TWIN = "made for this issue by another resource that lives"
    QUEUED = "pending_build"
    BUILDING = "building_snapshot"
    PULLING = "pulling_snapshot"
    CREATING = "creating, unknown"
    STRANGE = "no state, or one nobody knows yet"
    STARTING = "starting, resuming"
    RESTORING = "restoring"
    RESHAPING = "resizing, snapshotting, forking"
    RUNNING = "started"
    STOPPING = "stopping, pausing"
    STOPPED = "stopped, paused"
    ARCHIVED = "archiving, archived"
    RECOVERABLE = "error, recoverable"
    BROKEN = "error, not recoverable"
    BUILD_FAILED = "build_failed"
    DESTROYING = "destroying"
    LINGERING = "destroying, and it keeps its name"


SIGHTS: dict[str, Sight] = {
    "unknown": Sight.CREATING,  # Daytona's initial value, also seen after a build
    "creating": Sight.CREATING,
    "pending_build": Sight.QUEUED,
    "building_snapshot": Sight.BUILDING,
    "pulling_snapshot": Sight.PULLING,
    "starting": Sight.STARTING,
    "resuming": Sight.STARTING,
    "restoring": Sight.RESTORING,
    "resizing": Sight.RESHAPING,
    "snapshotting": Sight.RESHAPING,
    "forking": Sight.RESHAPING,
    "started": Sight.RUNNING,
    "stopping": Sight.STOPPING,
    "pausing": Sight.STOPPING,
    "stopped": Sight.STOPPED,
    "paused": Sight.STOPPED,
    "archiving": Sight.ARCHIVED,
    "archived": Sight.ARCHIVED,
    "error": Sight.BROKEN,
    "build_failed": Sight.BUILD_FAILED,
    "destroying": Sight.DESTROYING,
    "destroyed": Sight.DESTROYING,
}


AT_REST = frozenset({Sight.STOPPED, Sight.ARCHIVED})


def sight_of(sandbox: SandboxView) -> Sight:
    """Return what a sandbox that Daytona showed means."""
    if sandbox.desired_state == "destroyed":
        return Sight.DESTROYING
    if sandbox.state == "error" and sandbox.recoverable:
        return Sight.RECOVERABLE
    return sight_of_state(sandbox.state)


def sight_of_state(state: str | None) -> Sight:
    """Return what a state means by itself; an answer without one says nothing."""
    return SIGHTS.get(state, Sight.STRANGE) if state is not None else Sight.STRANGE


def is_live(sandbox: SandboxView) -> bool:
    """Tell whether the sandbox still holds or may hold resources."""
    return sight_of(sandbox) is not Sight.DESTROYING
