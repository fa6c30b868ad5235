"""The emergency switch: `freeze` and `unfreeze`. One ConfigMap, whose existence is the switch."""

from __future__ import annotations

import getpass

import click

from issuesandbox.api.names import FREEZE_MAP
from issuesandbox.clock import SystemClock
from issuesandbox.entry.output import print_json
from issuesandbox.entry.plugin.choice import operator_option, output_option
from issuesandbox.entry.plugin.cluster import Cluster, MissingError, failures


@click.command()
@click.option("--reason", default="no reason given", help="Why, for those who find it.")
@operator_option
@output_option
def freeze(reason: str, operator_namespace: str, output: str) -> None:
    """Stop the operator from changing anything but what ends runs; effective within 10 s.

    Nothing is created, started, replaced, reaped or pushed until `unfreeze`. What was asked to
    stop still stops.
    """
    cluster = Cluster.load()
    now = SystemClock().now().isoformat(timespec="seconds").replace("+00:00", "Z")
    data = {"reason": reason, "by": _who(), "at": now}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": FREEZE_MAP}, "data": data}
    with failures(f"namespace {operator_namespace}"):
        # Applied by the server: also the second one to freeze succeeds.
        cluster.core.patch_namespaced_config_map(
            FREEZE_MAP,
            operator_namespace,
            body,
            field_manager="kubectl-isb",
            force=True,
            _content_type="application/apply-patch+yaml",
        )
    if output == "json":
        print_json({"frozen": True, **data})
        return
    click.echo(f"Frozen within 10 s: {reason}. Lift it with `kubectl isb unfreeze`.")
    click.echo("Runs go on until they end; to end them now: kubectl isb stop --all -A")


@click.command()
@operator_option
@output_option
def unfreeze(operator_namespace: str, output: str) -> None:
    """Let the operator go on."""
    cluster, was_frozen = Cluster.load(), True
    try:
        with failures(f"freeze in namespace {operator_namespace}"):
            cluster.core.delete_namespaced_config_map(FREEZE_MAP, operator_namespace)
    except MissingError:
        was_frozen = False
    if output == "json":
        print_json({"frozen": False, "wasFrozen": was_frozen})
    else:
        click.echo("The operator goes on." if was_frozen else "Nothing was frozen.")


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"  # a user without a name, as in a container
