"""Where a local world keeps its things, and who holds it. Knows no process but its holder."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import issuesandbox
from issuesandbox.local.folder_lock import LockedError, lock_folder
from issuesandbox.local.world.errors import WorldError

NAMESPACE = "issuesandbox-system"
SERVICE_ACCOUNT = "issuesandbox-operator"
WEBHOOK_ACCOUNT = "issuesandbox-webhook"


@dataclass(frozen=True, slots=True)
class Layout:
    """The folder of one world."""

    root: Path

    @property
    def control_plane(self) -> Path:
        """Return the folder of the API server and etcd."""
        return self.root / "control-plane"

    @property
    def daytona(self) -> Path:
        """Return the folder of the Daytona simulator."""
        return self.root / "daytona"

    @property
    def github(self) -> Path:
        """Return the folder of the GitHub simulator."""
        return self.root / "github"

    @property
    def tools(self) -> Path:
        """Return the folder of programs that every sandbox finds."""
        return self.root / "tools"

    @property
    def logs(self) -> Path:
        """Return the folder of all logs."""
        return self.root / "logs"

    @property
    def environment(self) -> Path:
        """Return the file that a shell inside the world reads."""
        return self.root / "environment"

    def read_environment(self) -> dict[str, str]:
        """Return what a shell inside the world gets to know."""
        try:
            pairs = (
                line.removeprefix("export ").partition("=")
                for line in self.environment.read_text().splitlines()
            )
            return {name: shlex.split(value)[0] for name, _, value in pairs}
        except (OSError, ValueError, IndexError):
            raise WorldError(
                f"{self.environment} is missing or damaged; `make down` and `make up` write it anew"
            ) from None

    def hold(self) -> int:
        """Take the world for this process and return the lock; refuse if another one has it."""
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            return lock_folder(self.root)
        except LockedError as error:
            raise WorldError(
                f"a world already runs in {self.root} (process {error.owner}); "
                "stop it with `make down`, or choose another --dir"
            ) from None
        except OSError as error:
            raise WorldError(
                f"cannot write to {self.root} ({error.strerror}); choose another --dir"
            ) from None

    def holder(self) -> int | None:
        """Return the process that runs this world, or None if nobody does."""
        if not (self.root / "lock").exists():
            return None
        try:
            os.close(lock_folder(self.root))
        except LockedError as error:
            return error.owner
        except OSError as error:
            raise WorldError(f"cannot look into {self.root} ({error.strerror})") from None
        return None


def manifests() -> Path:
    """Return the folder of the manifests: in the wheel beside the code, else in the tree."""
    package = Path(issuesandbox.__file__).parent
    shipped = package / "manifests"
    return shipped if shipped.is_dir() else package.parents[1] / "manifests"
