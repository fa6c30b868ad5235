"""What the status says of sandboxes: the present one, retired ones, and how one was deleted.

Knows nothing of runs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from issuesandbox.api.conditions import Word
from issuesandbox.api.constraints import Clipped, Timestamp
from issuesandbox.api.model import StatusModel

# Printable ASCII, as ids and the names we choose are: one byte for each character.
Identifier = Annotated[str, StringConstraints(max_length=64, pattern="^[!-~]*$")]
# Raw, as Daytona says it: a value nobody knows yet must not make the status unreadable.
StateText = Annotated[str, StringConstraints(max_length=64)]
RecordText = Annotated[str, Clipped(256)]


class IntentKind(StrEnum):
    """A step that must not be repeated blindly."""

    CREATE = "Create"
    START = "Start"
    STOP = "Stop"
    ARCHIVE = "Archive"
    RECOVER = "Recover"
    DELETE = "Delete"
    START_RUN = "StartRun"


class SandboxStatus(StatusModel):
    """The sandbox as last seen."""

    id: Identifier | None = Field(default=None, description="Id of the sandbox in Daytona.")
    name: Identifier | None = Field(
        default=None,
        description="Name of the sandbox in Daytona, chosen once and kept for every attempt.",
    )
    organization_id: Identifier | None = Field(
        default=None,
        description=(
            "Daytona organisation of the sandbox: a key of another one cannot prove it gone."
        ),
    )
    state: StateText | None = Field(
        default=None, description="State as Daytona names it, such as `started`."
    )
    state_since: Timestamp | None = Field(
        default=None, description="When this state was first seen; deadlines count from here."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="Which sandbox of this resource it is, from 1."
    )
    stop_reason: Word | None = Field(
        default=None, description="Why the operator stopped it, in one CamelCase word."
    )
    spec_hash: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None,
        description="Fingerprint of the `spec.sandbox` it was made from, to see when it is old.",
    )
    ran_at: Timestamp | None = Field(
        default=None,
        description="When it was first seen running; absent while nothing can lie on its disk.",
    )
    recovered_at: Timestamp | None = Field(
        default=None,
        description="When Daytona was last asked to recover it: once for each incident.",
    )
    start_asked_at: Timestamp | None = Field(
        default=None,
        description="Since when Daytona has been asked to start it, without an effect so far.",
    )
    failed_starts: int | None = Field(
        default=None,
        ge=0,
        description="How many starts in a row Daytona refused, or let it fall back to rest after.",
    )
    repeated_create_at: Timestamp | None = Field(
        default=None,
        description=(
            "When a create that was sent more than once was last seen to have worked; the other "
            "one may still take effect once this sandbox is gone."
        ),
    )


class Intent(StatusModel):
    """A step that cannot be repeated safely, written down before it is taken."""

    kind: IntentKind = Field(description="Which step.")
    at: Timestamp = Field(description="When it was written down.")
    name: Identifier | None = Field(
        default=None, description="Name of the sandbox the step is about."
    )
    sandbox_id: Identifier | None = Field(
        default=None, description="Id of the sandbox the step is about, where it has one."
    )
    run_id: Identifier | None = Field(
        default=None, description="Id of the run the step is about, where there is one."
    )
    attempt: int | None = Field(
        default=None, ge=0, description="Number of the sandbox the step would make."
    )
    reason: Word | None = Field(
        default=None, description="Why the step is taken, in one CamelCase word."
    )
    repeated: bool = Field(
        default=False, description="Whether the step may have been sent before, without an answer."
    )


class Retired(StatusModel):
    """A sandbox that was given up on or asked to be deleted."""

    id: Identifier = Field(description="Id of the sandbox in Daytona.")
    name: Identifier | None = Field(default=None, description="Name it had.")
    reason: Word = Field(description="Why it was given up, in one CamelCase word.")
    at: Timestamp = Field(description="When it was given up.")
    gone_at: Timestamp | None = Field(
        default=None, description="When Daytona confirmed that it is gone; absent until then."
    )


class SandboxDeletion(StatusModel):
    """How the sandbox of a finished run was cleaned up; never changes the run's outcome."""

    sandbox_id: Identifier | None = Field(
        default=None, description="Id of the sandbox; absent when there was none."
    )
    success: bool = Field(description="Whether the sandbox is gone, also if it was gone before.")
    message: RecordText = Field(description="What happened, for people.")
    retries_used: int = Field(
        default=0, ge=0, description="How many times the deletion was tried again."
    )
    error: RecordText | None = Field(default=None, description="Why the deletion failed.")
    skipped: bool = Field(
        default=False, description="Whether the deletion was left out on purpose."
    )
    skip_reason: RecordText | None = Field(
        default=None, description="Why it was left out, with the status of the run."
    )


class Counters(StatusModel):
    """How often the operator did what, over the life of the resource."""

    creates: int = Field(default=0, ge=0, description="Sandboxes created.")
    adoptions: int = Field(default=0, ge=0, description="Existing own sandboxes taken over.")
    starts: int = Field(default=0, ge=0, description="Starts of a stopped sandbox.")
    stops: int = Field(default=0, ge=0, description="Stops of a running sandbox.")
    recoveries: int = Field(default=0, ge=0, description="Recoveries asked of Daytona.")
    deletes: int = Field(default=0, ge=0, description="Deletions asked of Daytona.")
    runs: int = Field(default=0, ge=0, description="Runs begun.")
    failures: int = Field(
        default=0, ge=0, description="Sandboxes in a row that broke before they ran."
    )


class StateSeconds(StatusModel):
    """Time spent in one state."""

    state: StateText = Field(description="State as Daytona names it.")
    seconds: int = Field(ge=0, description="Seconds spent in it, over all sandboxes.")
