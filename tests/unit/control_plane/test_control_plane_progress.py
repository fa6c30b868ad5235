"""Long work shows itself."""

from __future__ import annotations

import io
from datetime import UTC, datetime

from rich.console import Console

from issuesandbox.local.control_plane.progress import Reporter


class HandClock:
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


def test_without_a_terminal_there_is_a_line_every_ten_seconds() -> None:
    output, clock = io.StringIO(), HandClock()
    with Reporter(Console(file=output), clock).bar("building", 40, "packages") as bar:
        for second in range(35):
            clock.seconds = second
            bar.update(second)
    assert output.getvalue().splitlines() == [
        "building: 10 of 40 packages",
        "building: 20 of 40 packages",
        "building: 30 of 40 packages",
    ]


def test_on_a_terminal_there_is_a_bar() -> None:
    output = io.StringIO()
    reporter = Reporter(Console(file=output, force_terminal=True, width=100))
    with reporter.bar("building", 40, "packages") as bar:
        bar.update(12)
    assert "12/40" in output.getvalue()
