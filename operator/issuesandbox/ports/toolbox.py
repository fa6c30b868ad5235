"""The inside of one sandbox, as a run needs it: commands, files and a clone.

Failures are the seven kinds of `ports.errors`. A call that was cut off may have taken effect,
and a toolbox that answers "unauthorized" or "not found" proves nothing about the sandbox: only
the control plane does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

TOO_SLOW: Final = "CommandTimeout"
"""The code of the failure of a command that was ended because it took too long."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What a command left behind."""

    exit_code: int
    output: str


@dataclass(frozen=True, slots=True, repr=False)
class Clone:
    """What to clone and where to; the credential is used for this one call and kept nowhere."""

    url: str
    path: str
    branch: str | None = None
    commit: str | None = None
    """Checked out instead of the branch's tip; it must be in the branch's history."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)


class Toolbox(Protocol):
    """Calls into a running sandbox, each bounded in time."""

    async def home(self, sandbox_id: str) -> str:
        """Return the absolute home directory; the cheapest sign that the toolbox answers."""
        ...

    async def execute(
        self,
        sandbox_id: str,
        command: str,
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Executed:
        """Run a shell command to its end; `env` is of this command alone."""
        ...

    async def upload(self, sandbox_id: str, files: Mapping[str, bytes]) -> None:
        """Write files at absolute paths, folders included."""
        ...

    async def download(self, sandbox_id: str, path: str, *, limit: int) -> bytes:
        """Return a file's bytes; more than `limit` is `Invalid`, a missing file `NotFound`."""
        ...

    async def clone(self, sandbox_id: str, clone: Clone, *, seconds: float) -> None:
        """Clone one branch; `NotFound` no such repository or branch, `Conflict` path is taken."""
        ...
