"""Options that many verbs share: which resources, and how to answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from issuesandbox.api.names import OPERATOR_NAMESPACE
from issuesandbox.entry.output import print_json
from issuesandbox.entry.plugin.cluster import Body, Cluster, place

Command = Callable[..., Any]

_AT_ONCE = 8

namespace_option = click.option("-n", "--namespace", help="Namespace. Default: the kubeconfig's.")
output_option = click.option(
    "-o", "--output", type=click.Choice(("table", "json")), default="table", help="Form of output."
)
operator_option = click.option(
    "--operator-namespace",
    default=OPERATOR_NAMESPACE,
    show_default=True,
    help="Namespace of the operator.",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The resources a verb is about."""

    cluster: Cluster
    places: Sequence[tuple[str, str]]


def chosen_resources(command: Command) -> Command:
    """Give a command the resources that names, a selector or `--all` choose."""

    @click.argument("names", nargs=-1)
    @click.option("-l", "--selector", help="Labels of the resources, as for kubectl.")
    @click.option("--all", "everything", is_flag=True, help="All resources of the namespace.")
    @namespace_option
    @click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
    @wraps(command)
    def wrapped(
        names: tuple[str, ...],
        selector: str | None,
        everything: bool,
        namespace: str | None,
        all_namespaces: bool,
        **rest: Any,
    ) -> Any:
        if sum(map(bool, (names, selector, everything))) != 1:
            raise click.UsageError("Say which: names, or --selector, or --all.")
        if names and all_namespaces:
            raise click.UsageError("Names are of one namespace: use -n, not -A.")
        cluster = Cluster.load()
        home = namespace or cluster.namespace
        if names:
            return command(Chosen(cluster, [(home, name) for name in names]), **rest)
        found = cluster.list(None if all_namespaces else home, selector or "")
        return command(Chosen(cluster, [place(each) for each in found]), **rest)

    return wrapped


def change_each(
    chosen: Chosen, decide: Callable[[Body], Any], told: Callable[[Body], str], output: str
) -> None:
    """Change every chosen resource, many at once; one failure does not stop the others."""

    def change(at: tuple[str, str]) -> Attempt:
        def act() -> dict[str, str]:
            body = chosen.cluster.change(*at, decide)
            return {"name": body["metadata"]["name"], "result": told(body)}

        return attempt(dict(zip(("namespace", "name"), at, strict=True)), act)

    # An emergency stop of thousands must not take them one by one.
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        tell_all(list(pool.map(change, chosen.places)), output)


Attempt = tuple[dict[str, str], click.ClickException | None]
"""What became of one resource, and why it failed, if it did."""


def attempt(row: dict[str, str], act: Callable[[], dict[str, str]]) -> Attempt:
    """Do something for one resource; a failure is for the end, when all others had their turn."""
    try:
        return {**row, **act()}, None
    except click.ClickException as error:
        return {**row, "error": error.message}, error


def tell_all(done: Sequence[Attempt], output: str) -> None:
    """Say what became of each resource, and fail if any of them did."""
    failed = [error for _, error in done if error is not None]
    tell((row for row, _ in done), output)
    if failed and len(done) == 1:
        raise failed[0]
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(done)} failed.")


def tell(results: Iterable[dict[str, str]], output: str) -> None:
    """Say what became of each resource."""
    rows = list(results)
    if output == "json":
        print_json(rows)
        return
    if not rows:
        click.echo("No resource was chosen.")
    for row in rows:
        if "result" in row:
            click.echo(f"{row['namespace']}/{row['name']}: {row['result']}")
        elif len(rows) > 1:
            click.echo(f"{row['namespace']}/{row['name']}: Error: {row['error']}", err=True)
