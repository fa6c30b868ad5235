"""What happens to the sandbox after a run, and what is tried before a run is given up.

Knows nothing of how a run goes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from issuesandbox.api.constraints import Matches, Timestamp, rule, rules
from issuesandbox.api.durations import Duration
from issuesandbox.api.model import ApiModel, SpecModel

TimeOfDay = Annotated[
    str,
    StringConstraints(min_length=5, max_length=5),
    Matches(
        "([01][0-9]|2[0-3]):[0-5][0-9]", 'must be a time of day in UTC as "HH:MM", such as "22:00"'
    ),
]


class CleanupAction(StrEnum):
    """What is done with the sandbox of a finished run."""

    DELETE = "Delete"
    STOP = "Stop"
    ARCHIVE = "Archive"
    RETAIN = "Retain"


class SaveWork(StrEnum):
    """Where unpublished work goes before its sandbox is lost."""

    BRANCH = "Branch"
    PATCH = "Patch"
    OFF = "Off"


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "Mon"
    TUESDAY = "Tue"
    WEDNESDAY = "Wed"
    THURSDAY = "Thu"
    FRIDAY = "Fri"
    SATURDAY = "Sat"
    SUNDAY = "Sun"


class Window(SpecModel):
    """A time of day, in UTC, that may span midnight."""

    model_config = ConfigDict(
        json_schema_extra=rules(rule("self.start != self.end", "start and end must differ"))
    )

    start: TimeOfDay = Field(description='Begin of the window in UTC, as "HH:MM".')
    end: TimeOfDay = Field(
        description='End of the window in UTC, as "HH:MM"; before `start` means the next day.'
    )
    days: tuple[Weekday, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=7,
        description="Days on which the window begins: `Mon` to `Sun`. Default: every day.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class CleanupFields(ApiModel):
    """Cleanup values that are settings too; shared by the spec and the status."""

    on_success: CleanupAction | None = Field(
        default=None,
        description=(
            "What to do with the sandbox of a run that succeeded: `Delete`, `Stop`, `Archive` or "
            "`Retain`. keepAlive overrides it. Default: the operator's setting (Delete)."
        ),
    )
    on_failure: CleanupAction | None = Field(
        default=None,
        description=(
            "What to do with the sandbox of a run that failed: `Delete`, `Stop`, `Archive` or "
            "`Retain`. Default: the operator's setting (Stop)."
        ),
    )
    on_cancel: CleanupAction | None = Field(
        default=None,
        description=(
            "What to do with the sandbox of a cancelled run: `Delete`, `Stop`, `Archive` or "
            "`Retain`. Default: the operator's setting (Stop)."
        ),
    )
    on_timeout: CleanupAction | None = Field(
        default=None,
        description=(
            "What to do with the sandbox of a run that ran out of time: `Delete`, `Stop`, "
            "`Archive` or `Retain`. Default: the operator's setting (Stop)."
        ),
    )
    delay: Duration | None = Field(
        default=None,
        description=(
            "Wait this long after the end of the run before the cleanup, such as `10m`. Default: "
            "the operator's setting (0s)."
        ),
    )
    retention: Duration | None = Field(
        default=None,
        description=(
            "A sandbox kept by `Stop` or `Archive` is deleted after this time. Default: the "
            "operator's setting (24h)."
        ),
    )
    ttl_after_finished: Duration | None = Field(
        default=None,
        description=(
            "The resource itself is deleted this long after its run ended and its sandbox is gone; "
            "`0s` is never. The label `issuesandbox.dev/keep=true` prevents it. Default: the "
            "operator's setting (168h)."
        ),
    )
    window: Window | None = Field(
        default=None,
        description=(
            "Sandboxes are deleted only within this time of day. Default: the operator's setting "
            "(at any time)."
        ),
    )


class Cleanup(CleanupFields):
    """What happens to the sandbox after a run; may be changed until the cleanup begins."""

    model_config = ConfigDict(extra="forbid")

    delete_after: Timestamp | None = Field(
        default=None,
        description=(
            "Earliest moment of the deletion, such as `2030-01-31T18:00:00Z`, whatever delay and "
            "retention say. Default: none."
        ),
    )


class RecoveryFields(ApiModel):
    """Recovery values, all of them settings too; shared by the spec and the status."""

    max_attempts: int | None = Field(
        default=None,
        ge=1,
        le=10,
        description=(
            "How many sandboxes one run may use up before it fails. Default: the operator's "
            "setting (3)."
        ),
    )
    save_work: SaveWork | None = Field(
        default=None,
        description=(
            "Where unpublished work goes before its sandbox is replaced, deleted after a failure "
            "or stopped by a limit: `Branch` (a `wip/` branch), `Patch` (a ConfigMap) or `Off`. "
            "Default: the operator's setting (Branch)."
        ),
    )


class Recovery(RecoveryFields):
    """What is tried before a run is given up."""

    model_config = ConfigDict(extra="forbid")
