"""The toolbox: commands, sessions, files and git, through the real SDK."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from daytona import (
    AsyncSandbox,
    CodeRunParams,
    DaytonaBadRequestError,
    DaytonaCommandAlreadyCompletedError,
    DaytonaConflictError,
    DaytonaError,
    DaytonaFileAccessDeniedError,
    DaytonaFileNotFoundError,
    DaytonaGitBranchNotFoundError,
    DaytonaGitRepoNotFoundError,
    DaytonaGitTransportFailedError,
    DaytonaNotFoundError,
    DaytonaProcessExecutionTimeoutError,
    DaytonaSessionEndedError,
    FileDownloadRequest,
    FileUpload,
    SessionExecuteRequest,
)
from daytona_admin import Admin, eventually


async def test_a_command_runs_at_home_with_a_clean_environment(
    sandbox: AsyncSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAYTONA_API_KEY", "must not leak")
    monkeypatch.setenv("ISSUESANDBOX_WORLD", "world-1")
    done = await sandbox.process.exec("pwd; echo $HOME; env", env={"MORE": "yes"})
    home = await sandbox.get_user_home_dir()
    assert done.exit_code == 0
    assert done.result.splitlines()[:2] == [home, home]
    assert f"DAYTONA_SANDBOX_ID={sandbox.id}" in done.result
    assert "ISSUESANDBOX_WORLD=world-1" in done.result
    assert "MORE=yes" in done.result
    assert "must not leak" not in done.result
    assert await sandbox.get_work_dir() == home


async def test_a_command_may_fail_and_mixes_its_streams(sandbox: AsyncSandbox) -> None:
    done = await sandbox.process.exec("echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.result) == (3, "out\nerr\n")
    assert (await sandbox.process.exec("no-such-command")).exit_code == 127


async def test_a_command_in_a_missing_folder_never_starts(sandbox: AsyncSandbox) -> None:
    done = await sandbox.process.exec("true", cwd="nowhere")
    assert done.exit_code == -1
    assert "nowhere" in done.result


async def test_a_command_over_its_time_is_killed(sandbox: AsyncSandbox) -> None:
    with pytest.raises(DaytonaProcessExecutionTimeoutError) as caught:
        await sandbox.process.exec("sleep 60 & echo $! > pid; wait", timeout=1)
    assert caught.value.status_code == 408

    async def dead() -> bool:
        done = await sandbox.process.exec(
            "kill -0 $(cat pid) 2>/dev/null && cat /proc/$(cat pid)/stat"
        )
        return done.exit_code != 0 or " Z " in done.result

    await eventually(dead)


async def test_an_empty_command_is_refused(sandbox: AsyncSandbox) -> None:
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.process.exec("")


async def test_code_runs_in_its_language(sandbox: AsyncSandbox) -> None:
    params = CodeRunParams(argv=["x"], env={"A": "b"})
    done = await sandbox.process.code_run(
        "import os, sys; print(sys.argv[1:], os.environ['A'])", params
    )
    assert (done.exit_code, done.result) == (0, "['x'] b\n")


async def test_a_session_keeps_its_folder_and_variables(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    run = sandbox.process.execute_session_command
    await run("s", SessionExecuteRequest(command="mkdir d; cd d; X=1"))
    done = await run(
        "s", SessionExecuteRequest(command="basename $PWD; echo $X; echo no >&2; false")
    )
    assert (done.exit_code, done.stdout, done.stderr) == (1, "d\n1\n", "no\n")
    session = await sandbox.process.get_session("s")
    assert [command.exit_code for command in session.commands] == [0, 1]
    assert [item.session_id for item in await sandbox.process.list_sessions()] == ["s"]


async def test_a_background_command_is_polled_and_its_log_read(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="echo a; read line; echo got $line >&2", run_async=True)
    command = await sandbox.process.execute_session_command("s", request)
    assert (await sandbox.process.get_session_command("s", command.cmd_id)).exit_code is None
    await sandbox.process.send_session_command_input("s", command.cmd_id, "hello\n")

    async def over() -> bool:
        return (await sandbox.process.get_session_command("s", command.cmd_id)).exit_code == 0

    await eventually(over)
    logs = await sandbox.process.get_session_command_logs("s", command.cmd_id)
    assert logs.stderr == "got hello\n"
    assert set(logs.stdout.splitlines()) == {"a", "hello"}  # the input is echoed
    with pytest.raises(DaytonaCommandAlreadyCompletedError):
        await sandbox.process.send_session_command_input("s", command.cmd_id, "more\n")


async def test_a_log_is_followed_to_its_end(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    script = "for i in 1 2 3; do echo out$i; echo err$i >&2; sleep 0.05; done; printf 'no newline'"
    request = SessionExecuteRequest(command=script, run_async=True)
    command = await sandbox.process.execute_session_command("s", request)
    out: list[str] = []
    err: list[str] = []
    await sandbox.process.get_session_command_logs_async(
        "s", command.cmd_id, out.append, err.append
    )
    assert "".join(out) == "out1\nout2\nout3\nno newline\n"
    assert "".join(err) == "err1\nerr2\nerr3\n"
    again: list[str] = []
    await sandbox.process.get_session_command_logs_async(
        "s", command.cmd_id, again.append, err.append
    )
    assert "".join(again) == "".join(out)


async def test_a_long_log_arrives_whole(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="seq 1 100000", run_async=True)
    command = await sandbox.process.execute_session_command("s", request)
    out: list[str] = []
    await sandbox.process.get_session_command_logs_async(
        "s", command.cmd_id, out.append, out.append
    )
    assert "".join(out) == "".join(f"{number}\n" for number in range(1, 100_001))


async def test_a_carriage_return_does_not_end_a_line(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="printf '10%%\\r20%%\\r\\n'")
    done = await sandbox.process.execute_session_command("s", request)
    assert done.stdout == "10%\r20%\r\n"


async def test_a_top_level_exit_ends_the_session_without_a_code(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="exit 3", run_async=True)
    command = await sandbox.process.execute_session_command("s", request)

    async def ended() -> bool:
        try:
            await sandbox.process.execute_session_command(
                "s", SessionExecuteRequest(command="true")
            )
        except DaytonaSessionEndedError:
            return True
        return False

    await eventually(ended)
    assert (await sandbox.process.get_session_command("s", command.cmd_id)).exit_code is None


async def test_sessions_are_unique_and_can_be_deleted(sandbox: AsyncSandbox, admin: Admin) -> None:
    await sandbox.process.create_session("s")
    with pytest.raises(DaytonaConflictError, match="session already exists"):
        await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="sleep 1000", run_async=True)
    await sandbox.process.execute_session_command("s", request)

    async def running() -> bool:
        return "sleep 1000" in await admin.commands(sandbox.id)

    await eventually(running)
    await sandbox.process.delete_session("s")
    with pytest.raises(DaytonaNotFoundError):
        await sandbox.process.get_session("s")
    assert not await running()


async def test_sessions_do_not_survive_a_stop_but_files_do(sandbox: AsyncSandbox) -> None:
    await sandbox.process.create_session("s")
    await sandbox.fs.upload_file(b"kept", "kept.txt")
    await sandbox.stop(timeout=10)
    await sandbox.start(timeout=10)
    with pytest.raises(DaytonaNotFoundError, match="session not found"):
        await sandbox.process.get_session("s")
    assert await sandbox.fs.download_file("kept.txt") == b"kept"


async def test_files_go_up_and_down_in_any_number(sandbox: AsyncSandbox) -> None:
    data = bytes(range(256)) * 4096
    await sandbox.fs.upload_files(
        [
            FileUpload(source=data, destination="deep/er/a.bin"),
            FileUpload(source=b"", destination="b"),
        ]
    )
    assert await sandbox.fs.download_file("deep/er/a.bin") == data
    wanted = [FileDownloadRequest(source="b"), FileDownloadRequest(source="missing")]
    found, missing = await sandbox.fs.download_files(wanted)
    assert (found.result, found.error) == (b"", None)
    assert missing.result is None
    assert "missing" in (missing.error or "")
    with pytest.raises(DaytonaFileNotFoundError):
        await sandbox.fs.download_file("missing")


async def test_files_are_listed_described_moved_and_deleted(sandbox: AsyncSandbox) -> None:
    await sandbox.fs.create_folder("d", "750")
    await sandbox.fs.upload_file(b"12345", "d/f")
    (folder,) = await sandbox.fs.list_files(".")
    assert (folder.name, folder.is_dir, folder.permissions) == ("d", True, "0750")
    info = await sandbox.fs.get_file_info("d/f")
    assert (info.name, info.size, info.is_dir) == ("f", 5, False)
    await sandbox.fs.move_files("d/f", "g")
    await sandbox.fs.set_file_permissions("g", mode="600")
    assert (await sandbox.fs.get_file_info("g")).permissions == "0600"
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.fs.delete_file("d")
    await sandbox.fs.delete_file("d", recursive=True)
    assert [entry.name for entry in await sandbox.fs.list_files("")] == ["g"]
    with pytest.raises(DaytonaFileNotFoundError):
        await sandbox.fs.get_file_info("d")


@pytest.mark.parametrize("path", ["../../outside", "/outside", "link/outside"])
async def test_nothing_is_written_outside_of_the_sandbox(
    sandbox: AsyncSandbox, tmp_path: Path, path: str
) -> None:
    await sandbox.process.exec(f"ln -s {tmp_path} link; ln -s {tmp_path}/outside leads-out")
    for target in (path, "leads-out"):
        with pytest.raises(DaytonaError, match="sandbox") as caught:
            await sandbox.fs.upload_file(b"x", target)
        assert caught.value.status_code == 400
    with pytest.raises(DaytonaFileAccessDeniedError):
        await sandbox.fs.delete_file(path)
    await sandbox.fs.delete_file("leads-out")
    assert os.listdir(tmp_path) == []
    assert "outside" not in os.listdir("/")


async def test_a_pipe_in_the_sandbox_blocks_nobody(sandbox: AsyncSandbox) -> None:
    await sandbox.process.exec("mkfifo pipe")
    with pytest.raises(DaytonaError, match="not a regular file"):
        await sandbox.fs.download_file("pipe")
    with pytest.raises(DaytonaError, match="not a regular file"):
        await sandbox.fs.upload_file(b"x", "pipe")


async def test_a_clone_has_one_branch_and_a_clean_status(
    sandbox: AsyncSandbox, remote: str
) -> None:
    await sandbox.git.clone(remote, "work", branch="other")
    status = await sandbox.git.status("work")
    assert (status.current_branch, status.file_status, status.ahead) == ("other", [], 0)
    assert (await sandbox.git.branches("work")).branches == ["other"]


async def test_a_clone_of_a_commit_is_detached(sandbox: AsyncSandbox, remote: str) -> None:
    first = (await sandbox.process.exec("git -C seed rev-parse HEAD~1")).result.strip()
    await sandbox.git.clone(remote, "work", commit_id=first)
    assert (await sandbox.git.status("work")).detached is True
    assert (await sandbox.process.exec("git -C work rev-parse HEAD")).result.strip() == first


async def test_changes_are_staged_committed_and_pushed(sandbox: AsyncSandbox, remote: str) -> None:
    await sandbox.git.clone(remote, "work")
    await sandbox.process.exec("cd work && echo x > 'new file' && echo y >> one && git mv two 2")
    status = await sandbox.git.status("work")
    seen = {
        item.name: (item.staging.value, item.worktree.value, item.extra)
        for item in status.file_status
    }
    assert seen == {
        "new file": ("Untracked", "Untracked", ""),
        "one": ("Unmodified", "Modified", ""),
        "2": ("Renamed", "Unmodified", "two"),
    }
    await sandbox.git.add("work", ["new file", "one"])
    commit = await sandbox.git.commit("work", "a message", "A B", "a@b.c")
    await sandbox.git.push("work")
    tip = await sandbox.process.exec(f"git -C {remote} log -1 --format='%H %an %s' main")
    assert tip.result.strip() == f"{commit.sha} A B a message"


async def test_git_failures_have_their_own_errors(sandbox: AsyncSandbox, remote: str) -> None:
    with pytest.raises(DaytonaGitBranchNotFoundError):
        await sandbox.git.clone(remote, "a", branch="nope")
    with pytest.raises(DaytonaGitRepoNotFoundError):
        await sandbox.git.clone(f"{remote}-missing", "a")
    with pytest.raises(DaytonaGitTransportFailedError):
        await sandbox.git.clone("http://127.0.0.1:9/x.git", "a")
    with pytest.raises(DaytonaGitRepoNotFoundError):
        await sandbox.git.status("seed/..")
    with pytest.raises(DaytonaBadRequestError):
        await sandbox.git.clone(remote, "a", commit_id="--orphan")
    await sandbox.git.clone(remote, "a")
    with pytest.raises(DaytonaConflictError):
        await sandbox.git.clone(remote, "a")


async def test_credentials_are_neither_arguments_nor_stored(
    sandbox: AsyncSandbox, tmp_path: Path
) -> None:
    seen = asyncio.get_running_loop().create_future()

    async def challenge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        arguments = (await sandbox.process.exec("ps -eo args")).result
        if not seen.done():
            seen.set_result((request, arguments))
        writer.write(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(challenge, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(DaytonaError) as caught:
            await sandbox.git.clone(
                f"http://127.0.0.1:{port}/r.git", "w", username="u", password="pass-word"
            )
    assert caught.value.code == "GIT_AUTH_FAILED"
    request, arguments = await seen
    assert "Authorization: Basic dTpwYXNzLXdvcmQ=" in request
    assert "dTpwYXNzLXdvcmQ" not in arguments
    assert "pass-word" not in arguments
