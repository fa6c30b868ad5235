"""The home directory of a sandbox, and what a run and its collection do in it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from issuesandbox.domain.collection import (
    SYSTEM_PATH,
    Collection,
    CollectOrder,
    CommitOrder,
    collect_command,
    collector_sent,
    pack_path,
    parse_collection,
)

TOOLS = "awk base64 cat env find grep head mkdir mv rm sed tail tr wc"
DATE = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class Sandbox:
    home: Path
    parent: str = ""
    small: bool = False
    """All tools are the small versions in `tools`."""

    @property
    def run_folder(self) -> Path:
        return self.home / ".issuesandbox" / "run" / "r1"

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def trap(self) -> Path:
        """A program that leaves a trace when anybody runs it."""
        return self.home / "trap"

    @property
    def traces(self) -> list[str]:
        sprung = self.home / "sprung"
        return sprung.read_text().splitlines() if sprung.exists() else []

    @property
    def tools(self) -> Path:
        """A folder outside the home that its PATH names before the system's."""
        return self.home.parent / "tools"

    def environment(self) -> dict[str, str]:
        sent = collector_sent()
        if self.small:
            path = f"{self.tools}:{SYSTEM_PATH}"
            sent = {name: text.replace(SYSTEM_PATH, path) for name, text in sent.items()}
        return {
            "PATH": f"{self.home}/.local/bin:{self.tools}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "GIT_EXTERNAL_DIFF": str(self.trap),
            **sent,
        }

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git as a developer would."""
        identity = ("-c", "user.name=Dev", "-c", "user.email=dev@example.org")
        done = subprocess.run(
            ["git", *identity, "-c", "protocol.file.allow=always", *arguments],
            cwd=cwd or self.work,
            env={"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
            capture_output=True,
            check=True,
        )
        return done.stdout.decode(errors="surrogateescape")

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit_all(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def plant_trap(self) -> str:
        # Clean filters must pass their input on, fsmonitor and others may say nothing.
        text = f'#!/bin/sh\necho "$0 $*" >>"{self.home}/sprung"\ncat 2>/dev/null\n'
        self.trap.write_text(text)
        self.trap.chmod(0o755)
        return str(self.trap)

    def order(self, message: str = "Fix it\n\nCloses #1\n", **changes: object) -> CollectOrder:
        order = CollectOrder(
            home=str(self.home),
            work=str(self.work),
            folder=str(self.run_folder),
            nonce="n1",
            commit=CommitOrder(self.parent, "IssueSandbox", "bot@example.org", DATE, message),
        )
        return replace(order, **changes)  # type: ignore[arg-type]

    def run(self, order: CollectOrder, shell: str = "/bin/sh") -> str:
        done = subprocess.run(
            shell.split(),
            input=collect_command(order).replace("/bin/sh ", f"{shell} ", 1).encode(),
            cwd=self.home,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=True,
        )
        return done.stdout.decode()

    def use_tools_of(self, busybox: str) -> None:
        """Put its small versions of all tools before the system's."""
        self.small = True
        self.tools.mkdir()
        for name in TOOLS.split():
            (self.tools / name).symlink_to(busybox)

    def collect(self, order: CollectOrder | None = None, shell: str = "/bin/sh") -> Collection:
        order = order or self.order()
        return parse_collection(self.run(order, shell), order)

    def leavings(self) -> set[str]:
        """Return what is in the folder of the run, once all that was in use is cleared away."""
        until = time.monotonic() + 10
        while any(self.run_folder.glob("collect.*")) and time.monotonic() < until:
            time.sleep(0.01)
        return {each.name for each in self.run_folder.iterdir()}

    def pack(self, commit: str) -> bytes:
        return Path(pack_path(str(self.run_folder), commit)).read_bytes()

    def unpacked(self, tmp_path: Path, commit: str) -> Path:
        """Return a bare repository that had the parent and got the pack, strictly checked."""
        target = tmp_path / "target.git"
        if not target.exists():
            self.git("clone", "-q", "--bare", "--no-hardlinks", str(self.work), str(target))
        pack = self.pack(commit)
        command = ["git", "index-pack", "--fix-thin", "--strict", "--stdin"]
        subprocess.run(command, cwd=target, input=pack, check=True, capture_output=True)
        return target
