"""Finds and signals every process that belongs to a sandbox, wherever it has hidden.

A process belongs to a sandbox if its environment carries the sandbox's id (real Daytona sets the
same variable) or if it works inside the sandbox's folder. New sessions and double forks do not
help it. All functions block: they read the machine's process table.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from issuesandbox.local.daytona.model import SandboxId

SANDBOX_VARIABLE = "DAYTONA_SANDBOX_ID"
_LOOKS = 200
_PAUSE_SECONDS = 0.02


def members(root: Path, sandboxes: Container[SandboxId]) -> dict[SandboxId, list[psutil.Process]]:
    """Return the processes of these sandboxes, whose folders lie in `root` under their ids."""
    found: defaultdict[SandboxId, list[psutil.Process]] = defaultdict(list)
    me = psutil.Process().pid
    for process in psutil.process_iter():
        owner = _owner(process, root) if process.pid != me else None
        if owner is not None and owner in sandboxes:
            found[owner].append(process)
    return dict(found)


def _owner(process: psutil.Process, root: Path) -> SandboxId | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        marker = process.environ().get(SANDBOX_VARIABLE)
        if marker is not None:
            return SandboxId(marker)
        if process.terminal() is not None:
            return None  # a person who looks around in the folder
        where = Path(process.cwd())
    except (psutil.Error, OSError):
        return None
    if not where.is_relative_to(root) or where == root:
        return None
    return SandboxId(where.relative_to(root).parts[0])


def kill_all(root: Path, sandboxes: Container[SandboxId]) -> None:
    """Kill the processes of these sandboxes until two looks in a row find none."""
    clean_looks = 0
    for _ in range(_LOOKS):
        found = list(_each(root, sandboxes))
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        clean_looks = 0 if found else clean_looks + 1
        if clean_looks == 2:
            return
        if found:
            time.sleep(_PAUSE_SECONDS)


def send(root: Path, sandboxes: Container[SandboxId], number: signal.Signals) -> None:
    """Send one signal to every process of these sandboxes."""
    for process in _each(root, sandboxes):
        with suppress(psutil.Error):
            process.send_signal(number)


def freeze(root: Path, sandboxes: Container[SandboxId]) -> None:
    """Stop every process of these sandboxes until none of them runs any more."""
    for _ in range(_LOOKS):
        running = [process for process in _each(root, sandboxes) if not _frozen(process)]
        if not running:
            return
        for process in running:
            with suppress(psutil.Error):
                process.suspend()
        time.sleep(_PAUSE_SECONDS)


def _each(root: Path, sandboxes: Container[SandboxId]) -> Iterator[psutil.Process]:
    for processes in members(root, sandboxes).values():
        yield from processes


def _frozen(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return True


class Reaper:
    """Kills the processes of many sandboxes with few looks at the process table."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._wanted: set[SandboxId] = set()
        self._lock = asyncio.Lock()

    async def kill(self, sandbox: SandboxId) -> None:
        """Kill every process of one sandbox; calls that come together share the work."""
        self._wanted.add(sandbox)
        async with self._lock:
            # An earlier round may have taken this sandbox along.
            if sandbox in self._wanted:
                batch, self._wanted = self._wanted, set()
                await asyncio.to_thread(kill_all, self._root, batch)
