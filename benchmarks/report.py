"""What a reader gets to see: the table, in the terminal and in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from meters import Spread
from rows import Row

DOCS = Path(__file__).parents[1] / "docs"
_PAGE = DOCS / "performance.md"
_BEGIN, _END = "<!-- figures: written by `make bench` -->", "<!-- end of figures -->"
_HEAD = ("scenario", "figure", "measured (spread)", "goal", "baseline", "ratio", "met")


def show(rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table(*_HEAD, box=box.SIMPLE_HEAD)
    for cells in _cells(rows):
        table.add_row(*cells)
    Console(width=160).print(table)


def write(measured: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Put the table into the page."""
    text = _PAGE.read_text()
    before, rest = text.split(_BEGIN)
    after = rest.split(_END)[1]
    _PAGE.write_text(f"{before}{_BEGIN}\n{_figures(measured, rows)}{_END}{after}")


def _figures(measured: Mapping[str, Any], rows: Sequence[Row]) -> str:
    machine = measured["machine"]
    met = [row.met for row in rows if row.met is not None]
    lines = [
        f"{sum(met)} of {len(met)} goals met, measured in {measured['seconds'] / 60:.1f} min on "
        f"{machine['cores']} cores, Python {machine['python']}, {machine['system']}. "
        f"Other programs used {machine['other_load_cores']:.2f} cores on average; load average "
        f"{machine['load_average_before']:.1f} before and {machine['load_average_after']:.1f} "
        "after.",
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{'---|' * len(_HEAD)}",
        *(f"| {' | '.join(cells)} |" for cells in _cells(rows)),
    ]
    return "\n".join(lines) + "\n"


def _cells(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    last = ""
    for row in rows:
        found.append(
            (
                row.scenario if row.scenario != last else "",
                row.figure,
                f"{_spread(row.value)} {row.unit}".rstrip(),
                row.goal,
                f"{_spread(row.baseline)} {row.unit}".rstrip() if row.baseline else "",
                f"{row.ratio:.2f} x" if row.ratio is not None else "",
                {True: "yes", False: "**no**", None: ""}[row.met],
            )
        )
        last = row.scenario
    return found


def _spread(value: Spread) -> str:
    if value.low == value.high:
        return _number(value.median)
    return f"{_number(value.median)} ({_number(value.low)}–{_number(value.high)})"  # noqa: RUF001


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
