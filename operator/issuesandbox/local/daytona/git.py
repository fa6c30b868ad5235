"""Real git in a sandbox, run as a child process, and its complaints in the daemon's words.

Credentials reach git through its environment for one command and one address: they are neither
arguments, nor stored in the clone.
"""

from __future__ import annotations

import base64
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from issuesandbox.local.daytona.errors import EmptyAnswer, ToolboxError
from issuesandbox.local.daytona.machine import Machine

# Words of git, the status and code they mean. The first match wins.
_COMPLAINTS = (
    ("remote branch", 404, "GIT_BRANCH_NOT_FOUND"),
    ("couldn't find remote ref", 404, "GIT_BRANCH_NOT_FOUND"),
    ("did not match any file(s) known", 404, "GIT_BRANCH_NOT_FOUND"),
    ("authentication failed", 401, "GIT_AUTH_FAILED"),
    ("could not read username", 401, "GIT_AUTH_FAILED"),
    ("returned error: 403", 403, "GIT_AUTH_FAILED"),
    ("returned error: 404", 404, "GIT_REPO_NOT_FOUND"),
    ("repository not found", 404, "GIT_REPO_NOT_FOUND"),
    ("' not found", 404, "GIT_REPO_NOT_FOUND"),
    ("does not exist", 404, "GIT_REPO_NOT_FOUND"),
    ("does not appear to be a git repository", 404, "GIT_REPO_NOT_FOUND"),
    ("not a git repository", 404, "GIT_REPO_NOT_FOUND"),
    ("already exists and is not an empty", 409, "CONFLICT"),
    ("a branch named", 409, "GIT_BRANCH_EXISTS"),
    ("would be overwritten", 409, "GIT_DIRTY_WORKTREE"),
    ("non-fast-forward", 409, "GIT_PUSH_REJECTED"),
    ("fetch first", 409, "GIT_PUSH_REJECTED"),
    ("conflict", 409, "GIT_MERGE_CONFLICT"),
    ("remote rejected", 422, "GIT_REMOTE_REJECTED"),
    ("could not resolve host", 502, "GIT_TRANSPORT_FAILED"),
    ("failed to connect", 502, "GIT_TRANSPORT_FAILED"),
    ("unable to access", 502, "GIT_TRANSPORT_FAILED"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and password for one remote; used only if both are given."""

    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def environment(self, url: str) -> dict[str, str]:
        """Return the variables that make git send them to this address alone."""
        if not self.username or not self.password or urlsplit(url).scheme not in ("http", "https"):
            return {}
        token = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {token}",
        }


async def run_git(
    machine: Machine,
    arguments: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run git and return what it printed; a failure becomes the daemon's error."""
    environment = {**_ENVIRONMENT, **(env or {})}
    # The daemon's git is a part of it, whatever the PATH of the sandbox names.
    command = [shutil.which("git") or "git", *arguments]
    try:
        process = await machine.spawn(command, cwd=cwd, env=environment, errors=PIPE)
    except (FileNotFoundError, NotADirectoryError) as error:
        text = f"repository does not exist: {cwd}"
        raise ToolboxError(404, text, code="GIT_REPO_NOT_FOUND") from error
    output, errors = await machine.keep(process.communicate())
    if machine.ended:
        raise EmptyAnswer(502)
    if process.returncode != 0:
        raise complaint(f"{errors.decode(errors='replace')}{output.decode(errors='replace')}")
    return output.decode(errors="replace")


def complaint(text: str) -> ToolboxError:
    """Return the daemon's error for what git said."""
    lines = [line for line in text.strip().splitlines() if not line.startswith("Cloning into")]
    message = lines[-1] if lines else "git failed"
    lowered = text.lower()
    for words, status, code in _COMPLAINTS:
        if words in lowered:
            return ToolboxError(status, message, code=code)
    return ToolboxError(500, message)
