"""A home folder in which the supervisor runs as it does in a sandbox, under a chosen shell."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from issuesandbox import inside
from issuesandbox.domain.collection import SYSTEM_PATH
from issuesandbox.domain.supervision import (
    SUPERVISOR,
    Limits,
    Pulse,
    RunPaths,
    RunState,
    kill_command,
    parse_pulse,
    poll_command,
    start_command,
    supervisor_sent,
    sweep_command,
)

SECRET = f"hush-{uuid.uuid4().hex}"
AMPLE = Limits(inactivity=60, agent=60, run=60)


def eventually(condition: Callable[[], Any], within: float = 15.0) -> Any:
    """Poll until a condition holds, and return what it gave."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not true within {within} s")


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@dataclass(frozen=True)
class Answer:
    """What one command line printed, and how long it took."""

    pulse: Pulse
    seconds: float


class InsideSandbox:
    """One home folder; `shell` is what `sh` means in it."""

    def __init__(self, home: Path, shell: str, tools: tuple[str, ...] | None = None) -> None:
        self.home = home
        self.bin = home / "bin"
        self.bin.mkdir(parents=True)
        if shell == "busybox":
            subprocess.run(["busybox", "--install", "-s", str(self.bin)], check=True)
            self.path = str(self.bin)
        else:
            (self.bin / "sh").symlink_to(_found(shell))
            for tool in tools or ():
                (self.bin / tool).symlink_to(_found(tool))
            self.path = str(self.bin) if tools else f"{self.bin}:{SYSTEM_PATH}"
        # Sandboxes of one machine see each other's processes: only the id keeps runs apart.
        self.mark = uuid.uuid4().hex[:12]
        self.runs = 0
        self.paths = self.next_run()
        Path(self.paths.work).mkdir()
        script = Path(self.paths.supervisor)
        script.parent.mkdir(parents=True)
        script.write_bytes(inside.script(SUPERVISOR))

    def next_run(self) -> RunPaths:
        """Turn to another run."""
        self.runs += 1
        self.paths = RunPaths(str(self.home), f"run-{self.mark}-{self.runs}")
        return self.paths

    @property
    def folder(self) -> Path:
        """Return the supervisor's folder of the present run."""
        return Path(self.paths.run)

    def spawn(self, line: str) -> subprocess.Popen[str]:
        """Send a line to a shell's standard input, as Daytona does."""
        line = line.replace(f"PATH={SYSTEM_PATH}", f"PATH={shlex.quote(self.path)}")
        process = subprocess.Popen(
            [str(self.bin / "sh")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment(),
            start_new_session=True,
        )
        assert process.stdin is not None
        process.stdin.write(f"{line}\n")
        process.stdin.close()
        process.stdin = None
        return process

    def environment(self) -> dict[str, str]:
        """Return an environment in which the supervisor's own names are taken, too."""
        return {
            "PATH": f"{self.path}:{SYSTEM_PATH}",
            "HOME": str(self.home),
            "MODEL_KEY": SECRET,
            "dir": "mine",
            "size": "mine",
            "value": "mine",
            "line": "mine",
            **supervisor_sent(),
        }

    def call(self, line: str) -> Answer:
        """Run a line to its end and read the pulse."""
        began = time.monotonic()
        output, _ = self.spawn(line).communicate(timeout=30)
        return Answer(parse_pulse(output), time.monotonic() - began)

    def start(self, script: str, limits: Limits = AMPLE, stdin: str = "/dev/null") -> Answer:
        """Start a bash script as the agent."""
        return self.call(start_command(self.paths, limits, ["/bin/bash", "-c", script], stdin))

    def poll(
        self, offset: int = 0, wait: float = 0, most: int = 1 << 20, limits: Limits | None = None
    ) -> Answer:
        """Ask for the state."""
        return self.call(poll_command(self.paths, offset, wait, most, limits))

    def stop(self) -> Answer:
        """End the agent."""
        return self.call(kill_command(self.paths))

    def sweep(self) -> Answer:
        """Kill what is left."""
        return self.call(sweep_command(self.paths))

    def until(self, state: RunState, within: float = 15.0) -> Pulse:
        """Poll until the run is in a state."""

        def look() -> Pulse | None:
            pulse = self.poll(wait=1).pulse
            return pulse if pulse.state is state else None

        found: Pulse = eventually(look, within)
        return found

    def output(self) -> bytes:
        """Read all output that is kept."""
        read, offset = b"", 0
        while True:
            pulse = self.poll(offset).pulse
            if not pulse.chunk:
                return read
            read += pulse.chunk
            offset = pulse.next_offset(offset)

    def number(self, name: str) -> int:
        """Wait for an id that the agent wrote into a file of the work tree."""
        file = Path(self.paths.work) / name
        return int(eventually(lambda: file.is_file() and file.read_text().strip()))

    def supervisor_pid(self) -> int:
        """Return the id of the supervisor."""
        file = self.folder / "pid"
        return int(eventually(lambda: file.is_file() and file.read_text().strip()))

    def clear(self) -> None:
        """End what a failed test left."""
        for process in psutil.process_iter():
            try:
                mine = process.environ().get("HOME") == str(self.home)
                mine = mine or str(self.home) in " ".join(process.cmdline())
            except psutil.Error:
                continue
            if mine:
                process.kill()


def _found(tool: str) -> str:
    found = shutil.which(tool)
    assert found, f"this machine has no {tool}"
    return os.path.realpath(found)
