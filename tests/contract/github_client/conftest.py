"""Our client at the simulator, as an App and with a token."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.fakes.github_stage import Stage, github_stage

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.local.github.tokens import new_private_key


@pytest.fixture(scope="session")
def client_key() -> str:
    return new_private_key()


@pytest.fixture
async def stage(client_key: str) -> AsyncIterator[Stage]:
    async with github_stage(client_key) as made:
        yield made


@pytest.fixture
async def github(stage: Stage) -> AsyncIterator[GitHubConnection]:
    """Connected as the App."""
    connection = stage.connect()
    yield connection
    await connection.close()
