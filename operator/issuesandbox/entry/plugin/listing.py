"""`kubectl isb list`: all resources at a glance, once or live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from issuesandbox.clock import SystemClock
from issuesandbox.entry.output import print_json, printable
from issuesandbox.entry.plugin.choice import namespace_option
from issuesandbox.entry.plugin.cluster import Body, Cluster, issue_of, place
from issuesandbox.entry.plugin.shape import (
    moment,
    phase_of,
    reason_of,
    run_of,
    span,
    status_of,
)

_COLOURS = {
    "Succeeded": "green",
    "Idle": "green",
    "Executing": "cyan",
    "Publishing": "cyan",
    "Failed": "red",
    "TimedOut": "red",
    "Cancelled": "yellow",
    "Queued": "yellow",
    "Stopping": "yellow",
    "Deleting": "magenta",
}
_COLUMNS = ("NAMESPACE", "NAME", "ISSUE", "PHASE", "SANDBOX", "STATE", "PR", "AGE", "REASON")
_WIDE = ("RUN", "ATTEMPT", "LAST-OUTPUT", "MESSAGE")
_UNWATCHED_WIDTH = 400

Row = dict[str, str]
_SORTS: dict[str, Callable[[Body], Any]] = {
    "name": place,
    "age": lambda body: body["metadata"].get("creationTimestamp", ""),
    "phase": lambda body: (phase_of(body), place(body)),
    "issue": lambda body: (
        body["spec"]["issue"]["repository"].lower(),
        body["spec"]["issue"]["number"],
    ),
}


@click.command("list")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option("-l", "--selector", default="", help="Labels of the resources, as for kubectl.")
@click.option("--sort", type=click.Choice(sorted(_SORTS)), default="name", show_default=True)
@click.option("-w", "--watch", is_flag=True, help="Show changes as they happen, until Ctrl-C.")
@click.option("-o", "--output", type=click.Choice(("table", "wide", "json")), default="table")
def list_resources(
    *,
    namespace: str | None,
    all_namespaces: bool,
    selector: str,
    sort: str,
    watch: bool,
    output: str,
) -> None:
    """List the resources with their phase, sandbox and reason."""
    if watch and output == "json":
        raise click.UsageError("--watch does not go with -o json.")
    cluster = Cluster.load()
    scope = None if all_namespaces else namespace or cluster.namespace
    columns = (*_COLUMNS, *_WIDE) if output == "wide" else _COLUMNS
    if watch:
        _watch(cluster.watch(scope, selector), sort, columns)
        return
    bodies = sorted(cluster.list(scope, selector), key=_SORTS[sort])
    if output == "json":
        print_json(bodies)
    elif bodies:
        _console().print(_table(bodies, columns))
    else:
        click.echo(f"No resource in {scope or 'any namespace'}.")


def _watch(events: Iterator[tuple[str, Body]], sort: str, columns: tuple[str, ...]) -> None:
    console, shown = _console(), dict[tuple[str, str], Body]()
    try:
        if not sys.stdout.isatty():
            for kind, body in events:
                row = row_of(body, SystemClock().now())
                row["PHASE"] = "Deleted" if kind == "DELETED" else row["PHASE"]
                click.echo("  ".join(row[name] for name in columns))
                sys.stdout.flush()
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            for kind, body in events:
                shown[place(body)] = body
                if kind == "DELETED":
                    del shown[place(body)]
                live.update(_table(sorted(shown.values(), key=_SORTS[sort]), columns), refresh=True)
    except KeyboardInterrupt:
        return


def _console() -> Console:
    width = None if sys.stdout.isatty() else _UNWATCHED_WIDTH
    # What is shown comes from others: it must not be taken for formatting.
    return Console(width=width, markup=False, emoji=False, highlight=False)


def _table(bodies: Iterable[Body], columns: tuple[str, ...]) -> Table:
    table, now = Table(*columns, box=None, pad_edge=False), SystemClock().now()
    for body in bodies:
        row = row_of(body, now)
        table.add_row(*(Text(row[name], style=_style(name, row[name])) for name in columns))
    return table


def _style(column: str, value: str) -> str:
    return _COLOURS.get(value, "") if column == "PHASE" else ""


def row_of(body: Body, now: datetime) -> Row:
    """Return what there is to show of a resource, by column."""
    status, run = status_of(body), run_of(body)
    sandbox = status.get("sandbox") or {}
    created, heard = (
        moment(body["metadata"].get("creationTimestamp")),
        moment(run.get("lastOutputAt")),
    )
    ready: dict[str, Any] = next(
        (each for each in status.get("conditions", ()) if each["type"] == "Ready"), {}
    )
    request = (run.get("pullRequest") or {}).get("number")
    row = {
        "NAMESPACE": body["metadata"]["namespace"],
        "NAME": body["metadata"]["name"],
        "ISSUE": issue_of(body),
        "PHASE": phase_of(body),
        "SANDBOX": sandbox.get("name"),
        "STATE": sandbox.get("state"),
        "PR": f"#{request}" if request else None,
        "AGE": span(now - created) if created else None,
        "REASON": reason_of(body),
        "RUN": run.get("id"),
        "ATTEMPT": sandbox.get("attempt"),
        "LAST-OUTPUT": span(now - heard) if heard else None,
        "MESSAGE": ready.get("message"),
    }
    return {name: printable(str(value)) if value else "-" for name, value in row.items()}
