"""A scripted agent on a PATH of its own, in a working directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_process import Claude, git


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Claude]:
    agent = Claude(tmp_path)
    yield agent
    for process in agent.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def repository(claude: Claude) -> Path:
    """The agent's working directory as a repository with one commit."""
    git(claude.work, "init", "--quiet", "--initial-branch=main")
    (claude.work / "README.md").write_text("hello\n")
    git(claude.work, "add", "--all")
    git(claude.work, "commit", "--quiet", "--message", "first")
    return claude.work
