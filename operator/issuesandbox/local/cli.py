"""`issuesandbox local …`: the world on one machine, whole or in parts."""

from __future__ import annotations

import click

from issuesandbox.lazy_commands import Lazy, LazyGroup

_WORLD = "issuesandbox.local.world.cli"
_COMMANDS = {
    "up": Lazy(_WORLD, "up", "Start the whole world and tell its story."),
    "down": Lazy(_WORLD, "down", "Stop a world that runs elsewhere."),
    "shell": Lazy(_WORLD, "shell", "Open a shell inside a running world."),
    "soak": Lazy(_WORLD, "soak", "Kill operators while people work."),
    "demo": Lazy(_WORLD, "demo", "Show one sandbox's life from start to end."),
    "control-plane": Lazy(
        "issuesandbox.local.control_plane.cli", "control_plane", "A real API server and etcd."
    ),
    "daytona": Lazy("issuesandbox.local.daytona.cli", "daytona", "A simulated Daytona."),
    "github": Lazy("issuesandbox.local.github.cli", "github", "A simulated GitHub."),
    "send": Lazy("issuesandbox.local.send", "send", "Send a signed sample event by hand."),
    "agent": Lazy("issuesandbox.local.agent.cli", "agent", "A scripted coding agent."),
}


@click.command(cls=LazyGroup, table=_COMMANDS)
def local() -> None:
    """The world on one machine: no account, no Docker, nothing to pay."""
