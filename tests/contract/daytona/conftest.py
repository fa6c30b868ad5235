"""A simulated Daytona per test, with the real SDK as its judge."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams
from daytona_admin import (
    KEY,
    ORGANIZATION,
    OTHER_KEY,
    OTHER_ORGANIZATION,
    READ_ONLY_KEY,
    Admin,
    sdk,
)
from daytona_api_client_async import ApiClient, Configuration, SandboxApi

from issuesandbox.local.daytona.config import ApiKey, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator


@pytest.fixture
def config() -> SimulatorConfig:
    return SimulatorConfig(
        keys=(
            ApiKey(KEY, ORGANIZATION, "operator"),
            ApiKey(OTHER_KEY, OTHER_ORGANIZATION, "other"),
            ApiKey(READ_ONLY_KEY, ORGANIZATION, "reader", permissions=()),
        ),
        speed=20,
    )


@pytest.fixture
async def simulator(config: SimulatorConfig) -> AsyncIterator[Simulator]:
    async with Simulator(config) as running:
        yield running


@pytest.fixture
async def http(simulator: Simulator) -> AsyncIterator[aiohttp.ClientSession]:
    """A plain client that carries the key."""
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
        yield session


@pytest.fixture
async def admin(simulator: Simulator, http: aiohttp.ClientSession) -> Admin:
    return Admin(simulator.admin_url, http)


@pytest.fixture
async def daytona(simulator: Simulator) -> AsyncIterator[AsyncDaytona]:
    """The real SDK, with its event feed."""
    async with sdk(simulator.url) as client:
        yield client


@pytest.fixture
async def sandbox(daytona: AsyncDaytona) -> AsyncSandbox:
    """A started sandbox."""
    return await daytona.create(CreateSandboxFromSnapshotParams(name="claude-issue-1"), timeout=10)


@pytest.fixture
async def sandbox_api(simulator: Simulator) -> AsyncIterator[SandboxApi]:
    """The generated client, which neither waits nor retries."""
    async with ApiClient(Configuration(host=simulator.url)) as client:
        client.default_headers["Authorization"] = f"Bearer {KEY}"
        yield SandboxApi(client)


@pytest.fixture
async def remote(sandbox: AsyncSandbox) -> str:
    """A repository with two commits on main and one on a branch."""
    script = """
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q -b main seed && cd seed
        echo 1 > one && git add one && git commit -qm first
        echo 2 > two && git add two && git commit -qm second
        git branch other && git clone -q --bare . ../remote.git
    """
    done = await sandbox.process.exec(script)
    assert done.exit_code == 0, done.result
    return f"{await sandbox.get_user_home_dir()}/remote.git"
