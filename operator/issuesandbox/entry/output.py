"""How commands show many things: a table for people, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

# Where nobody watches, lines must not be folded: they are searched and cut by programs.
_UNWATCHED_WIDTH = 400


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, err: bool = False
) -> None:
    """Print rows under upper-case headers."""
    # The operator itself never prints one.
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*(name.upper() for name in columns), box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(printable, row))
    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else _UNWATCHED_WIDTH
    # What is shown comes from others: it must not be taken for formatting.
    Console(file=stream, width=width, markup=False, emoji=False, highlight=False).print(table)


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def printable(text: str) -> str:
    """Return the text without anything that could steer a terminal."""
    return "".join(each if each.isprintable() else " " for each in text)
