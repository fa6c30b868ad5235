"""The operator's settings: a ConfigMap's word over the environment's, over the default.

Every secret may also come from a file (`NAME_FILE`), and never from a ConfigMap. An error names
the setting and never shows its value.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from issuesandbox.entry.setting_fields import Settings, names
from issuesandbox.ports.errors import IssueSandboxError

__all__ = ["Loaded", "Origin", "Settings", "SettingsError", "load", "load_settings", "misspelt"]

_SECRETS = ("DAYTONA_API_KEY", "GITHUB_APP_PRIVATE_KEY", "GITHUB_TOKEN", "GITHUB_READ_TOKEN")


class SettingsError(IssueSandboxError):
    """A setting is missing or cannot be used."""


class Origin(StrEnum):
    """Where the value of a setting comes from."""

    CONFIG_MAP = "ConfigMap"
    LAST_GOOD = "last good ConfigMap"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each of them (by the name people write) comes from."""

    settings: Settings
    origins: Mapping[str, Origin]


def load_settings(
    environment: Mapping[str, str] | None = None, stored: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of this process, or say in one line what is wrong."""
    return load(environment, stored).settings


def load(
    environment: Mapping[str, str] | None = None, stored: Mapping[str, str] | None = None
) -> Loaded:
    """Put the settings together: what is stored in the cluster, the environment, the defaults."""
    stored = stored or {}
    _check_stored(stored)
    surroundings = dict(os.environ if environment is None else environment)
    given, origins, notes = _gather(surroundings, stored)
    try:
        return Loaded(Settings.model_validate(given), origins)
    except ValidationError as error:
        raise SettingsError(_in_words(error, origins, notes)) from None


def misspelt(environment: Mapping[str, str]) -> list[str]:
    """Return one line for each variable that looks like a setting and is none.

    Kubernetes itself sets variables that begin as ours do, so only what is close is told.
    """
    known = [*names(), *(f"{name}_FILE" for name in _SECRETS)]
    lines = []
    for name in sorted(set(environment) - set(known)):
        ours = name.startswith(("ISSUESANDBOX_", "ENABLE_", "DAYTONA_", "GITHUB_", "AGENT_"))
        close = get_close_matches(name, known, 1, cutoff=0.9) if ours else []
        if close:
            lines.append(f"{name} in the environment is no setting; did you mean {close[0]}?")
    return lines


def _check_stored(stored: Mapping[str, str]) -> None:
    for name in stored:
        if name.removesuffix("_FILE") in _SECRETS:
            raise SettingsError(f"{name} in the ConfigMap: it belongs into a Secret.")
        if name not in names():
            close = get_close_matches(name, names(), 1)
            hint = f"did you mean {close[0]}?" if close else "docs/configuration.md has the list."
            raise SettingsError(f"{name} in the ConfigMap: there is no such setting; {hint}")


def _gather(
    environment: Mapping[str, str], stored: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Origin], dict[str, str]]:
    given: dict[str, str] = {}
    origins: dict[str, Origin] = {}
    notes: dict[str, str] = {}
    for name in names():
        origins[name] = Origin.DEFAULT
        source = f"{name}_FILE"
        if stored.get(name):
            given[name], origins[name] = stored[name], Origin.CONFIG_MAP
        elif environment.get(name):
            given[name], origins[name] = environment[name], Origin.ENVIRONMENT
        elif name in _SECRETS and environment.get(source):
            found = _read(source, environment[source])
            if found is None:
                # So can an optional Secret be mounted: its files are missing while it is.
                notes[name] = f" ({source} names a file that does not exist)"
            elif found:
                given[name], origins[name] = found, Origin.FILE
    return given, origins, notes


def _read(name: str, path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError(f"{name} names a file that cannot be read: {why}") from None


def _in_words(
    error: ValidationError, origins: Mapping[str, Origin], notes: Mapping[str, str]
) -> str:
    problems = []
    found = error.errors(include_input=False, include_url=False, include_context=False)
    for each in found:
        if not each["loc"]:
            problems.append(each["msg"].removeprefix("Value error, "))
            continue
        name = str(each["loc"][0])
        where = " in the ConfigMap" if origins.get(name) is Origin.CONFIG_MAP else ""
        missing = each["type"] == "missing"
        problems.append(
            f"{name} is not set{notes.get(name, '')}"
            if missing
            else f"{name}{where}: {each['msg'].removeprefix('Value error, ')}"
        )
    stored = Origin.CONFIG_MAP in {
        origins.get(str(each["loc"][0])) for each in found if each["loc"]
    }
    place = "ConfigMap" if stored else "environment"
    return f"{'; '.join(problems)}. Set it in the operator's {place}."
