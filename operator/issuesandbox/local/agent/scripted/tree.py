"""Ends what this process started, however it tries to hide from signals.

Knows the process table, not why anything runs. A child whose parent has ended is no descendant
any more: like with the real CLI, an earlier `nohup cmd &` survives.
"""

from __future__ import annotations

import os
import signal


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
    for name in os.listdir("/proc"):
        parent = _living_parent(name) if name.isdigit() else None
        if parent is not None:
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def _living_parent(pid: str) -> int | None:
    """Return a process's parent, None for one that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, spaces and parentheses included.
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state == b"Z" else int(parent)
