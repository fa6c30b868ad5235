"""The state folder outlives the simulator, and the command says clearly what is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner
from github_judge import ADMIN_TOKEN, Api, Git, assertion

from issuesandbox.local.github.cli import github
from issuesandbox.local.github.errors import SimulatorError, StateDamagedError, StateInUseError
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator


@pytest.fixture
def config(tmp_path: Path, app_key: str) -> GitHubConfig:
    return GitHubConfig(
        state=tmp_path / "state", tokens={ADMIN_TOKEN: "root"}, app_private_key=app_key
    )


def _clients(sim: GitHubSimulator, session: aiohttp.ClientSession) -> tuple[Api, Api]:
    return Api(session, sim.url, f"token {ADMIN_TOKEN}"), Api(session, sim.admin_url)


async def _furnish(sim: GitHubSimulator, session: aiohttp.ClientSession) -> Api:
    root, admin = _clients(sim, session)
    files = {"README.md": "hello\n"}
    await admin.post("/repos", {"repository": "acme/app", "files": files}, status=200)
    await root.post("/repos/acme/app/issues", {"title": "Bug", "labels": ["agent"]})
    await root.post("/repos/acme/app/issues/1/comments", {"body": "hi"})
    return root


async def test_a_restart_has_the_same_repositories_issues_ids_and_tokens(
    config: GitHubConfig, session: aiohttp.ClientSession, app_key: str, git: Git
) -> None:
    paths = ("/repos/acme/app/issues/1", "/repos/acme/app/issues/1/comments")
    async with GitHubSimulator(config) as sim:
        root = await _furnish(sim, session)
        before = [str(await root.get(path)).replace(sim.url, "") for path in paths]
        app = Api(session, sim.url, f"Bearer {assertion(sim.app_id, app_key)}")
        _, admin = _clients(sim, session)
        made = await admin.post("/installations", {"account": "acme"}, status=200)
        minted = await app.post(f"/app/installations/{made['id']}/access_tokens")
        app_id, seq = sim.app_id, (await admin.get("/journal"))[-1]["seq"]
    async with GitHubSimulator(config) as sim:
        root, admin = _clients(sim, session)
        assert [str(await root.get(path)).replace(sim.url, "") for path in paths] == before
        assert sim.app_id == app_id
        limited = Api(session, sim.url, f"Bearer {minted['token']}")
        await limited.get("/repos/acme/app")
        host = sim.url.removeprefix("http://")
        url = f"http://x:{minted['token']}@{host}/acme/app"
        assert "refs/heads/main" in (await git("ls-remote", url)).output
        fresh = await root.post("/repos/acme/app/issues", {"title": "Next"})
        assert fresh["number"] == 2
        assert fresh["id"] > (await root.get(paths[0]))["id"]
        assert (await admin.get("/journal"))[-1]["seq"] > seq


async def test_the_second_simulator_on_a_folder_says_so(config: GitHubConfig) -> None:
    async with GitHubSimulator(config):
        with pytest.raises(StateInUseError, match="in use by another simulator"):
            async with GitHubSimulator(config):
                pass
    async with GitHubSimulator(config):
        pass


@pytest.mark.parametrize("damage", ["garbage", "empty", "missing", "row", "git"])
async def test_a_damaged_folder_is_refused_and_left_alone(
    config: GitHubConfig, session: aiohttp.ClientSession, damage: str
) -> None:
    async with GitHubSimulator(config) as sim:
        await _furnish(sim, session)
        repository = next(iter(sim.world.store.repositories))
        head = sim.world.git.path(repository.id) / "HEAD"
        if damage == "row":
            sim.world.store.folder.db.execute("UPDATE issues SET body = '{\"id\": 1}'")
    assert config.state is not None
    file = config.state / "github.sqlite3"
    if damage == "git":
        head.unlink()
    elif damage == "missing":
        file.unlink()
    elif damage in ("garbage", "empty"):
        file.write_bytes(b"not a database" * 100 if damage == "garbage" else b"")
    before = file.read_bytes() if file.exists() else None
    with pytest.raises(StateDamagedError, match="nothing was changed"):
        async with GitHubSimulator(config):
            pass
    assert (file.read_bytes() if file.exists() else None) == before


async def test_a_taken_port_is_named(config: GitHubConfig) -> None:
    async with GitHubSimulator(config) as sim:
        port = int(sim.url.rsplit(":", 1)[1])
        with pytest.raises(SimulatorError, match=f"127.0.0.1:{port}"):
            async with GitHubSimulator(GitHubConfig(port=port)):
                pass


async def test_without_a_folder_nothing_is_left(app_key: str) -> None:
    async with GitHubSimulator(GitHubConfig(app_private_key=app_key)) as sim:
        folder = sim.world.store.folder.path
        assert folder.exists()
    assert not folder.exists()


async def test_without_admin_there_is_no_way_in(
    app_key: str, session: aiohttp.ClientSession
) -> None:
    async with GitHubSimulator(GitHubConfig(app_private_key=app_key, admin=False)) as sim:
        await Api(session, sim.admin_url).get("/journal", status=404)


async def _command(*arguments: str) -> asyncio.subprocess.Process:
    code = "from issuesandbox.local.github.cli import github; github()"
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-c", code, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


async def _started(*arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    child = await _command(*arguments)
    assert child.stdout is not None
    return child, (await child.stdout.readline()).decode().split()[3]


async def test_the_command_serves_until_it_is_told_to_stop(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    state = str(tmp_path / "state")
    options = ("--port", "0", "--token", "secret=mia", "--state", state)
    child, url = await _started(*options)
    assert (await Api(session, url, "token secret").get("/user"))["login"] == "mia"
    second = await _command(*options)
    _, complaint = await second.communicate()
    assert second.returncode == 1
    assert complaint.decode().count("\n") == 1
    assert "is in use by another simulator" in complaint.decode()
    child.send_signal(signal.SIGTERM)
    output, errors = await child.communicate()
    assert (child.returncode, errors) == (0, b"")
    assert b"secret" not in output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--port", "x"), "--port"),
        (("--port", "0", "--webhook", "http://127.0.0.1:1"), "--webhook-secret"),
        (("--port", "0", "--webhook", "here", "--webhook-secret", "s"), "--webhook"),
        (("--port", "0", "--token", "=mia"), "--token"),
        (("--port", "0", "--state", "/dev/null/x"), "cannot be used"),
    ],
)
def test_the_command_refuses_in_plain_words(options: tuple[str, ...], complaint: str) -> None:
    done = CliRunner().invoke(github, options)
    assert done.exit_code in (1, 2)
    assert complaint in done.output
    assert isinstance(done.exception, SystemExit), "one line, never a traceback"


async def test_a_killed_simulator_comes_back_with_all_it_had_answered(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    options = ("--port", "0", "--token", ADMIN_TOKEN, "--state", str(tmp_path / "state"))
    child, url = await _started(*options)
    body = {"repository": "acme/app", "files": {"a": "1"}}
    await Api(session, f"{url}/_sim").post("/repos", body, status=200)
    root = Api(session, url, f"token {ADMIN_TOKEN}")
    made = await root.post("/repos/acme/app/issues", {"title": "Bug"})
    child.kill()
    await child.communicate()
    child, url = await _started(*options)
    root = Api(session, url, f"token {ADMIN_TOKEN}")
    assert (await root.get("/repos/acme/app/issues/1"))["id"] == made["id"]
    assert (await root.get("/repos/acme/app/branches/main"))["name"] == "main"
    child.terminate()
    await child.communicate()
