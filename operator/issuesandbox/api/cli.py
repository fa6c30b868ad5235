"""The command that prints the CustomResourceDefinition. Knows nothing of a cluster."""

from __future__ import annotations

import click


@click.command("crd")
def crd() -> None:
    """Print the CustomResourceDefinition, ready for `kubectl apply -f -`."""
    from issuesandbox.api.crd import render_crd

    click.echo(render_crd(), nl=False)
