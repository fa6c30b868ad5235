"""`kubectl isb demo-issue`: open an issue at the simulated GitHub of a world that runs.

The world's own webhook adapter does the rest. Knows the simulator's admin API alone.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request

import click

from issuesandbox.local.world.furnish import REPOSITORY

_TIMEOUT = 10.0


@click.command("demo-issue")
@click.argument("title")
@click.option("--body", default="Please.", show_default=True, help="Text of the issue.")
@click.option("--repository", default=REPOSITORY, show_default=True)
def demo_issue(title: str, body: str, repository: str) -> None:
    """Open an issue with this TITLE in the local world, as its owner, and let the story begin.

    Works in `make shell`. A fenced block `scenario` in the body tells the scripted agent what to
    do; without one it adds a line to a file.
    """
    admin = os.environ.get("ISSUESANDBOX_GITHUB_ADMIN")
    if not admin:
        raise click.ClickException("no local world: `make up`, then `make shell` and try there")
    owner = repository.partition("/")[0]
    issue = {"title": title, "body": body, "as": owner}
    request = urllib.request.Request(  # noqa: S310 - the world's own address
        f"{admin}/repos/{repository}/issues",
        data=json.dumps(issue).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            number = json.load(answer)["number"]
    except urllib.error.HTTPError as error:
        told = error.read().decode(errors="replace").strip()
        raise click.ClickException(f"the simulated GitHub refused it: {told}") from None
    except OSError as error:
        raise click.ClickException(f"the local world does not answer: {error}") from None
    click.echo(f"Opened {repository}#{number}. Watch it: kubectl isb list -w")
