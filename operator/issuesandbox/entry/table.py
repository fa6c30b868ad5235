"""`issuesandbox table`: the decision table as Markdown, for the documentation."""

from __future__ import annotations

import click

from issuesandbox.domain.model import Want
from issuesandbox.domain.table import TABLE, Cell


@click.command()
def table() -> None:
    """Print what the operator does for each thing seen and each thing wanted."""
    click.echo(render(), nl=False)


def render() -> str:
    """Return the decision table as a Markdown table."""
    header = ["seen", *(want.value for want in Want)]
    rows = [header, ["---"] * len(header)]
    for sight, row in TABLE.items():
        cells = [_words(row.cell(want)) for want in Want]
        rows.append([f"{sight.value} (`{sight.name}`)", *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _words(cell: Cell) -> str:
    if cell.limit is None:
        return cell.step.value
    return f"{cell.step.value}; after `{cell.limit}`: {cell.late.value}"
