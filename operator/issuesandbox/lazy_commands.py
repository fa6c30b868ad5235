"""A click group whose commands are imported when they are called, so that `--help` stays fast.

Knows no command itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Lazy:
    """Where a command lives and its one line of help."""

    module: str
    attribute: str
    help: str
    extra: str = "local"
    """The optional part of the package that brings what the command needs."""


class LazyGroup(click.Group):
    """A group over a table of commands that are not imported yet."""

    def __init__(self, *args: Any, table: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by its name."""
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        try:
            command: click.Command = getattr(import_module(entry.module), entry.attribute)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("issuesandbox"):
                raise
            raise click.ClickException(
                f"'{cmd_name}' needs the package {error.name}: "
                f"pip install 'issuesandbox[{entry.extra}]'"
            ) from error
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a name that is almost right is answered with the right one."""
        close = get_close_matches(args[0], self._table, 1)
        if close and args[0] not in self._table:
            ctx.fail(f"No such command '{args[0]}'; did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._table.items()])
