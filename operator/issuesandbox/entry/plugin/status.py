"""`kubectl isb status`: one resource in full, for people."""

from __future__ import annotations

from collections.abc import Iterator

import click

from issuesandbox.entry.output import print_json, printable
from issuesandbox.entry.plugin.choice import namespace_option, output_option
from issuesandbox.entry.plugin.cluster import Body, Cluster, issue_of
from issuesandbox.entry.plugin.shape import (
    conditions_of,
    phase_of,
    run_of,
    status_of,
)


@click.command()
@click.argument("name")
@namespace_option
@output_option
def status(name: str, namespace: str | None, output: str) -> None:
    """Show the sandbox, the run and the conditions of NAME."""
    cluster = Cluster.load()
    body = cluster.get(namespace or cluster.namespace, name)
    if output == "json":
        print_json(body)
        return
    for title, value in facts(body):
        click.echo(f"{title:<14} {printable(value)}" if title else f"  {printable(value)}")


def facts(body: Body) -> Iterator[tuple[str, str]]:
    """Yield what there is to say, each with its title; an empty title goes on with the last."""
    found, run = status_of(body), run_of(body)
    yield "Issue", issue_of(body)
    yield "Phase", phase_of(body)
    yield "Wanted", body["spec"].get("desiredState", "Running")
    yield from _sandbox(found)
    if run:
        yield from _run(run)
    error = found.get("error")
    if error:
        yield "Error", f"{error.get('code')}: {error.get('message')}"
    summary = (found.get("summary") or {}).get("text")
    if summary:
        yield "Summary", " ".join(summary.split())[:500]
    yield "Conditions", ""
    for kind, each in conditions_of(body).items():
        yield "", f"{kind:<17} {each['status']:<8} {each['reason']:<18} {each['message']}"
    history = found.get("history", ())
    if history:
        yield "Earlier runs", ""
    for each in history:
        reason = f"/{each['reason']}" if each.get("reason") else ""
        yield "", f"{each['id']}  {each['outcome']}{reason}  {each.get('finishedAt', '-')}"


def _sandbox(found: Body) -> Iterator[tuple[str, str]]:
    sandbox = found.get("sandbox") or {}
    if not sandbox:
        yield "Sandbox", "none"
        return
    since = f" since {sandbox['stateSince']}" if sandbox.get("stateSince") else ""
    yield "Sandbox", f"{sandbox.get('name', '-')}  {sandbox.get('id', 'no id yet')}"
    yield "", f"{sandbox.get('state', 'no state yet')}{since}, attempt {sandbox.get('attempt', 0)}"
    deletion = found.get("sandboxDeletion")
    if deletion:
        yield "Cleanup", deletion.get("message", "-")


def _run(run: Body) -> Iterator[tuple[str, str]]:
    outcome = run.get("outcome") or run["phase"]
    reason = f" ({run['reason']})" if run.get("reason") else ""
    yield "Run", f"{run['id']}  {outcome}{reason}"
    if run.get("message"):
        yield "", run["message"]
    times = {"startedAt": "began", "lastOutputAt": "last output", "finishedAt": "ended"}
    yield "", ", ".join(f"{word} {run[key]}" for key, word in times.items() if run.get(key))
    ends = run.get("deadlines") or {}
    if ends and not run.get("outcome"):
        yield "", ", ".join(f"{name} limit ends {at}" for name, at in ends.items())
    if run.get("branch"):
        yield "Branch", f"{run['branch']} {run.get('commit', '')}".strip()
    request = run.get("pullRequest")
    if request:
        yield "Pull request", f"#{request['number']} {request['url']}"
    if run.get("savedWork"):
        yield "Saved work", f"{run['savedWork']['kind']} {run['savedWork']['ref']}"
