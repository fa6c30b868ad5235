"""A sandbox's clone of the simulator's repository, and packs collected from it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tests.fakes.github_stage import TOKEN, Stage

from issuesandbox.domain.collection import (
    CollectOrder,
    CommitOrder,
    collect_command,
    collector_sent,
    pack_path,
    parse_collection,
)
from issuesandbox.ports.github import Token
from issuesandbox.ports.remote import ZERO, PushOrder

BRANCH = "refs/heads/claude-fix-issue-1"
OWN = Token(TOKEN)


async def run(*command: str, cwd: Path) -> str:
    child = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}
        | collector_sent(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await child.communicate()
    assert child.returncode == 0, output
    return output.decode()


@dataclass
class Work:
    """One sandbox."""

    home: Path
    url: str
    parent: str

    @property
    def tree(self) -> Path:
        return self.home / "work"

    async def collected(self, files: dict[str, str | bytes]) -> PushOrder:
        """Change files, collect them as the operator does, and return the push of them."""
        for name, content in files.items():
            file = self.tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        order = CollectOrder(
            home=str(self.home),
            work=str(self.tree),
            folder=str(self.home / "collected"),
            nonce="n",
            commit=CommitOrder(
                self.parent, "Bot", "bot@example.org", datetime(2026, 3, 1, tzinfo=UTC), "Fix\n"
            ),
        )
        found = parse_collection(
            await run("sh", "-c", collect_command(order), cwd=self.home), order
        )
        assert found.commit is not None
        return PushOrder(BRANCH, ZERO, found.commit, _read(pack_path(order.folder, found.commit)))

    async def moved_on(self, files: dict[str, str | bytes], before: PushOrder) -> PushOrder:
        """Return the push of more work on top of what was pushed before."""
        await run("git", "fetch", "-q", self.url, before.ref, cwd=self.tree)
        self.parent = before.new
        return replace(await self.collected(files), old=before.new)

    async def shown(self, commit: str, file: str) -> str:
        """Return a file of a commit as a fresh clone has it."""
        target = self.home / f"again-{commit}"
        if not target.exists():
            await run("git", "clone", "-q", "--bare", self.url, str(target), cwd=self.home)
        return await run("git", "show", f"{commit}:{file}", cwd=target)


def _read(path: str) -> bytes:
    return Path(path).read_bytes()


async def cloned(stage: Stage, home: Path) -> Work:
    """Clone the simulator's repository into a new home."""
    url = stage.git_url.replace("http://", f"http://x-access-token:{TOKEN}@")
    await run("git", "clone", "-q", url, "work", cwd=home)
    head = (await run("git", "rev-parse", "HEAD", cwd=home / "work")).strip()
    return Work(home, url, head)
