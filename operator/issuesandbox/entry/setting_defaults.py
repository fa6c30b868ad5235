"""The settings that stand in for what a resource leaves out of its cleanup, recovery and sandbox.

All of them take effect while the operator runs. Knows nothing of where a value comes from.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from issuesandbox.api.durations import Duration
from issuesandbox.api.spec_cleanup import CleanupAction, SaveWork, Window
from issuesandbox.domain.cleanup import CleanupPolicy
from issuesandbox.domain.defaults import Defaults, RecoveryPolicy
from issuesandbox.entry.setting_texts import archivable, choice_of, duration, window

LIVE: dict[str, Any] = {"live": True}

Action = Annotated[CleanupAction, BeforeValidator(choice_of(CleanupAction))]
Span = Annotated[Duration, BeforeValidator(duration)]

_POLICY, _RECOVERY, _DEFAULTS = CleanupPolicy(), RecoveryPolicy(), Defaults()


def _setting(name: str, default: object, description: str, **bounds: Any) -> Any:
    return Field(
        default,
        alias=f"ISSUESANDBOX_{name}",
        description=description,
        json_schema_extra=LIVE,
        **bounds,
    )


class ResourceDefaults(BaseModel):
    """What holds for a resource that says nothing else."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    cleanup_on_success: Action = _setting(
        "CLEANUP_ON_SUCCESS",
        _POLICY.on_success,
        "What to do with the sandbox of a run that succeeded: `Delete`, `Stop`, `Archive` or "
        "`Retain`.",
    )
    cleanup_on_failure: Action = _setting(
        "CLEANUP_ON_FAILURE", _POLICY.on_failure, "The same for a run that failed."
    )
    cleanup_on_cancel: Action = _setting(
        "CLEANUP_ON_CANCEL", _POLICY.on_cancel, "The same for a run that was cancelled."
    )
    cleanup_on_timeout: Action = _setting(
        "CLEANUP_ON_TIMEOUT", _POLICY.on_timeout, "The same for a run that ran out of time."
    )
    cleanup_delay: Span = _setting(
        "CLEANUP_DELAY",
        Duration.of(_POLICY.delay),
        "Wait this long after the end of a run before the cleanup, such as `10m`.",
    )
    cleanup_retention: Span = _setting(
        "CLEANUP_RETENTION",
        Duration.of(_POLICY.retention),
        "A sandbox kept by `Stop` or `Archive` is deleted after this time.",
    )
    cleanup_ttl_after_finished: Span = _setting(
        "CLEANUP_TTL_AFTER_FINISHED",
        Duration.of(_POLICY.ttl_after_finished),
        "A finished resource without a sandbox is deleted after this time; `0s` is never.",
    )
    cleanup_window: Annotated[Window | None, BeforeValidator(window)] = _setting(
        "CLEANUP_WINDOW",
        None,
        "JSON object: sandboxes are deleted only within this time of day, in UTC, such as "
        '`{"start": "22:00", "end": "06:00"}`. Default: at any time.',
    )
    recovery_max_attempts: int = _setting(
        "RECOVERY_MAX_ATTEMPTS",
        _RECOVERY.max_attempts,
        "How many sandboxes one run may use up before it fails; at most 10.",
        ge=1,
        le=10,
    )
    recovery_save_work: Annotated[SaveWork, BeforeValidator(choice_of(SaveWork))] = _setting(
        "RECOVERY_SAVE_WORK",
        _RECOVERY.save_work,
        "Where unpublished work goes before its sandbox is lost: `Branch`, `Patch` or `Off`.",
    )
    sandbox_auto_stop: Span = _setting(
        "SANDBOX_AUTO_STOP",
        Duration.of(_DEFAULTS.auto_stop),
        "Daytona itself stops a new sandbox after this time without traffic; `0s` is never.",
    )
    sandbox_auto_archive: Annotated[Span, AfterValidator(archivable)] = _setting(
        "SANDBOX_AUTO_ARCHIVE",
        Duration.of(_DEFAULTS.auto_archive),
        "Daytona itself archives a new sandbox when stopped for this long; at most `720h`.",
    )
    sandbox_auto_delete: Span | None = _setting(
        "SANDBOX_AUTO_DELETE",
        None,
        "Daytona itself deletes a new sandbox when stopped for this long; `0s` is never. Default: "
        "72h, and never before a day after the retention.",
    )
    sandbox_ttl: Span = _setting(
        "SANDBOX_TTL",
        Duration.of(_DEFAULTS.ttl),
        "Daytona itself deletes a new sandbox this long after its creation; `0s` is never.",
    )
