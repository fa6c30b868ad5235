"""`issuesandbox cleanup`: end many sandboxes, or resources, picked by a label selector."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from issuesandbox.adapters.kube.connection import load_connection
from issuesandbox.adapters.kube.selection import KubeSelection
from issuesandbox.engine.batch import Cleanup, ItemResult, Result
from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.outside import connected
from issuesandbox.entry.settings import Settings, load_settings

_COLUMNS = ("resource", "sandbox", "result", "why")


@dataclass(frozen=True, slots=True)
class _Request:
    selector: str
    namespace: str | None
    resources: bool
    dry_run: bool
    yes: bool


@click.command()
@click.option("-l", "--selector", required=True, help="Labels of the resources, as for kubectl.")
@click.option("-n", "--namespace", help="Namespace. Default: the kubeconfig's.")
@click.option("-A", "--all-namespaces", "namespace", flag_value="", help="All namespaces.")
@click.option(
    "--resources", is_flag=True, help="Delete the resources; the operator ends their sandboxes."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")
def cleanup(
    *,
    selector: str,
    namespace: str | None,
    resources: bool,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    """Delete the sandboxes of finished resources, ten at a time; the resources stay.

    A sandbox that is still wanted is skipped: the operator would create it again.
    """
    if not selector.strip():
        raise click.UsageError("--selector must not be empty: it would match everything.")
    request = _Request(selector, namespace, resources, dry_run, yes)
    results = asyncio.run(_clean_up(load_settings(), request))
    rows = [
        {
            "resource": str(each.key),
            "sandbox": each.sandbox_id,
            "result": each.result.value,
            "why": each.why,
        }
        for each in results
    ]
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))
    else:
        click.echo("No resource has these labels.")
    failed = sum(each.result is Result.FAILED for each in results)
    if failed:
        raise click.ClickException(f"{failed} of {len(results)} failed; the output says why.")


async def _clean_up(settings: Settings, request: _Request) -> list[ItemResult]:
    connection = load_connection()
    async with connected(settings, connection) as connections:
        selection = KubeSelection(connections.requests)
        scope = connection.namespace if request.namespace is None else request.namespace
        bodies = await selection.select(request.selector, scope)
        if bodies and not (request.dry_run or request.yes):
            _ask(bodies, request)
        cleanup = Cleanup(
            connections.sandboxes, selection, connections.installation, dry_run=request.dry_run
        )
        if request.resources:
            return await cleanup.delete_resources(bodies)
        return await cleanup.delete_sandboxes(bodies)


def _ask(bodies: Sequence[Mapping[str, Any]], request: _Request) -> None:
    what = "resources" if request.resources else "sandboxes of finished resources"
    click.confirm(f"Delete up to {len(bodies)} {what}?", abort=True, err=True)
