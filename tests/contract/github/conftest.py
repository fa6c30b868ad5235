"""A running simulator, clients of every identity, a receiver of webhooks and the real git."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from github_judge import (
    ADMIN_TOKEN,
    SECRET,
    Api,
    Delivered,
    Drain,
    Git,
    GitRun,
    JumpingClock,
    Mint,
    Receiver,
    Remote,
    assertion,
)

from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator
from issuesandbox.local.github.tokens import new_private_key


@pytest.fixture(scope="session")
def app_key() -> str:
    return new_private_key()


@pytest.fixture
def clock() -> JumpingClock:
    return JumpingClock()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    taken = Receiver()

    async def take(request: web.Request) -> web.Response:
        taken.got.append(Delivered(dict(request.headers), await request.read()))
        return web.Response(status=taken.status, text="noted")

    app = web.Application(client_max_size=2**25)
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    taken.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield taken
    await runner.cleanup()


@pytest.fixture
async def sim(
    tmp_path: Path, app_key: str, clock: JumpingClock, receiver: Receiver
) -> AsyncIterator[GitHubSimulator]:
    config = GitHubConfig(
        state=tmp_path / "state",
        tokens={ADMIN_TOKEN: "root"},
        webhook_urls=(receiver.url,),
        webhook_secret=SECRET,
        app_private_key=app_key,
    )
    async with GitHubSimulator(config, clock) as simulator:
        yield simulator


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest.fixture
def root(sim: GitHubSimulator, session: aiohttp.ClientSession) -> Api:
    """A person who may do everything."""
    return Api(session, sim.url, f"token {ADMIN_TOKEN}")


@pytest.fixture
def admin(sim: GitHubSimulator, session: aiohttp.ClientSession) -> Api:
    """The simulator's own controls."""
    return Api(session, sim.admin_url)


@pytest.fixture
def app(sim: GitHubSimulator, session: aiohttp.ClientSession, app_key: str) -> Api:
    """The App itself."""
    return Api(session, sim.url, f"Bearer {assertion(sim.app_id, app_key)}")


@pytest.fixture
async def repo(admin: Api) -> str:
    """A private repository with one commit."""
    files = {"README.md": "hello\n", "src/app.py": "print(1)\n"}
    await admin.post("/repos", {"repository": "acme/app", "files": files}, status=200)
    return "acme/app"


@pytest.fixture
async def installation(admin: Api, repo: str) -> int:
    made = await admin.post("/installations", {"account": "acme"}, status=200)
    return int(made["id"])


@pytest.fixture
def mint(app: Api, installation: int, sim: GitHubSimulator, session: aiohttp.ClientSession) -> Mint:
    """Make a client with an installation token limited as asked."""

    async def minted(**limits: Any) -> Api:
        path = f"/app/installations/{installation}/access_tokens"
        token = (await app.post(path, limits))["token"]
        return Api(session, sim.url, f"Bearer {token}")

    return minted


@pytest.fixture
def person(admin: Api, sim: GitHubSimulator, session: aiohttp.ClientSession) -> Mint:
    """Make a client with a user's own token."""

    async def made(login: str, **user: Any) -> Api:
        await admin.call("PUT", f"/users/{login}", user)
        token = (await admin.post("/tokens", {"user": login}, status=200))["token"]
        return Api(session, sim.url, f"Bearer {token}")

    return made


@pytest.fixture
def git(tmp_path: Path) -> Git:
    """The real git client without anybody's configuration."""

    async def run(*arguments: str, cwd: Path | None = None) -> GitRun:
        identity = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", "Test"), ("EMAIL", "test@example.org"))
        }
        child = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            cwd=cwd or tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_TERMINAL_PROMPT": "0",
                "LC_ALL": "C",
                **identity,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await child.communicate()
        return GitRun(child.returncode or 0, output.decode())

    return run


@pytest.fixture
def drained(admin: Api) -> Drain:
    """Wait until every webhook has been delivered."""

    async def wait() -> None:
        await admin.post("/webhooks/drain", status=200)

    return wait


@pytest.fixture
def remote(sim: GitHubSimulator) -> Remote:
    """Return the git address of a repository with a client's token in it."""

    def address(client: Api, repository: str) -> str:
        host = sim.url.removeprefix("http://")
        token = client.headers.get("Authorization", "").partition(" ")[2]
        return f"http://{f'x-access-token:{token}@' if token else ''}{host}/{repository}.git"

    return address
