"""`issuesandbox local github`: the simulated GitHub as a command.

Reads options and says in one line what is wrong; all work is in server.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from issuesandbox.local.github.server import GitHubConfig


def _granted(values: tuple[str, ...]) -> dict[str, str]:
    """Read `TOKEN` or `TOKEN=LOGIN`."""
    granted = {}
    for value in values:
        token, _, login = value.partition("=")
        if not token.strip():
            raise click.BadParameter("give TOKEN or TOKEN=LOGIN", param_hint="--token")
        granted[token] = login or "octocat"
    return granted


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), required=True, help="0 takes a free one.")
@click.option(
    "--token",
    "tokens",
    multiple=True,
    metavar="TOKEN[=LOGIN]",
    help="A token that may do everything, as this user (octocat).",
)
@click.option(
    "--webhook",
    "webhooks",
    multiple=True,
    metavar="URL",
    help="Where events go; several take turns.",
)
@click.option("--webhook-secret", default="", metavar="SECRET", help="Signs what goes there.")
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep everything here; without it all is gone at the end.",
)
@click.option("--admin/--no-admin", default=True, help="Serve the admin API under /_sim.")
def github(  # noqa: PLR0913, PLR0917 - click passes one argument per option
    host: str,
    port: int,
    tokens: tuple[str, ...],
    webhooks: tuple[str, ...],
    webhook_secret: str,
    state: Path | None,
    admin: bool,
) -> None:
    """Run a GitHub on this machine: REST, webhooks and real git over HTTP."""
    import asyncio

    from issuesandbox.local.github.errors import SimulatorError
    from issuesandbox.local.github.server import GitHubConfig

    if not all(each.startswith(("http://", "https://")) for each in webhooks):
        raise click.BadParameter("give an http:// or https:// address", param_hint="--webhook")
    if webhooks and not webhook_secret:
        raise click.UsageError("--webhook needs --webhook-secret: unsigned events are refused")
    config = GitHubConfig(
        host=host,
        port=port,
        state=state,
        tokens=_granted(tokens),
        webhook_urls=webhooks,
        webhook_secret=webhook_secret,
        admin=admin,
    )
    try:
        asyncio.run(_serve(config))
    except SimulatorError as error:
        raise click.ClickException(str(error)) from error


async def _serve(config: GitHubConfig) -> None:
    import asyncio
    import signal

    from issuesandbox.local.github.server import GitHubSimulator

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with GitHubSimulator(config) as simulator:
        click.echo(f"GitHub simulator at {simulator.url} (GITHUB_API_URL)")
        click.echo(f"App {simulator.app_id} (GITHUB_APP_ID), its key in {simulator.key_file}")
        if config.admin:
            click.echo(f"Admin API at {simulator.admin_url}")
        await stopped.wait()
