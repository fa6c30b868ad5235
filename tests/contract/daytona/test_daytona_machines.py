"""What runs inside of a sandbox ends with it, wherever it hides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    DaytonaAuthenticationError,
    DaytonaBadGatewayError,
    DaytonaBadRequestError,
    DaytonaNotFoundError,
    SessionExecuteRequest,
)
from daytona_admin import Admin, eventually

HIDE = """
    setsid nohup sh -c 'trap "" TERM; echo $$ > stubborn; exec sleep 1000' >/dev/null 2>&1 &
    (setsid env -i sh -c 'echo $$ > nameless; exec sleep 1000' >/dev/null 2>&1 &)
    while [ ! -s stubborn ] || [ ! -s nameless ]; do sleep 0.01; done
"""


async def hidden_processes(sandbox: AsyncSandbox) -> list[psutil.Process]:
    done = await sandbox.process.exec(HIDE)
    assert done.exit_code == 0
    pids = [await sandbox.fs.download_file(name) for name in ("stubborn", "nameless")]
    return [psutil.Process(int(pid)) for pid in pids]


def folder_exists(path: Path) -> bool:
    return path.exists()


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


async def test_a_sandbox_that_runs_nothing_has_no_process_and_no_folder(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    assert await admin.call("GET", "/processes") == {}
    assert await admin.journal(type="process") == []


@pytest.mark.parametrize("force", [False, True])
async def test_stop_kills_what_hides_in_other_sessions(sandbox: AsyncSandbox, force: bool) -> None:
    processes = await hidden_processes(sandbox)
    assert all(alive(process) for process in processes)
    await sandbox.stop(timeout=10, force=force)
    assert not any(alive(process) for process in processes)


async def test_delete_kills_everything_and_removes_the_folder(sandbox: AsyncSandbox) -> None:
    processes = await hidden_processes(sandbox)
    home = Path(await sandbox.get_user_home_dir())
    assert folder_exists(home)
    await sandbox.delete(timeout=10, wait=True)
    assert not any(alive(process) for process in processes)
    assert not folder_exists(home.parent)


async def test_one_sandbox_dies_alone(daytona: AsyncDaytona, sandbox: AsyncSandbox) -> None:
    other = await daytona.create(CreateSandboxFromSnapshotParams(name="other"), timeout=10)
    processes = await hidden_processes(other)
    await hidden_processes(sandbox)
    await sandbox.stop(timeout=10)
    assert all(alive(process) for process in processes)


async def test_a_pause_freezes_and_a_start_thaws(daytona: AsyncDaytona) -> None:
    machine = await daytona.create(
        CreateSandboxFromSnapshotParams(snapshot="daytona-vm"), timeout=9
    )
    process, _ = await hidden_processes(machine)
    await machine.pause(timeout=10)
    assert process.status() == psutil.STATUS_STOPPED
    await machine.start(timeout=10)
    assert process.status() != psutil.STATUS_STOPPED


async def test_a_stop_behind_everybodys_back_kills_and_shows(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    processes = await hidden_processes(sandbox)
    await admin.call("POST", f"/sandboxes/{sandbox.name}/stop")
    assert not any(alive(process) for process in processes)
    await sandbox.refresh_data()
    assert (sandbox.state, sandbox.desired_state) == ("stopped", "stopped")


async def test_a_command_that_runs_during_a_stop_gets_no_answer_of_its_own(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await sandbox.process.create_session("s")
    sleep = SessionExecuteRequest(command="sleep 1000 &", run_async=True)
    await sandbox.process.execute_session_command("s", sleep)

    async def stop() -> None:
        await eventually(lambda: admin.call("GET", "/processes"))
        await admin.call("POST", f"/sandboxes/{sandbox.id}/stop")

    stopping = asyncio.ensure_future(stop())
    with pytest.raises(DaytonaBadGatewayError):
        await sandbox.process.exec("sleep 1000")
    await stopping


async def test_the_toolbox_of_a_stopped_sandbox_says_so(sandbox: AsyncSandbox) -> None:
    await sandbox.stop(timeout=10)
    with pytest.raises(DaytonaBadRequestError, match="Is the Sandbox started"):
        await sandbox.process.exec("true")


async def test_the_toolbox_of_a_missing_sandbox_looks_like_a_bad_key(
    sandbox: AsyncSandbox,
) -> None:
    await sandbox.delete(timeout=10, wait=True)
    with pytest.raises(DaytonaAuthenticationError):
        await sandbox.process.exec("true")


async def test_a_lost_container_is_started_but_not_found(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await admin.call("POST", f"/sandboxes/{sandbox.id}/lose-container")
    await sandbox.refresh_data()
    assert sandbox.state == "started"
    with pytest.raises(DaytonaNotFoundError, match="container not found"):
        await sandbox.process.exec("true")


async def test_an_archived_sandbox_has_no_runner(sandbox: AsyncSandbox, admin: Admin) -> None:
    await admin.call("POST", f"/sandboxes/{sandbox.id}/state", {"state": "archived"})
    with pytest.raises(DaytonaBadRequestError, match="runner"):
        await sandbox.process.exec("true")


async def test_a_wipe_leaves_nothing(sandbox: AsyncSandbox, admin: Admin) -> None:
    processes = await hidden_processes(sandbox)
    await admin.call("POST", "/wipe")
    assert not any(alive(process) for process in processes)
    assert await admin.rows() == []
    assert (await admin.journal(type="state"))[-1]["to"] == "destroyed"
