"""Each error class that the SDK knows is raised by what raises it at Daytona, or said to be out."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    DaytonaError,
    SandboxState,
    SessionExecuteRequest,
)
from daytona.common import errors
from daytona_admin import Admin, eventually

# What the simulator has nothing to raise it with.
NOT_HERE = {
    "FILE_READ_FAILED": "needs a disk that breaks",
    "GIT_MERGE_CONFLICT": "pulls are fast-forward only",
    "PROCESS_NOT_FOUND": "no terminals (PTY)",
    "LSP_SERVER_NOT_INITIALIZED": "no language servers",
    "A11Y_UNAVAILABLE": "no desktop",
    "RECORDING_STILL_ACTIVE": "no desktop",
    "RECORDING_FFMPEG_NOT_FOUND": "no desktop",
}
# Raised by the SDK for what only the hosted service has, or under another of their names.
NEVER_RAISED = {
    "DaytonaQueueTimeoutError": "no queue",
    "DaytonaSpotEvictedError": "no spot machines",
}


async def auth_failed(sandbox: AsyncSandbox, remote: str) -> None:
    async with refusing() as address:
        await sandbox.git.clone(f"{address}/r.git", "w", username="u", password="wrong")


async def repo_not_found(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(f"{remote}-missing", "w")


async def branch_not_found(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(remote, "w", branch="nope")


async def branch_exists(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(remote, "w")
    await sandbox.git.create_branch("w", "main")


async def push_rejected(sandbox: AsyncSandbox, remote: str) -> None:
    for clone in ("first", "second"):
        await sandbox.git.clone(remote, clone)
    for clone in ("first", "second"):
        await sandbox.git.commit(clone, clone, "a", "a@b", allow_empty=True)
        await sandbox.git.push(clone)


async def dirty_worktree(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(remote, "w")
    script = "cd w && git branch old HEAD~1 && echo mine > two"
    assert (await sandbox.process.exec(script)).exit_code == 0
    await sandbox.git.checkout_branch("w", "old")


async def transport_failed(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone("http://127.0.0.1:9/x.git", "w")


async def remote_rejected(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(remote, "w")
    hook = f"{remote}/hooks/pre-receive"
    await sandbox.process.exec(f"echo 'exit 1' > {hook} && chmod 755 {hook}")
    await sandbox.git.commit("w", "mine", "a", "a@b", allow_empty=True)
    await sandbox.git.push("w")


async def file_not_found(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.fs.get_file_info("nowhere")


async def file_access_denied(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.fs.delete_file("/etc/hostname")


async def invalid_file_path(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.fs.get_file_info("a\0b")


async def process_execution_timeout(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.process.exec("sleep 60", timeout=1)


async def session_ended(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.process.create_session("s")
    end = SessionExecuteRequest(command="exit 3", run_async=True)
    await sandbox.process.execute_session_command("s", end)
    for _ in range(100):
        await sandbox.process.execute_session_command("s", SessionExecuteRequest(command="true"))


async def command_already_completed(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.process.create_session("s")
    short = SessionExecuteRequest(command="true", run_async=True)
    command = await sandbox.process.execute_session_command("s", short)

    async def over() -> bool:
        return (await sandbox.process.get_session_command("s", command.cmd_id)).exit_code == 0

    await eventually(over)
    await sandbox.process.send_session_command_input("s", command.cmd_id, "more")


PROVOKED: dict[str, Callable[[AsyncSandbox, str], Awaitable[None]]] = {
    "GIT_AUTH_FAILED": auth_failed,
    "GIT_REPO_NOT_FOUND": repo_not_found,
    "GIT_BRANCH_NOT_FOUND": branch_not_found,
    "GIT_BRANCH_EXISTS": branch_exists,
    "GIT_PUSH_REJECTED": push_rejected,
    "GIT_DIRTY_WORKTREE": dirty_worktree,
    "GIT_TRANSPORT_FAILED": transport_failed,
    "GIT_REMOTE_REJECTED": remote_rejected,
    "FILE_NOT_FOUND": file_not_found,
    "FILE_ACCESS_DENIED": file_access_denied,
    "INVALID_FILE_PATH": invalid_file_path,
    "PROCESS_EXECUTION_TIMEOUT": process_execution_timeout,
    "SESSION_ENDED": session_ended,
    "COMMAND_ALREADY_COMPLETED": command_already_completed,
}


@asynccontextmanager
async def refusing() -> AsyncIterator[str]:
    """A remote that lets nobody in."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="git"'})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


def test_no_class_of_the_sdk_is_forgotten() -> None:
    codes = {code for _, code in errors.CODE_TO_ERROR}
    assert set(PROVOKED) | set(NOT_HERE) == codes
    mapped = {*errors.CODE_TO_ERROR.values(), *errors.STATUS_CODE_TO_ERROR.values()}
    classes = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, DaytonaError) and each not in mapped
    }
    # The two by status and code are shown here and beside the switches, the rest below.
    by_the_client = {DaytonaError, errors.DaytonaConnectionError}
    by_the_client.add(errors.DaytonaConnectionTimeoutError)
    assert {each.__name__ for each in classes - by_the_client} == set(NEVER_RAISED)


@pytest.mark.parametrize("code", PROVOKED)
async def test_the_daemons_code_becomes_the_error_class_of_the_sdk(
    sandbox: AsyncSandbox, remote: str, code: str
) -> None:
    with pytest.raises(DaytonaError) as caught:
        await PROVOKED[code](sandbox, remote)
    assert type(caught.value) is errors.CODE_TO_ERROR["DAYTONA_DAEMON", code]
    assert caught.value.code == code


async def test_a_create_that_takes_too_long_names_the_sandbox(
    daytona: AsyncDaytona, admin: Admin
) -> None:
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    await admin.fault("stuck_transition", "sandbox.create")
    with pytest.raises(errors.DaytonaTimeoutError) as caught:
        await daytona.create(CreateSandboxFromSnapshotParams(name="slow"), timeout=2)
    seen = await daytona.get("slow")
    assert (caught.value.sandbox_id, seen.state) == (seen.id, SandboxState.CREATING)


async def test_an_answer_that_does_not_come_is_a_timeout_of_the_connection(
    daytona: AsyncDaytona, sandbox: AsyncSandbox, admin: Admin
) -> None:
    before = len(await admin.journal(kind="sandbox.get"))
    await admin.fault("slow", "sandbox.get", delay=2, count=1)
    with pytest.raises(errors.DaytonaTimeoutError) as caught:
        await daytona.get("claude-issue-1", request_timeout=1)
    assert type(caught.value) is errors.DaytonaConnectionTimeoutError

    async def answered() -> bool:
        return len(await admin.journal(kind="sandbox.get")) > before

    await eventually(answered)
