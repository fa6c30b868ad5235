"""Locks on folders that one process at a time may use; the kernel frees them when it dies.

Knows nothing of what the folders hold. A lock is a file descriptor: a watcher that inherits it
keeps the folder locked until it is done too.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class LockedError(Exception):
    """The folder is in use; `owner` is the process that took it, if it said so."""

    def __init__(self, owner: int | None) -> None:
        super().__init__(f"locked by process {owner or 'unknown'}")
        self.owner = owner


def lock_folder(folder: Path) -> int:
    """Lock an existing folder and return the descriptor to close; raise `LockedError` if taken."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 20, 0).decode(errors="replace")
        os.close(descriptor)
        raise LockedError(int(owner) if owner.isdigit() else None) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
