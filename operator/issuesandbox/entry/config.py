"""`issuesandbox config`: the settings in force, and where each of them comes from."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import click
from pydantic import SecretStr

from issuesandbox.adapters.kube.configuration import KubeConfiguration
from issuesandbox.adapters.kube.connection import load_connection
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api.durations import Duration
from issuesandbox.api.model import ApiModel
from issuesandbox.clock import SystemClock
from issuesandbox.domain.timings import Timings
from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.setting_fields import is_live, names
from issuesandbox.entry.settings import Loaded, Origin, SettingsError, load, misspelt
from issuesandbox.ports.configuration import Stored

_COLUMNS = ("setting", "value", "origin", "restart")


@click.command()
@click.option("--offline", is_flag=True, help="Leave the ConfigMap in the cluster out.")
@click.option("-n", "--namespace", help="Namespace of the operator. Default: the kubeconfig's.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")
def config(*, offline: bool, namespace: str | None, output: str) -> None:
    """Print the settings in force with the origin of each; no secret is shown.

    The environment is that of this command: run it where the operator runs, or with the same
    variables.
    """
    stored, accepted = (Stored(), {}) if offline else asyncio.run(_stored(namespace))
    loaded, problem = _in_force(stored.settings, accepted)
    rows = [_row(name, field, loaded) for name, field in names().items()]
    if output == "json":
        print_json({"settings": rows, "frozen": stored.frozen, "problem": problem})
        return
    print_table(_COLUMNS, ([row[column] for column in _COLUMNS] for row in rows))
    for warning in (*misspelt(os.environ), *loaded.settings.flags.warnings()):
        click.echo(f"Warning: {warning}.", err=True)
    if problem is not None:
        click.echo(f"The ConfigMap is refused, the last good settings stay: {problem}", err=True)
    if stored.frozen is not None:
        click.echo(f"Frozen: {stored.frozen}. Lift it with `kubectl isb unfreeze`.", err=True)


def _in_force(stored: Mapping[str, str], accepted: Mapping[str, str]) -> tuple[Loaded, str | None]:
    """Return what the operator goes by, and why that is not what is stored."""
    try:
        return load(stored=stored), None
    except SettingsError as error:
        try:
            loaded = load(stored=accepted)
        except SettingsError:
            raise error from None
        origins = {
            name: Origin.LAST_GOOD if origin is Origin.CONFIG_MAP else origin
            for name, origin in loaded.origins.items()
        }
        return replace(loaded, origins=origins), str(error)


async def _stored(namespace: str | None) -> tuple[Stored, Mapping[str, str]]:
    """Return what is stored, and what the operator last found good."""
    connection = load_connection()
    timeout = Timings().read_timeout.total_seconds()
    requests = KubeRequests(connection.server, connection.session(limit=2), timeout)
    try:
        place = namespace or connection.namespace
        configuration = KubeConfiguration(requests, place, SystemClock(), "config")
        return await configuration.read(), await configuration.accepted()
    finally:
        await requests.close()


def _row(name: str, field: str, loaded: Loaded) -> dict[str, str]:
    return {
        "setting": name,
        "value": shown(name, getattr(loaded.settings, field)),
        "origin": loaded.origins[name].value,
        "restart": "no" if is_live(field) else "yes",
    }


def shown(name: str, value: Any) -> str:
    """Return the value of a setting as people read it; never a secret."""
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, ApiModel):
        return json.dumps(value.to_json())
    if isinstance(value, Timings):
        value = _changed_timings(value)
    if name.startswith("ENABLE_"):
        return {0: "false", 100: "true"}.get(value, f"{value}%")
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={each}" for key, each in value.items()) or "-"
    if isinstance(value, tuple):
        return ",".join(value) or "-"
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _changed_timings(value: Timings) -> dict[str, str]:
    return {
        each.name: str(Duration.of(getattr(value, each.name)))
        for each in fields(Timings)
        if getattr(value, each.name) != each.default
    }
