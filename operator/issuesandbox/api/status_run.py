"""What the status says of a run: where it is, its limits, its result and what it published.

Knows nothing of the sandbox it runs in.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from issuesandbox.api.conditions import Word
from issuesandbox.api.constraints import Clipped, Timestamp
from issuesandbox.api.durations import Duration
from issuesandbox.api.model import StatusModel
from issuesandbox.api.spec_cleanup import CleanupFields, RecoveryFields, SaveWork
from issuesandbox.api.spec_run import LimitFields
from issuesandbox.api.status_sandbox import Identifier, SandboxDeletion

MAX_CHANGES = 50

CommitId = Annotated[str, StringConstraints(max_length=64, pattern="^[0-9a-f]*$")]
RefText = Annotated[str, StringConstraints(max_length=256)]
LinkText = Annotated[str, Clipped(300)]
Amount = Annotated[str, StringConstraints(max_length=16, pattern=r"^[0-9]+([.][0-9]+)?$")]


class RunPhase(StrEnum):
    """How far a run is."""

    PREPARING = "Preparing"
    EXECUTING = "Executing"
    COLLECTING = "Collecting"
    PUBLISHING = "Publishing"
    FINALIZING = "Finalizing"
    FINISHED = "Finished"


class Outcome(StrEnum):
    """The terminal result of a run, written once."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    TIMED_OUT = "TimedOut"


class ChangeKind(StrEnum):
    """What a run did to a file."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"
    RENAMED = "Renamed"


class Parent(StatusModel):
    """The commit that the run's work is based on, recorded before the agent starts."""

    commit: CommitId = Field(description="Id of the commit.")
    ref: RefText | None = Field(default=None, description="Branch whose tip it was.")
    branch_existed: bool = Field(
        description="Whether the branch to push existed; if so, this commit was its tip."
    )


class Deadlines(StatusModel):
    """Absolute ends, so that a restarted operator keeps them."""

    agent: Timestamp | None = Field(default=None, description="When the agent is ended at last.")
    run: Timestamp | None = Field(default=None, description="When the run is ended at last.")


class EffectiveSandbox(StatusModel):
    """What the sandbox was really asked for."""

    snapshot: RefText | None = Field(default=None, description="Snapshot used.")
    image: RefText | None = Field(default=None, description="Image used.")
    target: RefText | None = Field(default=None, description="Daytona target used.")
    start_timeout: Duration | None = Field(default=None, description="Limit for a start.")


class Effective(StatusModel):
    """Values in force, after the resource, the settings and the defaults were put together."""

    limits: LimitFields | None = Field(default=None, description="Limits of the run.")
    sandbox: EffectiveSandbox | None = Field(default=None, description="The sandbox asked for.")
    cleanup: CleanupFields | None = Field(default=None, description="Cleanup after the run.")
    recovery: RecoveryFields | None = Field(default=None, description="Recovery of the sandbox.")


class Publication(StatusModel):
    """The push, recorded as the last step before it is sent: from then on it always happens."""

    commit: CommitId = Field(description="Commit that is pushed.")
    old: CommitId = Field(description="Tip the branch must have, or zeros if it must not exist.")
    at: Timestamp = Field(description="When the push was decided; a stop from then on is too late.")
    confirmed_at: Timestamp | None = Field(
        default=None, description="When the remote was seen to have the commit."
    )


class PullRequest(StatusModel):
    """The pull request of the run."""

    number: int = Field(ge=1, description="Number of the pull request in the repository.")
    url: LinkText = Field(description="Web address of the pull request.")
    state: Annotated[str, StringConstraints(max_length=16)] | None = Field(
        default=None, description="State on GitHub: `open`, `closed` or `merged`."
    )


class Change(StatusModel):
    """One changed file."""

    path: Annotated[str, Clipped(200)] = Field(description="Path in the repository.")
    kind: ChangeKind = Field(description="`Added`, `Modified`, `Deleted` or `Renamed`.")
    additions: int | None = Field(default=None, ge=0, description="Lines added.")
    deletions: int | None = Field(default=None, ge=0, description="Lines removed.")


class ChangeTotals(StatusModel):
    """Sums over all changed files, also those that are not listed."""

    files: int = Field(default=0, ge=0, description="Files changed.")
    created: int = Field(default=0, ge=0, description="Files created.")
    modified: int = Field(default=0, ge=0, description="Files modified.")
    deleted: int = Field(default=0, ge=0, description="Files deleted.")
    additions: int = Field(default=0, ge=0, description="Lines added.")
    deletions: int = Field(default=0, ge=0, description="Lines removed.")


class TokenUsage(StatusModel):
    """What the agent used up, by its own account."""

    turns: int | None = Field(default=None, ge=0, description="Turns of the agent.")
    input_tokens: int | None = Field(default=None, ge=0, description="Tokens read by the model.")
    output_tokens: int | None = Field(
        default=None, ge=0, description="Tokens written by the model."
    )
    cache_read_tokens: int | None = Field(
        default=None, ge=0, description="Tokens read from the model's cache."
    )
    cache_write_tokens: int | None = Field(
        default=None, ge=0, description="Tokens written to the model's cache."
    )
    cost_usd: Amount | None = Field(
        default=None, alias="costUSD", description="Cost in US dollars as the agent estimates it."
    )


class SavedWork(StatusModel):
    """Where unpublished work was saved before its sandbox was lost."""

    kind: SaveWork = Field(description="`Branch` or `Patch`.")
    ref: RefText = Field(description="Name of the branch or of the ConfigMap.")
    at: Timestamp = Field(description="When it was saved.")


class RunStatus(StatusModel):
    """The present run, or the last one."""

    id: Identifier = Field(description="Id of the run; results of any other id are ignored.")
    attempt: int | None = Field(
        default=None, ge=0, description="Number of the sandbox the run is in, or was last in."
    )
    phase: RunPhase = Field(description="How far the run is.")
    trigger: Identifier | None = Field(
        default=None, description="Value of `spec.run.trigger` that started it."
    )
    prompt_hash: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="Fingerprint of the prompt that was used."
    )
    parent: Parent | None = Field(default=None, description="Commit the work is based on.")
    started_at: Timestamp = Field(description="When Preparing began; the run's limit counts here.")
    agent_started_at: Timestamp | None = Field(
        default=None, description="When the agent was started; its limit counts from here."
    )
    finished_at: Timestamp | None = Field(default=None, description="When the outcome was written.")
    stop_requested_at: Timestamp | None = Field(
        default=None, description="When the stop was noticed that ended it."
    )
    last_output_at: Timestamp | None = Field(
        default=None,
        description="Last sign of life of the agent, written at most once a minute on its own.",
    )
    deadlines: Deadlines | None = Field(default=None, description="Absolute ends of the limits.")
    warned_of: Timestamp | None = Field(
        default=None, description="The end, near by then, of which people were warned."
    )
    effective: Effective | None = Field(default=None, description="Values in force for this run.")
    clone_attempts: int = Field(default=0, ge=0, description="How often the clone was tried.")
    recreations: int = Field(
        default=0, ge=0, description="How many sandboxes were replaced during the run."
    )
    probe_misses: int = Field(
        default=0,
        ge=0,
        description="How often in a row the sandbox did not answer before the agent's start.",
    )
    restarts: int = Field(
        default=0, ge=0, description="How often the sandbox was restarted because of that."
    )
    exit_code: int | None = Field(default=None, description="Exit code of the agent.")
    outcome: Outcome | None = Field(
        default=None, description="Terminal result, written once; absent while the run goes on."
    )
    reason: Word | None = Field(
        default=None, description="Why the outcome is what it is, in one CamelCase word."
    )
    message: Annotated[str, Clipped(512)] | None = Field(
        default=None, description="The same for people, with the next step."
    )
    session_id: Identifier | None = Field(
        default=None, description="Session of the agent, resumed by the next run."
    )
    branch: RefText | None = Field(default=None, description="Branch of the work.")
    commit: CommitId | None = Field(default=None, description="Commit made from the work.")
    publish: Publication | None = Field(default=None, description="The push, once decided.")
    pull_request: PullRequest | None = Field(default=None, description="The pull request.")
    saved_work: SavedWork | None = Field(
        default=None, description="Where unpublished work was saved."
    )
    transcript: RefText | None = Field(
        default=None, description="ConfigMap that holds the agent's redacted transcript."
    )
    changes: tuple[Change, ...] | None = Field(
        default=None,
        max_length=MAX_CHANGES,
        description="Changed files, at most 50; `changeTotals` counts all of them.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    change_totals: ChangeTotals | None = Field(
        default=None, description="Sums over all changed files."
    )
    usage: TokenUsage | None = Field(default=None, description="What the agent used up.")


class PastRun(StatusModel):
    """A finished run, kept after the next one begins."""

    id: Identifier = Field(description="Id of the run.")
    trigger: Identifier | None = Field(default=None, description="What started it.")
    outcome: Outcome = Field(description="Its result.")
    reason: Word | None = Field(default=None, description="Why, in one CamelCase word.")
    started_at: Timestamp | None = Field(default=None, description="When it began.")
    finished_at: Timestamp | None = Field(default=None, description="When it ended.")
    sandbox_id: Identifier | None = Field(default=None, description="Sandbox it ran in.")
    session_id: Identifier | None = Field(default=None, description="Session of its agent.")
    commit: CommitId | None = Field(default=None, description="Commit it made.")
    pull_request_number: int | None = Field(
        default=None, ge=1, description="Number of its pull request."
    )
    cost_usd: Amount | None = Field(
        default=None, alias="costUSD", description="Its cost in US dollars."
    )
    sandbox_deletion: SandboxDeletion | None = Field(
        default=None, description="How its sandbox was first cleaned up, where that was skipped."
    )
