"""Verbs that delete resources: cleanup and uninstall. The operator ends their sandboxes."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import click
from rich.console import Console

from issuesandbox.api.names import LABEL_KEEP
from issuesandbox.clock import SystemClock
from issuesandbox.entry.output import print_json
from issuesandbox.entry.plugin.choice import attempt, namespace_option, output_option, tell_all
from issuesandbox.entry.plugin.cluster import Body, Cluster, MissingError, issue_of, place
from issuesandbox.entry.plugin.shape import phase_of, run_of

_POLL_SECONDS = 0.5


@click.command()
@click.option("-l", "--selector", required=True, help="Labels of the resources, as for kubectl.")
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@output_option
def cleanup(
    *,
    selector: str,
    namespace: str | None,
    all_namespaces: bool,
    dry_run: bool,
    yes: bool,
    output: str,
) -> None:
    """Delete the finished resources with these labels, and their sandboxes with them.

    Left alone are those whose run goes on, and those that are kept (`kubectl isb keep`).
    """
    if not selector.strip():
        raise click.UsageError("--selector must not be empty: it would match everything.")
    cluster = Cluster.load()
    scope = None if all_namespaces else namespace or cluster.namespace
    bodies = cluster.list(scope, selector)
    wanted = [body for body in bodies if _obstacle(body) is None]
    if wanted and not (dry_run or yes):
        click.confirm(f"Delete {len(wanted)} resources and their sandboxes?", abort=True, err=True)

    def remove(body: Body) -> dict[str, str]:
        obstacle = _obstacle(body)
        if obstacle is not None:
            return {"result": f"left: {obstacle}"}
        if not dry_run:
            _delete(cluster, body)
        return {"result": "would be deleted" if dry_run else "deleted"}

    tell_all([attempt(_at(body), partial(remove, body)) for body in bodies], output)


def _obstacle(body: Body) -> str | None:
    """Return why a resource is not for the taking, or None."""
    if body["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if (body["metadata"].get("labels") or {}).get(LABEL_KEEP) == "true":
        return "it is kept"
    run, asked = run_of(body), body["spec"].get("run") or {}
    if not run:
        return "it had no run"
    if not run.get("outcome") or run.get("trigger") != asked.get("trigger"):
        return "its run goes on"
    return None


@click.command()
@click.option(
    "--orphan", is_flag=True, help="Leave the sandboxes to Daytona's own limits; delete none."
)
@click.option("-n", "--namespace", help="Only this namespace. Default: all of them.")
@click.option("--timeout", default=600, show_default=True, help="Seconds to wait for the end.")
@click.option("--yes", is_flag=True, help="Do it without asking.")
@output_option
def uninstall(*, orphan: bool, namespace: str | None, timeout: int, yes: bool, output: str) -> None:
    """Delete all resources, wait until they are gone, and say how to go on.

    The operator must still run: it ends the sandboxes.
    """
    cluster = Cluster.load()
    bodies = cluster.list(namespace)
    what = "leave their sandboxes behind" if orphan else "delete their sandboxes"
    if bodies and not yes:
        where = namespace or "all namespaces"
        text = f"Delete all {len(bodies)} resources in {where}, and {what}?"
        click.confirm(text, abort=True, err=True)

    def remove(body: Body) -> dict[str, str]:
        if orphan:
            _orphan(cluster, body)
        _delete(cluster, body)
        return {"result": "deleted"}

    done = [attempt(_at(body), partial(remove, body)) for body in bodies]
    if any(error is not None for _, error in done):
        # What cannot be deleted would be waited for in vain.
        tell_all(done, output)
    _until_gone(cluster, namespace, timeout)
    left = ["kubectl delete -k manifests/base", "kubectl delete -f crds/"]
    if output == "json":
        print_json({"gone": [_at(body) for body in bodies], "next": left})
        return
    click.echo(f"{len(bodies)} resources are gone. What is left to do:")
    click.echo(f"  {left[0]}        # or the overlay you installed\n  {left[1]}")


def _orphan(cluster: Cluster, body: Body) -> None:
    change: dict[str, Any] = {"spec": {"deletionPolicy": "Orphan"}}
    try:
        cluster.change(*place(body), lambda _: change)
    except MissingError:
        return


def _delete(cluster: Cluster, body: Body) -> None:
    try:
        cluster.delete(body)
    except MissingError:
        return


def _until_gone(cluster: Cluster, namespace: str | None, timeout: int) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + timeout
    with Console(stderr=True).status("Waiting for the operator to end the sandboxes") as progress:
        while left := cluster.list(namespace):
            if clock.monotonic() > deadline:
                raise click.ClickException(_still_there(left))
            progress.update(f"{len(left)} resources left")
            time.sleep(_POLL_SECONDS)


def _still_there(left: list[Body]) -> str:
    shown = ", ".join(f"{'/'.join(place(each))} ({phase_of(each)})" for each in left[:5])
    return (
        f"{len(left)} resources are still there: {shown}. Is the operator running? "
        "`kubectl isb why NAME` says what one waits for."
    )


def _at(body: Body) -> dict[str, str]:
    namespace, name = place(body)
    return {"namespace": namespace, "name": name, "issue": issue_of(body)}
