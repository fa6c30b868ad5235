"""`kubectl isb verify`: checks one step of docs/manual-test.md against what is written down."""

from __future__ import annotations

import click

from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.plugin.checks import Finding, Verdict
from issuesandbox.entry.plugin.choice import namespace_option, operator_option, output_option
from issuesandbox.entry.plugin.cluster import Cluster
from issuesandbox.entry.plugin.verify_steps import STEPS, Scene, Step

_COLUMNS = ("check", "verdict", "what")


@click.command()
@click.argument("step", type=click.IntRange(1, len(STEPS)))
@click.argument("name", required=False)
@namespace_option
@operator_option
@output_option
def verify(
    step: int, name: str | None, namespace: str | None, operator_namespace: str, output: str
) -> None:
    """Check whether STEP of docs/manual-test.md did what it should, for resource NAME.

    Looks and changes nothing. Exit code 1 if something is not as it should be.
    """
    wanted = STEPS[step - 1]
    if wanted.about_a_resource and name is None:
        raise click.UsageError(f"Step {step} ({wanted.title}) is about a resource: say its name.")
    cluster = Cluster.load()
    scene = Scene(cluster, namespace or cluster.namespace, name or "", operator_namespace)
    findings = list(wanted.look(scene))
    _tell(step, wanted, findings, output)
    failed = sum(each.verdict is Verdict.FAILED for each in findings)
    if failed:
        raise click.ClickException(f"step {step}: {failed} of {len(findings)} checks failed.")


def _tell(step: int, wanted: Step, findings: list[Finding], output: str) -> None:
    rows = [
        {"check": each.check, "verdict": each.verdict.value, "what": each.what} for each in findings
    ]
    if output == "json":
        print_json({"step": step, "title": wanted.title, "checks": rows})
        return
    click.echo(f"Step {step}: {wanted.title}")
    print_table(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))
