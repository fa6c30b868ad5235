"""The inside of a sandbox: a private folder and real processes in it.

Nothing exists until the first toolbox call: a sandbox that runs nothing costs neither a folder nor
a process. Files survive a stop, processes and sessions do not.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from issuesandbox.local.daytona.errors import EmptyAnswer
from issuesandbox.local.daytona.journal import Journal
from issuesandbox.local.daytona.model import Sandbox, SandboxId
from issuesandbox.local.daytona.processes import (
    SANDBOX_VARIABLE,
    Reaper,
    freeze,
    kill_all,
    members,
    send,
)
from issuesandbox.local.processes import MARKER

if TYPE_CHECKING:
    from issuesandbox.local.daytona.sessions import Session

T = TypeVar("T")


def find_shell() -> str:
    """Return the shell that commands run in: the daemon's order of preference."""
    for candidate in ("zsh", "bash", os.environ.get("SHELL", "sh")):
        found = shutil.which(candidate)
        if found:
            return found
    return "/bin/sh"


def kill_group(process: Process) -> None:
    """Kill a process and what shares its process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Machine:
    """One sandbox between two power cuts: its folder, environment, processes and sessions."""

    def __init__(self, sandbox: Sandbox, folder: Path, journal: Journal) -> None:
        self.id = sandbox.id
        self.folder = folder
        self.home = folder / "home"
        self.shell = find_shell()
        self.sessions: dict[str, Session] = {}
        # Set when the power goes; nothing starts any more, nobody gets an answer.
        self.ended = False
        self._env = dict(sandbox.env)
        self._journal = journal
        self._kept: set[asyncio.Task[Any]] = set()
        for part in (self.home, folder / "tmp"):
            part.mkdir(parents=True, exist_ok=True)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return a clean environment for a process of this sandbox."""
        clean = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "SHELL": self.shell,
            "LANG": "C.UTF-8",
            **self._env,
            **(more or {}),
            SANDBOX_VARIABLE: self.id,
        }
        if MARKER in os.environ:
            clean[MARKER] = os.environ[MARKER]
        return clean

    def path(self, given: str | None) -> Path:
        """Return the absolute path that a caller means; relative ones start at home."""
        return self.home / (given or "")

    def owns(self, path: Path) -> bool:
        """Say whether a path, all links followed, lies in this sandbox's folder."""
        return path.resolve().is_relative_to(self.folder)

    async def spawn(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        output: int = PIPE,
        errors: int = STDOUT,
    ) -> Process:
        """Start a process in its own session, with a pipe for its input."""
        if self.ended:
            raise EmptyAnswer(502)
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=output,
            stderr=errors,
            cwd=cwd or self.home,
            env=self.environment(env),
            start_new_session=True,
        )
        self._journal.write("process", sandbox=self.id, event="started", pid=process.pid)
        return process

    async def spawn_shell(self) -> Process:
        """Start the shell of a session; only its input is connected."""
        return await self.spawn([self.shell], output=DEVNULL, errors=DEVNULL)

    def keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something that goes on when nobody waits for it any more."""
        task = asyncio.ensure_future(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task

    async def finish(self) -> None:
        """Wait for what was kept running; its processes are dead by now."""
        await asyncio.gather(*self._kept, return_exceptions=True)

    async def forget_sessions(self) -> None:
        """Lose all sessions, as a restart of the daemon does; what they started runs on."""
        sessions, self.sessions = list(self.sessions.values()), {}
        for session in sessions:
            await session.lose()


class Machines:
    """All machines that are in use; they belong to rows of the same id."""

    def __init__(self, root: Path, journal: Journal) -> None:
        self._root = root.resolve()
        self._journal = journal
        self._machines: dict[SandboxId, Machine] = {}
        self._reaper = Reaper(self._root)

    async def open(self) -> None:
        """Make the folder and end what an earlier simulator left running in it."""
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        left = {SandboxId(name) for name in os.listdir(self._root)}
        if left:
            await asyncio.to_thread(kill_all, self._root, left)

    def of(self, sandbox: Sandbox) -> Machine:
        """Return the machine of a sandbox, made on first use."""
        machine = self._machines.get(sandbox.id)
        if machine is None:
            machine = Machine(sandbox, self._root / sandbox.id, self._journal)
            self._machines[sandbox.id] = machine
        return machine

    async def off(self, sandbox: SandboxId) -> None:
        """End every process of a sandbox; its files stay."""
        machine = self._machines.get(sandbox)
        if machine is None:
            return
        machine.ended = True
        await machine.forget_sessions()
        await self._reaper.kill(sandbox)
        await machine.finish()
        self._machines.pop(sandbox, None)
        self._journal.write("process", sandbox=sandbox, event="killed")

    async def terminate(self, sandbox: SandboxId) -> None:
        """Ask every process of a sandbox to end."""
        if sandbox in self._machines:
            await asyncio.to_thread(send, self._root, {sandbox}, signal.SIGTERM)

    async def pause(self, sandbox: SandboxId) -> None:
        """Freeze every process of a sandbox."""
        if sandbox in self._machines:
            await asyncio.to_thread(freeze, self._root, {sandbox})

    async def resume(self, sandbox: SandboxId) -> None:
        """Let frozen processes go on."""
        if sandbox in self._machines:
            await asyncio.to_thread(send, self._root, {sandbox}, signal.SIGCONT)

    async def discard(self, sandbox: SandboxId) -> None:
        """End every process of a sandbox and remove its folder."""
        await self.off(sandbox)
        folder = self._root / sandbox
        if folder.exists():
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def process_ids(self) -> dict[SandboxId, list[int]]:
        """Return the ids of all processes that run in any sandbox, by sandbox."""
        if not self._machines:
            return {}
        found = await asyncio.to_thread(members, self._root, set(self._machines))
        return {owner: [process.pid for process in each] for owner, each in found.items()}

    async def close(self) -> None:
        """End every process of every sandbox."""
        machines = list(self._machines.values())
        for machine in machines:
            machine.ended = True
            await machine.forget_sessions()
        if machines:
            await asyncio.to_thread(kill_all, self._root, set(self._machines))
        for machine in machines:
            await machine.finish()
