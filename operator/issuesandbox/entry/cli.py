"""The command line: `issuesandbox …`. Each command imports what it needs when it runs."""

from __future__ import annotations

import sys

import click

from issuesandbox.lazy_commands import Lazy, LazyGroup
from issuesandbox.ports.errors import IssueSandboxError

_COMMANDS = {
    "run": Lazy("issuesandbox.entry.run", "run", "Run the operator."),
    "webhook": Lazy(
        "issuesandbox.entry.webhook.command", "webhook", "Turn GitHub's events into resources."
    ),
    "reap": Lazy("issuesandbox.entry.reap", "reap", "Kill sandboxes that no resource owns."),
    "cleanup": Lazy("issuesandbox.entry.cleanup", "cleanup", "Delete many sandboxes at once."),
    "mcp": Lazy("issuesandbox.entry.mcp_server", "serve", "Serve tools for coding agents.", "mcp"),
    "config": Lazy("issuesandbox.entry.config", "config", "Print the settings in force."),
    "reference": Lazy("issuesandbox.entry.reference", "reference", "Print the documents' tables."),
    "crd": Lazy("issuesandbox.api.cli", "crd", "Print the CustomResourceDefinition."),
    "table": Lazy("issuesandbox.entry.table", "table", "Print the decision table as Markdown."),
    "local": Lazy("issuesandbox.local.cli", "local", "The world on one machine, simulated."),
}


@click.command(cls=LazyGroup, table=_COMMANDS)
@click.version_option(package_name="issuesandbox")
def cli() -> None:
    """One GitHub issue, one Daytona sandbox, one declared truth."""


def main() -> None:
    """Run the command line; what we raise on purpose becomes one line and exit code 1."""
    try:
        cli()
    except IssueSandboxError as error:
        from issuesandbox.entry.logs import redacted

        click.echo(f"Error: {redacted(str(error))}", err=True)
        sys.exit(1)
