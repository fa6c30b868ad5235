"""Our git remote at the simulator, where the real git receives."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from git_work import Work, cloned
from tests.fakes.github_stage import Stage, github_stage

from issuesandbox.adapters.git.remote import HttpRemote
from issuesandbox.adapters.github.requests import open_session
from issuesandbox.local.github.tokens import new_private_key


@pytest.fixture(scope="session")
def remote_key() -> str:
    return new_private_key()


@pytest.fixture
async def stage(remote_key: str) -> AsyncIterator[Stage]:
    async with github_stage(remote_key) as made:
        yield made


@pytest.fixture
async def remote() -> AsyncIterator[HttpRemote]:
    async with open_session() as session:
        yield HttpRemote(session, read_timeout=5, push_timeout=10)


@pytest.fixture
async def work(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Work:
    return await cloned(stage, tmp_path_factory.mktemp("sandbox"))
