"""`issuesandbox local daytona`: one simulated Daytona in the foreground."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import click

from issuesandbox.local.daytona.config import (
    DEFAULT_KEY,
    DEFAULT_ORGANIZATION,
    DEFAULT_SNAPSHOTS,
    ApiKey,
    RateLimits,
    SimulatorConfig,
    SnapshotSpec,
)
from issuesandbox.local.daytona.errors import StateError


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--api-key",
    "keys",
    multiple=True,
    metavar="KEY=ORGANISATION",
    help=f"An accepted API key and its organisation; repeatable. "
    f"Default: {DEFAULT_KEY}={DEFAULT_ORGANIZATION}.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder that keeps sandboxes, files and the journal; without it nothing is kept.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="How many times faster than usual sandboxes change their state.",
)
@click.option(
    "--snapshot",
    "snapshots",
    multiple=True,
    metavar="NAME",
    help="A snapshot that exists besides the usual ones; repeatable.",
)
@click.option("--no-rate-limits", is_flag=True, help="Let everybody ask as often as they like.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("--no-admin", is_flag=True, help="Switch the admin API under /_sim off.")
def daytona(**options: Any) -> None:
    """Simulate Daytona on this machine: its API, real processes, real git.

    Point any Daytona SDK at it with DAYTONA_API_URL.
    """
    more = tuple(SnapshotSpec(name) for name in options["snapshots"])
    config = SimulatorConfig(
        host=options["host"],
        port=options["port"],
        keys=_keys(options["keys"]) or SimulatorConfig().keys,
        state_dir=options["state"],
        speed=options["speed"],
        snapshots=(*DEFAULT_SNAPSHOTS, *more),
        rate_limits=None if options["no_rate_limits"] else RateLimits(),
        seed=options["seed"],
        admin=not options["no_admin"],
    )
    try:
        asyncio.run(_serve(config))
    except StateError as error:
        raise click.ClickException(str(error)) from error


def _keys(given: tuple[str, ...]) -> tuple[ApiKey, ...]:
    keys = []
    for number, text in enumerate(given, 1):
        key, separator, organization = text.partition("=")
        if not (key and separator and organization):
            raise click.UsageError(f"--api-key number {number} must look like KEY=ORGANISATION")
        keys.append(ApiKey(key, organization, f"key-{number}"))
    return tuple(keys)


async def _serve(config: SimulatorConfig) -> None:
    from issuesandbox.local.daytona.server import Simulator

    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end.set)
    async with Simulator(config) as simulator:
        click.echo(f"Daytona simulator: DAYTONA_API_URL={simulator.url}")
        await end.wait()


if __name__ == "__main__":
    daytona()
