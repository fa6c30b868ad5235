"""`kubectl isb orphans`: sandboxes that nobody owns. Looks only; killing is `issuesandbox reap`."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from issuesandbox.entry.plugin.choice import operator_option, output_option
from issuesandbox.entry.plugin.cluster import Cluster
from issuesandbox.entry.plugin.credentials import daytona_key
from issuesandbox.entry.plugin.settings_status import in_force
from issuesandbox.entry.plugin.which_cluster import which_cluster


@click.command()
@click.option("--all", "show_all", is_flag=True, help="Show the owned sandboxes as well.")
@operator_option
@output_option
def orphans(show_all: bool, operator_namespace: str, output: str) -> None:
    """Show the sandboxes of this installation whose resource does not exist.

    Daytona is asked with the key in the Secret, where you may read it, or with DAYTONA_API_KEY.
    The operator's reaper ends them by itself; `issuesandbox reap` does it by hand.
    """
    from issuesandbox.adapters.kube.connection import load_connection
    from issuesandbox.entry.reap import Search, report
    from issuesandbox.entry.settings import load_settings
    from issuesandbox.ports.errors import IssueSandboxError

    cluster, said = Cluster.load(), which_cluster()
    key = daytona_key(cluster, operator_namespace)
    environment = {**os.environ, "DAYTONA_API_KEY": key} if key else None
    try:
        stored = in_force(cluster, operator_namespace)
        if stored.problem is not None:
            text = f"Warning: by the last good settings, as the operator: {stored.problem}"
            click.echo(text, err=True)
        settings = load_settings(environment, stored.settings)
        connection = load_connection(said.kubeconfig, said.context)
        # The operator's namespace tells its installation, not the one that the caller is in.
        search = Search(settings, replace(connection, namespace=operator_namespace))
        report(search.run(dry_run=True), show_all=show_all, output=output)
    except IssueSandboxError as error:
        raise click.ClickException(str(error)) from None
