"""`kubectl isb doctor`: looks at an installation as its caller may, and says how to repair it."""

from __future__ import annotations

import click

from issuesandbox.entry.output import print_json, print_table
from issuesandbox.entry.plugin.choice import operator_option, output_option
from issuesandbox.entry.plugin.cluster import Cluster

_COLUMNS = ("check", "verdict", "what", "fix")


@click.command()
@operator_option
@output_option
def doctor(operator_namespace: str, output: str) -> None:
    """Check the CRD, rights, operator, leases, settings, secrets, clock, Daytona and GitHub.

    Daytona and GitHub are asked with what is in the Secrets, where you may read them, or with
    DAYTONA_API_KEY and GITHUB_… of the environment. No secret is shown. Exit code 1 if anything
    failed.
    """
    from issuesandbox.entry.plugin.checks import Verdict, examine

    findings = examine(Cluster.load(), operator_namespace)
    rows = [
        {"check": each.check, "verdict": each.verdict.value, "what": each.what, "fix": each.fix}
        for each in findings
    ]
    if output == "json":
        print_json(rows)
    else:
        print_table(_COLUMNS, ([row[name] for name in _COLUMNS] for row in rows))
    failed = sum(each.verdict is Verdict.FAILED for each in findings)
    if failed:
        raise click.ClickException(f"{failed} of {len(findings)} checks failed.")
