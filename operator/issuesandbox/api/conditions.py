"""Conditions of the resource: their types, their reasons, and how one is set.

Setting a condition is pure: the time comes as an argument. Knows nothing of when to set which.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from issuesandbox.api.constraints import Clipped, Timestamp
from issuesandbox.api.model import StatusModel

MAX_CONDITIONS = 16

# CamelCase words; a list of known ones in the schema would lock out a newer operator's.
Word = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]


class ConditionType(StrEnum):
    """What a condition speaks about."""

    READY = "Ready"
    SYNCED = "Synced"
    ADMITTED = "Admitted"
    SANDBOX_READY = "SandboxReady"
    REPOSITORY_CLONED = "RepositoryCloned"
    AGENT_COMPLETED = "AgentCompleted"
    CHANGES_COLLECTED = "ChangesCollected"
    PUBLISHED = "Published"
    FINISHED = "Finished"
    DELETION_STUCK = "DeletionStuck"


class ConditionStatus(StrEnum):
    """Whether a condition holds; an absent condition is the same as Unknown."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Reason(StrEnum):
    """Why a condition or an outcome is as it is: one word that scripts may rely on."""

    DAYTONA_UNREACHABLE = "DaytonaUnreachable"
    UNAUTHORIZED = "Unauthorized"
    WRONG_ORGANIZATION = "WrongOrganization"
    THROTTLED = "Throttled"
    RECONCILE_PAUSED = "ReconcilePaused"
    SANDBOX_OUTDATED = "SandboxOutdated"
    FLAG_WITHOUT_ITS_BASE = "FlagWithoutItsBase"

    QUEUED = "Queued"
    RATE_LIMITED = "RateLimited"
    DUPLICATE_ISSUE = "DuplicateIssue"
    REPOSITORY_NOT_ALLOWED = "RepositoryNotAllowed"
    NAME_COLLISION = "NameCollision"

    NO_CHANGES = "NoChanges"
    INACTIVITY_TIMEOUT = "InactivityTimeout"
    AGENT_TIMEOUT = "AgentTimeout"
    RUN_TIMEOUT = "RunTimeout"
    GIT_MISSING = "GitMissing"
    CLI_MISSING = "CliMissing"
    AGENT_UNAUTHORIZED = "AgentUnauthorized"
    BRANCH_MOVED = "BranchMoved"
    PUBLISH_FAILED = "PublishFailed"
    PULL_REQUEST_FAILED = "PullRequestFailed"
    TOO_LATE_TO_STOP = "TooLateToStop"


class Condition(StatusModel):
    """One observation about the resource, in the form that `kubectl wait` understands."""

    type: Word = Field(description="What the condition speaks about, such as `Ready`.")
    status: ConditionStatus = Field(description="Whether it holds: `True`, `False` or `Unknown`.")
    reason: Word = Field(description="Why, in one CamelCase word.")
    message: Annotated[str, Clipped(512)] = Field(
        description="Why, for people, and what happens next."
    )
    last_transition_time: Timestamp = Field(description="When `status` last changed.")
    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the resource that was looked at."
    )


def upsert(conditions: Sequence[Condition], wanted: Condition) -> tuple[Condition, ...]:
    """Return the conditions with `wanted` set; its transition time is kept if nothing turned.

    `wanted.last_transition_time` is the time to note if the status differs from before.
    """
    before = find(conditions, wanted.type)
    if before is None:
        return (*conditions, wanted)
    if before.status == wanted.status:
        wanted = wanted.model_copy(update={"last_transition_time": before.last_transition_time})
    return tuple(wanted if each.type == wanted.type else each for each in conditions)


def find(conditions: Sequence[Condition], kind: str) -> Condition | None:
    """Return the condition of this type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


def is_true(conditions: Sequence[Condition], kind: str) -> bool:
    """Return whether the condition of this type is known to hold."""
    found = find(conditions, kind)
    return found is not None and found.status == ConditionStatus.TRUE
