"""Shows long work: a bar on a terminal, a line every ten seconds elsewhere.

Knows nothing of the work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from issuesandbox.clock import Clock, SystemClock

LINE_SECONDS = 10.0


class Bar(Protocol):
    """How far one piece of work is."""

    def update(self, done: int) -> None:
        """Show how much is done; call it often, also when nothing changed."""
        ...


class Reporter:
    """Tells a person on standard error what happens and how far it is."""

    def __init__(self, console: Console | None = None, clock: Clock | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock or SystemClock()

    def say(self, line: str) -> None:
        """Print one line as it is."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Bar]:
        """Show the progress of the work in a block."""
        if not self._console.is_terminal:
            yield _Lines(self, title, f"of {total} {unit}", self._clock)
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(unit),
            TimeElapsedColumn(),
        )
        # What goes to a pipe meanwhile must not end up beside the bar.
        on_screen = sys.stdout.isatty()
        with Progress(
            *columns, console=self._console, transient=True, redirect_stdout=on_screen
        ) as progress:
            yield _RichBar(progress, progress.add_task(title, total=total))


class _RichBar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def update(self, done: int) -> None:
        self._progress.update(self._task, completed=done)


class _Lines:
    def __init__(self, reporter: Reporter, title: str, rest: str, clock: Clock) -> None:
        self._reporter, self._clock = reporter, clock
        self._title, self._rest = title, rest
        self._next = clock.monotonic() + LINE_SECONDS

    def update(self, done: int) -> None:
        if self._clock.monotonic() >= self._next:
            self._next += LINE_SECONDS
            self._reporter.say(f"{self._title}: {done} {self._rest}")
