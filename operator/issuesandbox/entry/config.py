"""`issuesandbox config`: the settings in force, and where each of them comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import click
from pydantic import SecretStr

from issuesandbox.adapters.kube.connection import Connection, load_connection
from issuesandbox.api.durations import Duration
from issuesandbox.api.model import ApiModel
from issuesandbox.domain.timings import Timings
from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.setting_fields import is_live, names
from issuesandbox.entry.settings import Loaded, load, misspelt
from issuesandbox.entry.stored import InForce, settings_in_force

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
    known = InForce(load()) if offline else settings_in_force(_home(namespace))
    loaded, problem, frozen = known.loaded, known.problem, known.frozen
    rows = [_row(name, field, loaded) for name, field in names().items()]
    if output == "json":
        print_json({"settings": rows, "frozen": frozen, "problem": problem})
        return
    print_table(_COLUMNS, ([row[column] for column in _COLUMNS] for row in rows))
    for warning in (*misspelt(os.environ), *loaded.settings.flags.warnings()):
        click.echo(f"Warning: {warning}.", err=True)
    if problem is not None:
        click.echo(f"The ConfigMap is refused, the last good settings stay: {problem}", err=True)
    if frozen is not None:
        click.echo(f"Frozen: {frozen}. Lift it with `kubectl isb unfreeze`.", err=True)


def _home(namespace: str | None) -> Connection:
    connection = load_connection()
    return replace(connection, namespace=namespace or connection.namespace)


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
