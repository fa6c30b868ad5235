"""What the issue has, as the operator last saw it. Knows nothing of how it was found out."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from issuesandbox.api.conditions import MAX_CONDITIONS, Condition
from issuesandbox.api.constraints import Clipped, Timestamp, merged_by
from issuesandbox.api.model import StatusModel, is_empty
from issuesandbox.api.status_run import Amount, ChangeTotals, LinkText, PastRun, RunStatus
from issuesandbox.api.status_sandbox import (
    Counters,
    Intent,
    RecordText,
    Retired,
    SandboxDeletion,
    SandboxStatus,
    StateSeconds,
)

MAX_RETIRED = 5
MAX_HISTORY = 10
_MAX_STATES = 32


class Phase(StrEnum):
    """One word for people, derived on each write and never read back."""

    PENDING = "Pending"
    QUEUED = "Queued"
    BOOTING = "Booting"
    IDLE = "Idle"
    PREPARING = "Preparing"
    EXECUTING = "Executing"
    COLLECTING = "Collecting"
    PUBLISHING = "Publishing"
    FINALIZING = "Finalizing"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"
    DELETING = "Deleting"


class ErrorStatus(StatusModel):
    """What last went wrong."""

    message: Annotated[str, Clipped(1000)] = Field(
        description="What went wrong and what to do next, for people."
    )
    code: Annotated[str, Clipped(50)] = Field(
        description="One word that scripts may rely on, such as `QuotaExceeded`."
    )
    details: Annotated[str, Clipped(2000)] | None = Field(
        default=None, description="More, where it helps; never a secret."
    )


class SandboxCleanup(StatusModel):
    """How the sandbox was cleaned up, in short."""

    attempted: bool = Field(description="Whether a deletion was tried.")
    success: bool = Field(description="Whether the sandbox is gone.")
    skipped: bool = Field(description="Whether the deletion was left out on purpose.")
    skip_reason: RecordText | None = Field(default=None, description="Why it was left out.")
    error: RecordText | None = Field(default=None, description="Why it failed.")


class Summary(StatusModel):
    """What the run did, as it is told on GitHub."""

    text: Annotated[str, Clipped(6144)] | None = Field(
        default=None, description="The agent's own summary, cut to 6 KiB."
    )
    tests: Annotated[str, Clipped(512)] | None = Field(
        default=None, description="What the agent said of tests it ran."
    )
    changes: ChangeTotals | None = Field(default=None, description="Files and lines changed.")
    sandbox_cleanup: SandboxCleanup | None = Field(
        default=None, description="What became of the sandbox."
    )


class Usage(StatusModel):
    """What the resource used up over its life; kept after its sandboxes are gone."""

    states: tuple[StateSeconds, ...] | None = Field(
        default=None,
        max_length=_MAX_STATES,
        description="Seconds spent in each state of Daytona.",
        json_schema_extra=merged_by("state"),
    )
    cpu: int | None = Field(default=None, ge=0, description="CPU cores of the last sandbox.")
    memory: int | None = Field(default=None, ge=0, description="Memory of the last sandbox in GiB.")
    disk: int | None = Field(default=None, ge=0, description="Disk of the last sandbox in GiB.")
    gpu: int | None = Field(default=None, ge=0, description="GPUs of the last sandbox.")
    input_tokens: int | None = Field(
        default=None, ge=0, description="Tokens read by the model, over all runs."
    )
    output_tokens: int | None = Field(
        default=None, ge=0, description="Tokens written by the model, over all runs."
    )
    cost_usd: Amount | None = Field(
        default=None, alias="costUSD", description="Cost of all runs in US dollars."
    )


class Comment(StatusModel):
    """The one comment on the issue that tells how it goes."""

    id: int = Field(ge=1, description="Id of the comment on GitHub.")
    url: LinkText | None = Field(default=None, description="Web address of the comment.")
    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Fingerprint of its text: it is edited only when that changes."
    )


class Status(StatusModel):
    """What the issue has."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status answers."
    )
    issue: Annotated[str, StringConstraints(max_length=160)] | None = Field(
        default=None, description="The issue as people write it: `owner/name#12`."
    )
    phase: Phase | None = Field(
        default=None,
        description="One word for people, derived from the rest; scripts should use conditions.",
    )
    conditions: tuple[Condition, ...] = Field(
        default=(),
        exclude_if=is_empty,
        max_length=MAX_CONDITIONS,
        description=(
            "Ready, Synced, Admitted, SandboxReady, RepositoryCloned, AgentCompleted, "
            "ChangesCollected, Published, Finished and DeletionStuck, each with its reason."
        ),
        json_schema_extra=merged_by("type"),
    )
    sandbox: SandboxStatus | None = Field(default=None, description="The sandbox as last seen.")
    intent: Intent | None = Field(
        default=None, description="A step written down before it is taken; absent when settled."
    )
    run: RunStatus | None = Field(default=None, description="The present run, or the last one.")
    stop_requested_at: Timestamp | None = Field(
        default=None, description="When the stop was noticed that is being carried out."
    )
    sandbox_deletion: SandboxDeletion | None = Field(
        default=None, description="How the sandbox of the last run was cleaned up."
    )
    summary: Summary | None = Field(
        default=None, description="What the last run did, at most 8 KiB in all."
    )
    error: ErrorStatus | None = Field(default=None, description="What last went wrong.")
    counters: Counters | None = Field(
        default=None, description="How often the operator did what for this resource."
    )
    usage: Usage | None = Field(
        default=None, description="What the resource used up, kept after its sandboxes are gone."
    )
    comment: Comment | None = Field(
        default=None, description="The comment on the issue that tells how it goes."
    )
    retired: tuple[Retired, ...] = Field(
        default=(),
        exclude_if=is_empty,
        max_length=MAX_RETIRED,
        description=(
            "Sandboxes given up, at most 5; one leaves the list only after Daytona confirmed it "
            "gone."
        ),
        json_schema_extra=merged_by("id"),
    )
    history: tuple[PastRun, ...] = Field(
        default=(),
        exclude_if=is_empty,
        max_length=MAX_HISTORY,
        description="Earlier runs, newest first, at most 10.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )

    def fitted(self) -> Status:
        """Return the same within the bounds of the schema: changes to a copy are not checked.

        Texts of agents, git and GitHub are in here, and one that is too long must not cost a write.
        """
        return Status.model_validate(self.model_dump(warnings=False))
