"""`kubectl isb logs`: what the agent prints, while it runs and after.

Reads the ConfigMap that the operator keeps up to date: people need no key of Daytona's.
"""

from __future__ import annotations

import time

import click

from issuesandbox.domain.agents.shown import shown
from issuesandbox.domain.naming import transcript_name
from issuesandbox.entry.plugin.choice import namespace_option
from issuesandbox.entry.plugin.cluster import Cluster, MissingError, place
from issuesandbox.entry.plugin.shape import run_of

_POLL_SECONDS = 2.0
# What is looked for in the next copy to see where to go on; copies are cut at their beginning.
_OVERLAP = 400


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run is over.")
@click.option("--raw", is_flag=True, help="The agent's own lines, as it printed them.")
@namespace_option
def logs(name: str, follow: bool, raw: bool, namespace: str | None) -> None:
    """Print what the agent of NAME prints; secrets are masked."""
    cluster = Cluster.load()
    try:
        _print_all(cluster, namespace or cluster.namespace, name, follow=follow, raw=raw)
    except KeyboardInterrupt:
        return  # whoever follows has seen enough


def _print_all(cluster: Cluster, home: str, name: str, *, follow: bool, raw: bool) -> None:
    printed = ""
    while True:
        body = cluster.get(home, name)
        run = run_of(body)
        if not run and not follow:
            raise MissingError(f"{name} had no run yet")
        text = _read(cluster, *place(body), run["id"]) if run else ""
        print_output(added(printed, text), raw=raw)
        printed = text or printed
        if not follow or (run and run.get("outcome")):
            return
        time.sleep(_POLL_SECONDS)


def added(before: str, now: str) -> str:
    """Return what a copy of the output has beyond the one before."""
    if not before or now.startswith(before):
        return now[len(before) :]
    place = now.rfind(before[-_OVERLAP:])
    return now if place < 0 else now[place + len(before[-_OVERLAP:]) :]


def _read(cluster: Cluster, home: str, name: str, run_id: str) -> str:
    data = cluster.config_map(home, transcript_name(name, run_id))
    return "".join((data or {}).values())


def print_output(text: str, *, raw: bool) -> None:
    """Print what an agent printed: in words, or as it stands."""
    for line in text.splitlines() if raw else shown(text):
        click.echo(line)
