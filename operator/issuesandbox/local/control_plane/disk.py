"""How much room a build needs, and whether it is there.

Knows folders only; one that does not exist yet counts as its nearest parent.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from issuesandbox.local.control_plane.errors import ControlPlaneError

# Modules 0.9 GB, Go's build cache 2.4 GB, its temporary files and the binaries 0.5 GB; rounded up.
BUILD_BYTES = 5 * 10**9


def too_little(*folders: Path) -> str | None:
    """Return what is wrong if a cold build does not fit beside what the folders hold."""
    for folder in folders:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(existing).free
        if free < BUILD_BYTES:
            return (
                f"too little disk for the build of the control plane: {folder} has "
                f"{free / 10**9:.1f} GB free, it needs {BUILD_BYTES / 10**9:.0f} GB; "
                "free some, or set KUBEBUILDER_ASSETS to a folder with kube-apiserver and etcd"
            )
    return None


def refuse_too_little(*folders: Path) -> None:
    """Refuse a build that would fill the disk."""
    if problem := too_little(*folders):
        raise ControlPlaneError(problem)
