"""The command `issuesandbox local agent`: the scripted agent for people who want to try it by hand.

Every argument goes to the program untouched, `--` and `--help` included.
"""

from __future__ import annotations

import sys

import click


class _PassThrough(click.Command):
    """A command that leaves its whole command line to the program behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args


@click.command("agent", cls=_PassThrough, short_help="Speak like the claude CLI, by a script.")
@click.pass_context
def agent(ctx: click.Context) -> None:
    """Run the scripted agent with the arguments of the real one."""
    from issuesandbox.local.agent.scripted.program import main

    sys.exit(main(ctx.args))
