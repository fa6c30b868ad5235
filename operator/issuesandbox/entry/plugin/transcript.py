"""`kubectl isb transcript`: what the agent did, from the ConfigMap that the operator keeps."""

from __future__ import annotations

import click

from issuesandbox.entry.output import print_json
from issuesandbox.entry.plugin.choice import namespace_option, output_option
from issuesandbox.entry.plugin.cluster import Cluster, MissingError
from issuesandbox.entry.plugin.logs import print_output
from issuesandbox.entry.plugin.shape import run_of


@click.command()
@click.argument("name")
@click.option("--raw", is_flag=True, help="The agent's own lines, as it printed them.")
@namespace_option
@output_option
def transcript(name: str, raw: bool, namespace: str | None, output: str) -> None:
    """Print the redacted transcript of the last run of NAME."""
    cluster = Cluster.load()
    home = namespace or cluster.namespace
    run = run_of(cluster.get(home, name))
    if not run:
        raise MissingError(f"{name} had no run yet")
    kept = run.get("transcript")
    if not kept:
        raise MissingError(f"run {run['id']} of {name} has no transcript yet: it is {run['phase']}")
    data = cluster.config_map(home, kept)
    if data is None:
        raise MissingError(f"the ConfigMap {home}/{kept} with the transcript was deleted")
    if output == "json":
        print_json({"run": run["id"], "parts": data})
        return
    print_output("".join(data.values()), raw=raw)
