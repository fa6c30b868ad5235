"""`kubectl isb …`: what people type. Acts with the caller's own kubeconfig and rights.

Each verb imports what it needs when it runs. Knows no rule of the operator: a verb says what is
wanted, and the operator does it.
"""

from __future__ import annotations

import signal
import sys

import click

from issuesandbox.entry.plugin.which_cluster import cluster_options
from issuesandbox.lazy_commands import Lazy, LazyGroup

_HERE = "issuesandbox.entry.plugin"

_COMMANDS = {
    "list": Lazy(f"{_HERE}.listing", "list_resources", "List resources; -w shows them live."),
    "status": Lazy(f"{_HERE}.status", "status", "Show one resource in full."),
    "why": Lazy(f"{_HERE}.why", "why", "Say what a resource waits for."),
    "logs": Lazy(f"{_HERE}.logs", "logs", "Print what the agent prints; -f follows it."),
    "transcript": Lazy(f"{_HERE}.transcript", "transcript", "Print what the agent did."),
    "usage": Lazy(f"{_HERE}.usage", "usage", "Show time, tokens and cost."),
    "run": Lazy(f"{_HERE}.acts", "run", "Start a run, also for an issue nobody knows yet."),
    "stop": Lazy(f"{_HERE}.acts", "stop", "End the run and stop the sandbox."),
    "retry": Lazy(f"{_HERE}.acts", "retry", "Run again what did not succeed."),
    "continue": Lazy(f"{_HERE}.acts", "continue_run", "Send the agent a follow-up."),
    "pause": Lazy(f"{_HERE}.marks", "pause", "Let the operator leave a resource alone."),
    "resume": Lazy(f"{_HERE}.marks", "resume", "End a pause."),
    "keep": Lazy(f"{_HERE}.marks", "keep", "Keep a finished resource from being deleted."),
    "cleanup": Lazy(f"{_HERE}.removal", "cleanup", "Delete finished resources by label."),
    "demo-issue": Lazy(
        "issuesandbox.local.world.demo_issue", "demo_issue", "Open an issue in the local world."
    ),
    "orphans": Lazy(f"{_HERE}.orphans", "orphans", "Show sandboxes that nobody owns."),
    "freeze": Lazy(f"{_HERE}.freeze", "freeze", "Stop the operator from changing anything."),
    "unfreeze": Lazy(f"{_HERE}.freeze", "unfreeze", "Let the operator go on."),
    "doctor": Lazy(f"{_HERE}.doctor", "doctor", "Check the installation, with a fix for each."),
    "verify": Lazy(f"{_HERE}.verify", "verify", "Check a step of the manual test."),
    "uninstall": Lazy(
        f"{_HERE}.removal", "uninstall", "Delete all resources, and say how to go on."
    ),
}


class _Verbs(LazyGroup):
    """The verbs, each with kubectl's own options for which cluster is meant."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; kubectl hands over only what stands behind the plugin's name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not any(each.name == "kubeconfig" for each in command.params):
            command.params += cluster_options()
        return command


@click.command(cls=_Verbs, table=_COMMANDS)
@click.version_option(package_name="issuesandbox", prog_name="kubectl isb")
def plugin() -> None:
    """Look after IssueSandbox resources.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such resource.
    """


def main() -> None:
    """Run the plugin under the name kubectl calls it by."""
    try:
        plugin(prog_name="kubectl isb", args=sys.argv[1:])
    finally:
        # A Ctrl-C may come twice, to the group and to the process: the end is not interrupted.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
