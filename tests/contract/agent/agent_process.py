"""The scripted agent as a real process, and what a test wants to know about it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issuesandbox.local.agent.shim import install_claude

SESSION = "6d0a2c7e-0000-4000-8000-0123456789ab"
STREAM = ["-p", "--output-format", "stream-json", "--verbose"]
HEADLESS = [*STREAM, "--dangerously-skip-permissions", "--setting-sources", ""]

Line = dict[str, Any]


def eventually(condition: Callable[[], Any], within: float = 20.0) -> Any:
    """Poll until a condition holds, and return what it gave."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not true within {within} s")


@dataclass(frozen=True)
class Outcome:
    """What one finished process left."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def lines(self) -> list[Line]:
        """Return the lines that are JSON objects."""
        found = []
        for raw in self.stdout.split(b"\n"):
            try:
                line = json.loads(raw)
            except ValueError:
                continue
            found.append(line)
        return found

    def of(self, kind: str, subtype: str | None = None) -> list[Line]:
        """Return the lines of a type."""
        return [
            line
            for line in self.lines
            if line["type"] == kind and (subtype is None or line.get("subtype") == subtype)
        ]

    @property
    def result(self) -> Line:
        """Return the last result line."""
        return self.of("result")[-1]

    @property
    def init(self) -> Line:
        """Return the init line."""
        return self.of("system", "init")[0]


class Claude:
    """The agent as its users meet it: a command, a working directory, an environment."""

    def __init__(self, root: Path) -> None:
        self.command = install_claude(root / "bin")
        self.work = root / "work"
        self.work.mkdir()
        self.config = root / "config"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "ANTHROPIC_API_KEY": "sk-scripted",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "IS_SANDBOX": "1",
            "ISSUESANDBOX_AGENT_SPEED": "100",
        }
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self, *arguments: str, scenario: str | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """Start a process and leave it running."""
        extra = {} if scenario is None else {"ISSUESANDBOX_SCENARIO": scenario}
        env = {**self.env, **extra, **popen.pop("env", {})}
        popen.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [str(self.command), *(arguments or (*HEADLESS, "Do the task."))],
            stdout=popen.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            cwd=popen.pop("cwd", self.work),
            env={key: value for key, value in env.items() if value is not None},
            **popen,
        )
        self.started.append(process)
        return process

    def run(
        self,
        *arguments: str,
        scenario: str | None = None,
        stdin: bytes | None = None,
        **popen: Any,
    ) -> Outcome:
        """Run a process to its end."""
        if stdin is not None:
            popen["stdin"] = subprocess.PIPE
        process = self.start(*arguments, scenario=scenario, **popen)
        stdout, stderr = process.communicate(stdin, timeout=60)
        return Outcome(process.returncode, stdout or b"", stderr.decode())

    def transcripts(self) -> list[Path]:
        """Return all transcripts of the config folder."""
        return sorted(self.config.glob("projects/*/*.jsonl"))


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody with a name, whatever this machine's configuration says."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
