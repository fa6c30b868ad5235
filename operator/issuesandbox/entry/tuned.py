"""The live settings of one operator process, wired: stored in the cluster, heard by the logs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.entry.logs import configure_logs
from issuesandbox.entry.setting_fields import is_live, names
from issuesandbox.entry.settings import Settings, load_settings, misspelt
from issuesandbox.ports.configuration import Configuration


def build_tuning(
    configuration: Configuration,
    timings: Timings,
    clock: Clock,
    listeners: Listeners[Settings] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Tuning[Settings]:
    """Return the settings of this process, to be started; the logs follow them by themselves."""
    given = dict(os.environ if environment is None else environment)
    heard_by: Listeners[Settings] = listeners or Listeners()
    started_with: list[Settings] = []

    def parse(stored: Mapping[str, str]) -> Settings:
        return load_settings(given, stored)

    def hear(settings: Settings) -> None:
        # Also a rotated secret must not be shown.
        log_by(settings)
        heard_by.changed(settings)

    def advise(settings: Settings) -> Sequence[str]:
        started_with[:] = started_with or [settings]
        return (
            *misspelt(given),
            *settings.flags.warnings(),
            *_late(started_with[0], settings),
            *heard_by.advice(settings),
        )

    return Tuning(
        configuration, parse, timings, clock, replace(heard_by, changed=hear, advice=advise)
    )


def _late(before: Settings, now: Settings) -> list[str]:
    """Return one line for each setting that was changed and needs a restart."""
    return [
        f"{name} takes effect at the next start of the operator"
        for name, field in names().items()
        if not is_live(field) and getattr(before, field) != getattr(now, field)
    ]


def log_by(settings: Settings) -> None:
    """Log in the style, at the levels and without the secrets of these settings."""
    configure_logs(settings.log_format, settings.log_level, settings.secrets(), settings.log_levels)
