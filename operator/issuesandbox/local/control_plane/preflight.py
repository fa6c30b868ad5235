"""Looks at the machine before anything is started, and names all that is missing at once.

Downloads, builds and starts nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from issuesandbox.local.control_plane.archive import UnavailableError, find_archive
from issuesandbox.local.control_plane.binaries import pinned_version
from issuesandbox.local.control_plane.cache import unwritable
from issuesandbox.local.control_plane.disk import too_little
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.gobuild import GO_NEEDED
from issuesandbox.local.control_plane.resolve import ASSETS, Resolver


async def preflight(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return every missing thing as one line that says what to do; empty if all is there."""
    surroundings = os.environ if environment is None else environment
    problems = []
    if shutil.which("git", path=surroundings.get("PATH", "")) is None:
        problems.append("git is missing; install it")
    try:
        resolver = Resolver(surroundings)
        if not resolver.is_complete():
            problems += await _before_a_build(resolver)
    except ControlPlaneError as error:
        problems.append(str(error))
    return problems


async def _before_a_build(resolver: Resolver) -> list[str]:
    problems = []
    if problem := _unwritable(resolver.cache.root):
        problems.append(problem)
    go = resolver.go
    no_room = too_little(resolver.cache.root, *go.caches) if go is not None else None
    if go is None or no_room:
        # The archive is tried first and needs neither Go nor its room.
        try:
            await find_archive(resolver.environment, pinned_version(), resolver.platform)
        except UnavailableError as error:
            problems.append(
                no_room
                or "no kube-apiserver, etcd and kubectl that fit together, and neither Go nor the "
                f"envtest archive to get them ({error}); install {GO_NEEDED}, "
                f"or set {ASSETS} to a folder with all three"
            )
    return problems


def _unwritable(root: Path) -> str | None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        probe = root / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return str(unwritable(root, error))
    return None
