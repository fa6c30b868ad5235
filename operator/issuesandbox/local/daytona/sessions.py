"""Sessions of a sandbox: one live shell each, and commands that run in it one after the other.

A command is sourced by the session's shell, so that it can change the shell's directory and
variables, and so that a top-level `exit` ends the session without ever reporting a code. Output,
errors and exit code come through named pipes; every line of output goes into one log, marked with
the stream it came from.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import uuid
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from issuesandbox.local.daytona.errors import ToolboxError
from issuesandbox.local.daytona.machine import Machine, kill_group

STDOUT_MARK = b"\x01\x01\x01"
STDERR_MARK = b"\x02\x02\x02"

_GRACE_SECONDS = 5.0
# A background process may hold the output open; the exit code does not wait for it longer.
_DRAIN_SECONDS = 1.0
# The end of the shell leaves at most what is already in the pipes.
_LAST_WORDS_SECONDS = 0.1


class _Stream(asyncio.Protocol):
    """Takes what comes through a named pipe until its last writer is gone."""

    def __init__(self) -> None:
        self.closed = asyncio.get_running_loop().create_future()
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        """Keep what came."""
        self.rest += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end."""
        if not self.closed.done():
            self.closed.set_result(None)


class _MarkedStream(_Stream):
    """Appends each line to a log, with the mark of the stream in front."""

    def __init__(self, log: Path, mark: bytes) -> None:
        super().__init__()
        self._log = log
        self._mark = mark

    def data_received(self, data: bytes) -> None:
        """Write the lines that are complete."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        append(self._log, self._mark, lines)

    def connection_lost(self, exc: Exception | None) -> None:
        """Write the line that never got its end; the log always ends one."""
        if self.rest:
            append(self._log, self._mark, [self.rest])
        super().connection_lost(exc)


def append(log: Path, mark: bytes, lines: list[bytes]) -> None:
    """Write marked lines; a log that was removed meanwhile is nobody's concern."""
    with suppress(FileNotFoundError), log.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b"".join(mark + line + b"\n" for line in lines))


@dataclass(slots=True, eq=False)
class Command:
    """One command of a session."""

    id: str
    text: str
    folder: Path
    # Our end of its standard input, open from the start: the shell may not have got there yet.
    input: int
    quiet_input: bool = False
    exit_code: int | None = None
    # Set when the exit code is known, or when it never will be.
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def log(self) -> Path:
        """The file with all marked output so far."""
        return self.folder / "output.log"

    def send(self, data: str) -> None:
        """Write to the command's standard input."""
        if self.over.is_set():
            raise ToolboxError(
                410, "command has already completed", code="COMMAND_ALREADY_COMPLETED"
            )
        try:
            os.write(self.input, data.encode())
        except BlockingIOError as error:
            raise ToolboxError(500, "the command does not read its input") from error
        if not self.quiet_input:
            append(self.log, STDOUT_MARK, data.encode().splitlines())


class Session:
    """A shell that lives until it is deleted, exits, or its sandbox stops."""

    def __init__(self, name: str, machine: Machine, shell: Process) -> None:
        self.name = name
        self.commands: dict[str, Command] = {}
        self._machine = machine
        self._shell = shell
        self._exit = machine.keep(shell.wait())

    @classmethod
    async def start(cls, name: str, machine: Machine) -> Session:
        """Start the shell of a new session."""
        return cls(name, machine, await machine.spawn_shell())

    async def run(self, text: str, *, quiet_input: bool = False) -> Command:
        """Hand a command to the shell; it runs when those before it are over."""
        if self._exit.done():
            raise ToolboxError(410, "session has ended", code="SESSION_ENDED")
        name = str(uuid.uuid4())
        folder = self._machine.folder / "sessions" / name
        folder.mkdir(parents=True)
        os.mkfifo(folder / "in")
        pipe = os.open(folder / "in", os.O_RDWR | os.O_NONBLOCK)
        command = self.commands[name] = Command(name, text, folder, pipe, quiet_input)
        command.log.touch()
        (folder / "command").write_text(f"{text}\n")
        output = await _open_pipe(folder / "out", _MarkedStream(command.log, STDOUT_MARK))
        errors = await _open_pipe(folder / "err", _MarkedStream(command.log, STDERR_MARK))
        code = await _open_pipe(folder / "code", _Stream())
        self._machine.keep(self._follow(command, output, errors, code))
        await self._tell_shell(folder)
        return command

    async def end(self) -> None:
        """End the shell and its process group: politely first, then not."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGTERM)
        await asyncio.wait([self._exit], timeout=_GRACE_SECONDS)
        kill_group(self._shell)
        await self._exit

    async def lose(self) -> None:
        """Kill the shell alone, as when the daemon dies: what it started runs on."""
        with suppress(ProcessLookupError):
            self._shell.kill()
        await self._exit

    async def _tell_shell(self, folder: Path) -> None:
        paths = {part: shlex.quote(str(folder / part)) for part in ("command", "in", "out", "err")}
        code = shlex.quote(str(folder / "code"))
        # Opened for reading and writing, the input neither ends nor blocks the shell.
        line = ". {command} <>{in} >{out} 2>{err}; echo $? >".format_map(paths) + f"{code}\n"
        assert self._shell.stdin is not None
        with suppress(ConnectionError):
            self._shell.stdin.write(line.encode())
            await self._shell.stdin.drain()

    async def _follow(
        self,
        command: Command,
        output: tuple[asyncio.BaseTransport, _Stream],
        errors: tuple[asyncio.BaseTransport, _Stream],
        code: tuple[asyncio.BaseTransport, _Stream],
    ) -> None:
        try:
            await asyncio.wait([code[1].closed, self._exit], return_when=asyncio.FIRST_COMPLETED)
            ends = [stream.closed for _, stream in (output, errors, code)]
            patience = _DRAIN_SECONDS if code[1].closed.done() else _LAST_WORDS_SECONDS
            await asyncio.wait(ends, timeout=patience)
            if code[1].rest:
                command.exit_code = int(code[1].rest)
        finally:
            for transport, _ in (output, errors, code):
                transport.close()
            command.over.set()
            os.close(command.input)


async def _open_pipe(path: Path, stream: _Stream) -> tuple[asyncio.BaseTransport, _Stream]:
    os.mkfifo(path)
    # Without O_NONBLOCK the open would wait for a writer.
    pipe = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: stream, pipe)
    return transport, stream
