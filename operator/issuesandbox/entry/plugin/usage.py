"""`kubectl isb usage`: time, tokens and cost, by resource and in all."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import click

from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.plugin.choice import namespace_option, output_option
from issuesandbox.entry.plugin.cluster import Body, Cluster, issue_of
from issuesandbox.entry.plugin.shape import span, status_of

_COLUMNS = ("resource", "issue", "runs", "running", "total", "input", "output", "cost")
_RUNNING = "started"


@click.command()
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", default="", help="Labels of the resources, as for kubectl.")
@output_option
def usage(namespace: str | None, all_namespaces: bool, selector: str, output: str) -> None:
    """Show what each resource used up over its life, and the sum.

    Time is that of its sandboxes; tokens and dollars are by the agent's own account.
    """
    cluster = Cluster.load()
    scope = None if all_namespaces else namespace or cluster.namespace
    rows = [used(body) for body in cluster.list(scope, selector)]
    total = {name: sum((row[name] for row in rows), start=Decimal(0)) for name in _COLUMNS[2:]}
    if output == "json":
        print_json({"resources": [_plain(row) for row in rows], "total": _plain(total)})
        return
    if not rows:
        click.echo(f"No resource in {scope or 'any namespace'}.")
        return
    print_table(_COLUMNS, [_shown(row) for row in [*rows, {"resource": "total", **total}]])


def used(body: Body) -> dict[str, Any]:
    """Return what one resource used up."""
    status = status_of(body)
    given = status.get("usage") or {}
    seconds = {each["state"]: each["seconds"] for each in given.get("states", ())}
    return {
        "resource": f"{body['metadata']['namespace']}/{body['metadata']['name']}",
        "issue": issue_of(body),
        "runs": Decimal((status.get("counters") or {}).get("runs", 0)),
        "running": Decimal(seconds.get(_RUNNING, 0)),
        "total": Decimal(sum(seconds.values())),
        "input": Decimal(given.get("inputTokens", 0)),
        "output": Decimal(given.get("outputTokens", 0)),
        "cost": Decimal(given.get("costUSD", "0")),
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    # Money stays text: a float would not be exact.
    return {
        name: str(value) if name == "cost" else int(value) if isinstance(value, Decimal) else value
        for name, value in row.items()
    }


def _shown(row: dict[str, Any]) -> list[str]:
    shown = {"issue": "", **row}
    for name in ("running", "total"):
        shown[name] = span(timedelta(seconds=int(row[name])))
    shown["cost"] = f"${row['cost']:.2f}"
    return [str(shown[name]) for name in _COLUMNS]
