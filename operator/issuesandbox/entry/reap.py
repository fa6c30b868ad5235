"""`issuesandbox reap`: show the sandboxes that no resource owns, and kill them on request.

The operator's reaper does the same by itself; this is for looking at it, and for the case that
it stopped because there are too many orphans to believe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import click

from issuesandbox.adapters.kube.connection import Connection, load_connection
from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.clock import SystemClock
from issuesandbox.domain.orphans import ORPHANS, Caps, Finding, OrphanRules, Scope, Verdict
from issuesandbox.engine.reaper import Fate, Outside, Reaper, Sweep
from issuesandbox.entry.logs import configure_logs
from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.outside import connected
from issuesandbox.entry.settings import Settings
from issuesandbox.entry.stored import settings_in_force

_COLUMNS = ("sandbox", "state", "age", "resource", "verdict", "why")


@click.command()
@click.option("--dry-run", is_flag=True, help="Look once and kill nothing.")
@click.option("--yes", is_flag=True, help="Kill without asking.")
@click.option("--all", "show_all", is_flag=True, help="Show the owned sandboxes as well.")
@click.option(
    "--accept-orphans",
    type=click.IntRange(min=1),
    metavar="N",
    help="Believe in up to N orphans at once: you looked at them, and they are.",
)
@click.option("-n", "--namespace", help="Namespace of the operator. Default: the kubeconfig's.")
@click.option("-o", "--output", type=click.Choice(("table", "json")), default="table")
def reap(
    *,
    dry_run: bool,
    yes: bool,
    show_all: bool,
    accept_orphans: int | None,
    namespace: str | None,
    output: str,
) -> None:
    """Kill the sandboxes of this installation whose resource does not exist.

    Every gate of the operator's own reaper applies: age, two looks a minute apart, a last look
    at the sandbox and at its resource, and a stop when there are too many orphans at once.
    """
    caps = Caps(few=max(Caps().few, accept_orphans or 0))
    connection = load_connection()
    home = replace(connection, namespace=namespace or connection.namespace)
    known = settings_in_force(home)
    if known.problem is not None:
        text = f"Warning: by the last good settings, as the operator: {known.problem}"
        click.echo(text, err=True)
    search = Search(known.loaded.settings, home, caps)
    report(search.run(dry_run=dry_run, yes=yes), show_all=show_all, output=output)


def report(sweep: Sweep, *, show_all: bool, output: str) -> None:
    """Print what was found and what became of it; fail where something is left to do."""
    shown = [
        each for each in sweep.assessment.findings if show_all or each.verdict is not Verdict.OWNED
    ]
    if output == "json":
        print_json({"sandboxes": list(_rows(sweep, shown)), **_totals(sweep)})
    else:
        _print(sweep, shown)
        click.echo(", ".join(f"{name}: {value}" for name, value in _totals(sweep).items()))
    if sweep.assessment.breaker is not None:
        raise click.ClickException(f"nothing was killed: {sweep.assessment.breaker}.")
    if any(each.fate is Fate.ERROR for each in sweep.treated):
        raise click.ClickException("some orphans could not be killed; the table says why.")


@dataclass(frozen=True, slots=True)
class Search:
    """A look for the orphans of the installation that lives in the connection's namespace."""

    settings: Settings
    connection: Connection
    caps: Caps = field(default_factory=Caps)

    def run(self, *, dry_run: bool, yes: bool = False) -> Sweep:
        """Look once or, if something is to be killed, twice; return the last look."""
        configure_logs("console", "ERROR")
        return asyncio.run(self._sweep(dry_run, yes))

    async def _sweep(self, dry_run: bool, yes: bool) -> Sweep:
        settings, clock = self.settings, SystemClock()
        async with connected(settings, self.connection) as connections:
            resources = KubeResources(connections.requests, clock, reporter="issuesandbox reap")
            scope = Scope(connections.installation, settings.watch_namespaces, connections.home)
            click.echo(f"Sandboxes of installation {scope.installation}", err=True)
            reaper = Reaper(
                Outside(connections.sandboxes, resources, clock),
                OrphanRules(scope, settings.timings, self.caps),
                dry_run=dry_run,
            )
            sweep = await reaper.sweep()
            orphans = [each for each in sweep.assessment.findings if each.verdict in ORPHANS]
            if dry_run or sweep.assessment.breaker is not None or not orphans:
                return sweep
            if not yes:
                _print(sweep, orphans, err=True)
                click.confirm(f"Kill up to {len(orphans)} sandboxes?", abort=True, err=True)
            gap = settings.timings.orphan_gap.total_seconds()
            click.echo(f"Looking again in {gap:g} s; what is an orphan then is killed.", err=True)
            await asyncio.sleep(gap)
            return await reaper.sweep()


def _print(sweep: Sweep, findings: list[Finding], *, err: bool = False) -> None:
    if findings:
        rows = ([row[name] or "-" for name in _COLUMNS] for row in _rows(sweep, findings))
        print_table(_COLUMNS, rows, err=err)


def _rows(sweep: Sweep, findings: list[Finding]) -> Iterator[dict[str, str | None]]:
    treated = {each.finding.sandbox.id: each for each in sweep.treated}
    for finding in findings:
        sandbox, fate = finding.sandbox, treated.get(finding.sandbox.id)
        age = finding.age
        yield {
            "sandbox": sandbox.id,
            "name": sandbox.name,
            "state": sandbox.state,
            "age": f"{age.total_seconds():.0f}s" if age is not None else None,
            "resource": finding.resource,
            "verdict": fate.fate if fate is not None else finding.verdict,
            "why": (fate is not None and fate.why) or finding.why,
        }


def _totals(sweep: Sweep) -> dict[str, int]:
    owned = sum(each.verdict is Verdict.OWNED for each in sweep.assessment.findings)
    return {"owned": owned, **sweep.summary}
