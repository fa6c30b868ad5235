"""The live settings of one operator process, wired: stored in the cluster, heard by the logs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from issuesandbox.clock import Clock
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.entry.logs import configure_logs
from issuesandbox.entry.setting_fields import is_live, names
from issuesandbox.entry.settings import Settings, SettingsError, load_settings, misspelt
from issuesandbox.ports.configuration import Configuration


def build_tuning(
    configuration: Configuration, clock: Clock, environment: Mapping[str, str]
) -> Tuning[Settings]:
    """Return the settings of this process, to be started."""

    def parse(stored: Mapping[str, str]) -> Settings:
        try:
            return load_settings(environment, stored)
        except SettingsError:
            raise
        except Exception as error:
            # Whatever is stored, it must not end the process; the text may show a value.
            text = f"the settings cannot be read ({type(error).__name__})"
            raise SettingsError(text) from error

    return Tuning(configuration, parse, clock)


async def begin(tuning: Tuning[Settings]) -> Settings:
    """Return the settings to start with; from now on the logs go by them."""
    configure_logs("json", "INFO")
    settings = await tuning.start()
    _log_by(settings)
    return settings


def attach(
    tuning: Tuning[Settings],
    started_with: Settings,
    listeners: Listeners[Settings],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Let these hear of changes, after the logs; what only a restart brings is said to."""
    given = os.environ if environment is None else environment

    def hear(settings: Settings) -> None:
        # Also a rotated secret must not be shown.
        _log_by(settings)
        listeners.changed(settings)

    def advise(settings: Settings) -> Sequence[str]:
        return (
            *misspelt(given),
            *settings.flags.warnings(),
            *_late(started_with, settings),
            *listeners.advice(settings),
        )

    tuning.listen(replace(listeners, changed=hear, advice=advise))


def _late(before: Settings, now: Settings) -> list[str]:
    """Return one line for each setting that was changed and needs a restart."""
    return [
        f"{name} takes effect at the next start of the operator"
        for name, field in names().items()
        if not is_live(field) and getattr(before, field) != getattr(now, field)
    ]


def _log_by(settings: Settings) -> None:
    """Log in the style, at the levels and without the secrets of these settings."""
    configure_logs(settings.log_format, settings.log_level, settings.secrets(), settings.log_levels)
