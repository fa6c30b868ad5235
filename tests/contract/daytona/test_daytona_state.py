"""What survives a restart, what is refused, and the command line."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import psutil
import pytest
from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, SandboxState
from daytona_admin import KEY, ORGANIZATION, Admin, sdk

from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.errors import StateError
from issuesandbox.local.daytona.server import Simulator


@pytest.fixture
def config(config: SimulatorConfig, tmp_path: Path) -> SimulatorConfig:
    return replace(config, state_dir=tmp_path / "state")


@asynccontextmanager
async def running(config: SimulatorConfig) -> AsyncIterator[tuple[Simulator, AsyncDaytona, Admin]]:
    async with (
        Simulator(config) as simulator,
        sdk(simulator.url) as daytona,
        aiohttp.ClientSession() as session,
    ):
        yield simulator, daytona, Admin(simulator.admin_url, session)


async def test_a_restart_finds_the_same_sandboxes_and_files(config: SimulatorConfig) -> None:
    params = CreateSandboxFromSnapshotParams(
        name="claude-issue-1", labels={"a": "b"}, env_vars={"C": "d"}, auto_stop_interval=60
    )
    async with running(config) as (_, daytona, admin):
        made = await daytona.create(params, timeout=10)
        await made.fs.upload_file(b"kept", "file")
        await admin.plant(name="stopped", state="stopped")
        await admin.plant(name="gone")
        await admin.call("POST", "/sandboxes/gone/destroy")
        entries = await admin.journal()
    async with running(config) as (_, daytona, admin):
        seen = await daytona.get("claude-issue-1")
        assert (seen.id, seen.state) == (made.id, SandboxState.STARTED)
        assert seen.labels["a"] == "b"
        assert (seen.env, seen.auto_stop_interval) == ({"C": "d"}, 60)
        assert seen.created_at == made.created_at
        assert await seen.fs.download_file("file") == b"kept"
        assert {row["name"] for row in await admin.rows()} == {"claude-issue-1", "stopped"}
        again = await admin.journal()
        assert again[: len(entries)] == entries
        assert [entry["seq"] for entry in again] == list(range(1, len(again) + 1))


async def test_a_restart_goes_on_with_a_transition(config: SimulatorConfig) -> None:
    slow = replace(config, timings=replace(config.timings, stopping=4.0))
    async with running(slow) as (simulator, daytona, admin):
        made = await daytona.create(timeout=10)
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
            session.post(f"{simulator.url}/sandbox/{made.id}/stop"),
        ):
            pass
        assert (await admin.rows())[0]["state"] == "stopping"
    async with running(config) as (_, daytona, _admin):
        await (await daytona.get(made.id)).wait_for_sandbox_stop(timeout=10)


async def test_without_a_state_folder_nothing_is_left(config: SimulatorConfig) -> None:
    async with running(replace(config, state_dir=None)) as (_, daytona, _admin):
        made = await daytona.create(timeout=10)
        home = Path(await made.get_user_home_dir())
    folder = home.parents[2]
    assert folder.name.startswith("issuesandbox-daytona-")
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["garbage", "cut", "index", "row", "format"])
async def test_a_damaged_state_file_is_refused_and_left_as_it_is(
    config: SimulatorConfig, damage: str
) -> None:
    async with running(config) as (_, _daytona, admin):
        await admin.plant(count=200)
    assert config.state_dir is not None
    file = config.state_dir / "sandboxes.sqlite"
    _damage(file, damage)
    before = file.read_bytes()
    with pytest.raises(StateError, match="damaged and was left as it is") as caught:
        await Simulator(config).start()
    assert str(file) in str(caught.value)
    assert file.read_bytes() == before


def _damage(file: Path, how: str) -> None:
    if how == "garbage":
        file.write_bytes(b"this is not a database" * 1000)
    elif how == "cut":
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2])
    elif how == "index":
        pages = [file.read_bytes()[at : at + 4096] for at in range(0, file.stat().st_size, 4096)]
        # The first byte of a leaf of an index is 10; no row is lost with it.
        leaf = next(number for number, page in enumerate(pages) if page[0] == 10)
        pages[leaf] = bytes(4096)
        file.write_bytes(b"".join(pages))
    else:
        database = sqlite3.connect(file)
        statement = {
            "row": "UPDATE sandbox SET record = '{\"id\": 1' WHERE rowid = 7",
            "format": "PRAGMA user_version = 99",
        }[how]
        database.execute(statement)
        database.commit()
        database.close()


async def test_a_damaged_journal_is_refused(config: SimulatorConfig) -> None:
    async with running(config) as (_, _daytona, admin):
        await admin.plant()
    assert config.state_dir is not None
    with (config.state_dir / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"seq": 2, "half')
    with pytest.raises(StateError, match="damaged at line"):
        await Simulator(config).start()


async def test_two_simulators_do_not_share_a_state_folder(config: SimulatorConfig) -> None:
    async with running(config) as (_, daytona, _admin):
        with pytest.raises(StateError, match="another simulator uses the state folder"):
            await Simulator(config).start()
        await daytona.create(timeout=10)


async def test_a_taken_port_is_named(config: SimulatorConfig) -> None:
    async with Simulator(replace(config, state_dir=None)) as first:
        port = int(first.base_url.rpartition(":")[2])
        with pytest.raises(StateError, match=f"cannot listen on 127.0.0.1:{port}"):
            await Simulator(replace(config, port=port)).start()


async def command(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "issuesandbox.local.daytona.cli", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def address(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert "DAYTONA_API_URL=" in line
    return line.strip().partition("DAYTONA_API_URL=")[2]


async def test_a_killed_simulator_forgets_nothing_and_its_successor_cleans_up(
    tmp_path: Path,
) -> None:
    arguments = ("--api-key", f"{KEY}={ORGANIZATION}", "--state", str(tmp_path), "--speed", "20")
    first = await command(*arguments)
    async with sdk(await address(first)) as daytona:
        made = await daytona.create(timeout=10)
        left = await made.process.exec("setsid nohup sleep 1000 >/dev/null 2>&1 & echo $!")
    first.kill()
    await first.communicate()
    orphan = psutil.Process(int(left.result))
    assert orphan.is_running()
    second = await command(*arguments)
    async with sdk(await address(second)) as daytona:
        assert (await daytona.get(made.id)).state == SandboxState.STARTED
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE
    second.send_signal(signal.SIGTERM)
    _, errors = await second.communicate()
    assert (second.returncode, errors) == (0, b"")


async def test_the_second_simulator_on_one_folder_says_so_and_stops(tmp_path: Path) -> None:
    first = await command("--state", str(tmp_path))
    await address(first)
    second = await command("--state", str(tmp_path))
    _, errors = await second.communicate()
    assert second.returncode == 1
    assert errors.decode().startswith("Error: another simulator uses the state folder")
    assert len(errors.splitlines()) == 1
    first.terminate()
    await first.communicate()


async def test_the_admin_api_can_be_switched_off() -> None:
    process = await command("--no-admin")
    base = (await address(process)).removesuffix("/api")
    async with aiohttp.ClientSession() as session, session.get(f"{base}/_sim/health") as response:
        assert response.status == 404
    process.terminate()
    await process.communicate()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--api-key", "no-organisation"), "KEY=ORGANISATION"),
        (("--speed", "0"), "--speed"),
        (("--port", "x"), "--port"),
        (("--port", "99999"), "--port"),
    ],
)
async def test_a_bad_argument_is_named_without_a_traceback(
    arguments: tuple[str, ...], complaint: str
) -> None:
    process = await command(*arguments)
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert complaint in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_the_journal_names_callers_and_never_their_keys(config: SimulatorConfig) -> None:
    async with running(config) as (_, daytona, admin):
        made = await daytona.create(timeout=10)
        await made.process.exec("echo", env={"TOKEN": "very-secret"})
        entries = await admin.journal(kind="toolbox.execute")
    assert entries[0]["identity"] == f"{ORGANIZATION}/operator"
    assert entries[0]["client"].startswith("sdk-python-async/")
    assert config.state_dir is not None
    text = (config.state_dir / "journal.jsonl").read_text()
    assert all(json.loads(line)["seq"] for line in text.splitlines())
    assert KEY not in text
    assert "very-secret" not in text
