"""Child processes that never outlive the world that started them.

Three ties, each for a case the others miss: `stop` ends one child politely, the kernel's
parent-death signal ends direct children when the parent is killed (Linux), and a leash, a watcher
process that sees the parent's end of a pipe close, sweeps up everything the world ever started,
also what went into a session of its own. Knows nothing of what the children are.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import click

MARKER = "ISSUESANDBOX_WORLD"

_HERE = Path(__file__).parent
_POLL_SECONDS = 0.05


class LeftoverError(click.ClickException):
    """Some process of a world could not be ended."""


class Leash:
    """Ends every process of one world when this process ends, however it ends."""

    def __init__(self, marker: str, watcher: subprocess.Popen[bytes], rope: IO[bytes]) -> None:
        self._marker = marker
        self._watcher = watcher
        self._rope = rope

    @classmethod
    def attach(cls, state: Path, *, hold: Sequence[int] = ()) -> Self:
        """Start the watcher of a world that lives in `state`.

        The watcher keeps the file descriptors in `hold` open until its sweep is over: a lock among
        them stays locked until the last process of the world is gone.
        """
        marker = secrets.token_hex(8)
        environment = {name: value for name, value in os.environ.items() if name != MARKER}
        # -P: the folder of the script must not come first in the module path.
        program = [sys.executable, "-P", str(_HERE / "leash_watcher.py")]
        watcher = subprocess.Popen(
            [*program, f"{MARKER}={marker}", str(state.resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd="/",
            pass_fds=hold,
            start_new_session=True,
        )
        assert watcher.stdin is not None
        assert watcher.stdout is not None
        with watcher.stdout:
            if not watcher.stdout.readline():
                watcher.stdin.close()
                raise LeftoverError(f"the process watcher ended at once with {watcher.wait()}")
        return cls(marker, watcher, watcher.stdin)

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return `base` (default: this process's environment) with the world's marker in it."""
        return {**(os.environ if base is None else base), MARKER: self._marker}

    async def release(self) -> None:
        """Sweep up what is left of the world and end the watcher."""
        self._rope.close()
        if await _exit_of(self._watcher) != 0:
            raise LeftoverError("a process could not be killed; look for it with ps")


@dataclass(frozen=True, eq=False)
class Child:
    """A running program with its own session and log file."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal, or None while it runs."""
        return self.process.poll()

    async def wait(self) -> int:
        """Wait until it ends and return its exit code."""
        return await _exit_of(self.process)

    async def stop(self, grace: float = 10.0) -> int:
        """Ask it to end; after `grace` seconds kill it and all of its process group."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                self.process.terminate()
                return await self.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return await self.wait()

    def last_lines(self, count: int = 5) -> list[str]:
        """Return the end of its log, for error messages."""
        with suppress(OSError):
            return self.log.read_text(errors="replace").splitlines()[-count:]
        return []


def spawn(
    name: str,
    command: Sequence[str],
    *,
    leash: Leash,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Child:
    """Start a program on the leash, its output appended to `log`.

    Call it from a thread that lives as long as the child: on Linux the parent-death signal comes
    when the thread ends that started the child, not the process.
    """
    tie = [sys.executable, "-I", "-S", str(_HERE / "tied_exec.py"), str(os.getpid())]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*tie, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=leash.environment(env),
            cwd=cwd,
            start_new_session=True,
        )
    return Child(name, log, process)


async def _exit_of(process: subprocess.Popen[bytes]) -> int:
    # Polling, not asyncio's subprocess: a child must be able to outlive the loop that started it.
    while (code := process.poll()) is None:
        await asyncio.sleep(_POLL_SECONDS)
    return code
