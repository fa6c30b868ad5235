"""`kubectl isb logs`: what the agent prints, while it runs and after.

Reads the ConfigMap that the operator keeps up to date: people need no key of Daytona's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import click
import msgspec

from issuesandbox.domain.agents.shown import shown
from issuesandbox.domain.naming import transcript_name
from issuesandbox.entry.plugin.choice import namespace_option, output_option
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
@output_option
def logs(name: str, follow: bool, raw: bool, namespace: str | None, output: str) -> None:
    """Print what the agent of NAME prints; secrets are masked.

    With `-o json`, one JSON object for each line.
    """
    cluster = Cluster.load()
    show = partial(print_output, raw=raw, output=output)
    try:
        _print_all(cluster, namespace or cluster.namespace, name, follow=follow, show=show)
    except KeyboardInterrupt:
        return  # whoever follows has seen enough


def _print_all(
    cluster: Cluster, home: str, name: str, *, follow: bool, show: Callable[[str], None]
) -> None:
    printed = ""
    while True:
        body = cluster.get(home, name)
        run = run_of(body)
        if not run and not follow:
            raise MissingError(f"{name} had no run yet")
        text = _read(cluster, *place(body), run["id"]) if run else ""
        show(added(printed, text))
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


def print_output(text: str, *, raw: bool, output: str = "table") -> None:
    """Print what an agent printed: in words, or as it stands."""
    for line in text.splitlines() if raw else shown(text):
        click.echo(msgspec.json.encode({"line": line}).decode() if output == "json" else line)
