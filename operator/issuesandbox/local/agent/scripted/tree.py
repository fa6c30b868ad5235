"""Ends what this process started, however it tries to hide from signals.

Knows the process table, not why anything runs. A child whose parent has ended is no descendant
any more: like with the real CLI, an earlier `nohup cmd &` survives.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

_OWN = "/proc/self/stat"


def kill_descendants() -> None:
    """Kill every descendant with SIGKILL, until none is left that could fork another."""
    for _ in range(20):
        alive = _descendants(os.getpid())
        if not alive:
            return
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _by_kernel() if os.path.exists(_OWN) else _by_ps():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _by_kernel() -> Iterator[tuple[int, int]]:
    """Yield every process that has not ended, and its parent, as Linux shows them."""
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(name)}/stat", "rb") as file:
                # The name in parentheses may hold anything, spaces and parentheses included.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # no process, or one that ended meanwhile
        if state != b"Z":
            yield int(name), int(parent)


def _by_ps() -> Iterator[tuple[int, int]]:
    """Yield the same where there is no /proc, on macOS for one."""
    command = ["ps", "-A", "-o", "pid=,ppid=,state="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:
        told, _ = listing.communicate()
    for line in told.splitlines():
        pid, parent, state = line.split()
        # It sees itself, and is gone by now.
        if not state.startswith("Z") and int(pid) != listing.pid:
            yield int(pid), int(parent)
