"""Binaries that were downloaded or built before, and the one workshop where more are made.

A binary appears in the cache complete or not at all; a second process waits instead of building
twice. Knows nothing of how binaries are made.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from issuesandbox.local.control_plane.binaries import MODULE
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.progress import Reporter
from issuesandbox.local.folder_lock import LockedError, lock_folder

_WORKSHOP = ".work-"
_POLL_SECONDS = 0.2


def cache_root(environment: Mapping[str, str]) -> Path:
    """Return the folder of all cached binaries."""
    base = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME", "/")) / ".cache"
    return Path(base) / "issuesandbox" / "control-plane"


def cache_key(go_version: str, platform: str) -> str:
    """Return what changes with everything a build depends on."""
    digest = hashlib.sha256()
    for part in (
        (MODULE / "go.mod").read_bytes(),
        (MODULE / "go.sum").read_bytes(),
        go_version.encode(),
        platform.encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Workshop:
    """A temporary folder that only the holder of the cache's lock has."""

    path: Path
    lock: int


class Cache:
    """The binaries of one key."""

    def __init__(self, root: Path, key: str) -> None:
        self.root = root
        self.folder = root / key

    def binary(self, name: str) -> Path | None:
        """Return a cached binary."""
        path = self.folder / name
        return path if os.access(path, os.X_OK) else None

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those of the names that are not cached."""
        return [name for name in names if self.binary(name) is None]

    def keep(self, files: Iterable[Path]) -> None:
        """Move complete binaries from the workshop into the cache."""
        self.folder.mkdir(exist_ok=True)
        for file in files:
            file.replace(self.folder / file.name)

    @asynccontextmanager
    async def workshop(self, reporter: Reporter) -> AsyncIterator[Workshop]:
        """Give the one place where binaries are made; wait while another process has it."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = await self._lock(reporter)
        except OSError as error:
            raise unwritable(self.root, error) from error
        try:
            for left in self.root.glob(f"{_WORKSHOP}*"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix=_WORKSHOP, dir=self.root) as path:
                yield Workshop(Path(path), lock)
        finally:
            os.close(lock)

    async def _lock(self, reporter: Reporter) -> int:
        said = False
        while True:
            try:
                return lock_folder(self.root)
            except LockedError as error:
                if not said:
                    reporter.say(f"waiting for process {error.owner}, which gets the same binaries")
                    said = True
                await asyncio.sleep(_POLL_SECONDS)


def unwritable(root: Path, error: OSError) -> ControlPlaneError:
    """Return the error for a cache that cannot be written."""
    return ControlPlaneError(
        f"cannot write to the cache {root}: {error.strerror}; "
        "set XDG_CACHE_HOME to a folder that you may write"
    )
