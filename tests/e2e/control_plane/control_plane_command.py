"""Runs `control-plane` as a user does: as a process with signals, output and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

PROGRAM = "from issuesandbox.local.control_plane.cli import control_plane; control_plane()"


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for a condition; fail when the time is over."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)


def processes_about(path: Path) -> list[str]:
    """Return the command lines of all live processes that work with a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                found += [line] if str(path) in line else []
        except psutil.Error:
            continue
    return found


@dataclass
class Command:
    """One run of the command."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, *args: str | Path, **environment: str) -> Command:
        return cls(
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *map(str, args)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, **environment},
            )
        )

    def kubeconfig(self) -> Path:
        """Wait until it is ready and return what it told to export."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("export KUBECONFIG="), self.end()
        return Path(line.partition("=")[2])

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Send a signal, if one is given, and return the exit code and standard error."""
        if number is not None:
            self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors
