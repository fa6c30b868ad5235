"""The toolbox adapter: what it brings back, and which failure is which."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest
from toolbox_stage import KEY, Stage, eventually

from issuesandbox.adapters.daytona.toolbox import DaytonaToolbox
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import Conflict, Denied, Invalid, NotFound, Unavailable
from issuesandbox.ports.toolbox import Clone


async def test_the_home_directory_is_absolute_and_its_address_is_asked_for_once(
    stage: Stage,
) -> None:
    home = await stage.toolbox.home(stage.id)
    before = await stage.calls("sandbox.get")
    assert await stage.toolbox.home(stage.id) == home
    assert home.startswith("/")
    assert await stage.calls("sandbox.get") == before


async def test_a_command_gets_its_environment_and_its_folder(stage: Stage) -> None:
    home = await stage.toolbox.home(stage.id)
    os.mkdir(f"{home}/here")
    done = await stage.toolbox.execute(
        stage.id, "pwd; echo $WORD; exit 3", seconds=5, env={"WORD": "a b"}, cwd=f"{home}/here"
    )
    assert (done.exit_code, done.output) == (3, f"{home}/here\na b\n")


async def test_a_command_that_takes_too_long_is_not_answered_for(stage: Stage) -> None:
    began = time.monotonic()
    with pytest.raises(Unavailable) as caught:
        await stage.toolbox.execute(stage.id, "sleep 60", seconds=1)
    assert caught.value.code == "CommandTimeout"
    assert time.monotonic() - began < 4


async def test_a_toolbox_that_does_not_answer_is_given_up(stage: Stage) -> None:
    await stage.toolbox.home(stage.id)
    await stage.fault(fault="slow", kind="toolbox.home_dir", delay=3, count=1)
    began = time.monotonic()
    with pytest.raises(Unavailable, match="no answer") as caught:
        await stage.toolbox.home(stage.id)
    assert caught.value.code == "NoAnswer"
    assert 1.5 < time.monotonic() - began < 4

    async def answered() -> bool:
        return await stage.calls("toolbox.home_dir") == 2

    await eventually(answered)


async def test_files_of_any_content_come_back_as_they_were(stage: Stage) -> None:
    home = await stage.toolbox.home(stage.id)
    files = {
        f"{home}/a/b/c d.bin": bytes(range(256)) * 5000,
        f"{home}/äö 'quoted'.txt": "grüße\n".encode(),
        f"{home}/empty": b"",
    }
    await stage.toolbox.upload(stage.id, files)
    for path, content in files.items():
        assert await stage.toolbox.download(stage.id, path, limit=2_000_000) == content


async def test_a_file_that_is_missing_or_too_large_is_refused(stage: Stage) -> None:
    home = await stage.toolbox.home(stage.id)
    with pytest.raises(NotFound):
        await stage.toolbox.download(stage.id, f"{home}/none", limit=10)
    await stage.toolbox.upload(stage.id, {f"{home}/big": b"x" * 100_000})
    with pytest.raises(Invalid) as caught:
        await stage.toolbox.download(stage.id, f"{home}/big", limit=99_999)
    assert caught.value.code == "TooLarge"


async def test_an_upload_that_fails_says_which_file(stage: Stage) -> None:
    with pytest.raises(Invalid, match="outside"):
        await stage.toolbox.upload(stage.id, {"/proc/none": b"x"})


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """A repository to clone."""
    folder = tmp_path / "remote"
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid", "-C", str(folder)]
    folder.mkdir()
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True)
    (folder / "README.md").write_text("hello\n")
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "first"], check=True)
    return str(folder)


async def test_a_clone_fills_a_free_path_and_refuses_a_taken_one(stage: Stage, remote: str) -> None:
    home = await stage.toolbox.home(stage.id)
    clone = Clone(url=remote, path=f"{home}/work.1", branch="main")
    await stage.toolbox.clone(stage.id, clone, seconds=20)
    readme = await stage.toolbox.download(stage.id, f"{home}/work.1/README.md", limit=100)
    assert readme == b"hello\n"
    with pytest.raises(Conflict):
        await stage.toolbox.clone(stage.id, clone, seconds=20)
    missing = Clone(url=remote, path=f"{home}/work.2", branch="none")
    with pytest.raises(NotFound):
        await stage.toolbox.clone(stage.id, missing, seconds=20)
    head = f"git -C {home}/work.1 rev-parse HEAD"
    commit = (await stage.toolbox.execute(stage.id, head, seconds=5)).output.strip()
    exact = Clone(url=remote, path=f"{home}/work.3", branch="main", commit=commit)
    await stage.toolbox.clone(stage.id, exact, seconds=20)
    branch = f"git -C {home}/work.3 branch --show-current"
    assert (await stage.toolbox.execute(stage.id, branch, seconds=5)).output.strip() == ""


async def test_a_refused_clone_does_not_repeat_the_credential(stage: Stage) -> None:
    home = await stage.toolbox.home(stage.id)
    secret = "a-password-that-nobody-sees"
    message = f"cannot read https://x:{secret}@example.invalid"
    await stage.fault(
        fault="status", kind="toolbox.git.clone", status=403, message=message, count=1
    )
    clone = Clone(url="https://example.invalid/a", path=f"{home}/w", username="x", password=secret)
    with pytest.raises(Denied) as caught:
        await stage.toolbox.clone(stage.id, clone, seconds=20)
    assert secret not in str(caught.value)
    assert secret not in repr(clone)


async def test_what_the_proxy_says_proves_nothing_about_the_request(stage: Stage) -> None:
    await stage.toolbox.home(stage.id)
    await stage.act("stop")
    with pytest.raises(Unavailable) as stopped:
        await stage.toolbox.execute(stage.id, "true", seconds=5)
    assert stopped.value.code == "NotRunning"
    await stage.act("destroy")
    # Daytona's proxy calls the key bad when the sandbox is gone.
    with pytest.raises(Unavailable) as gone:
        await stage.toolbox.download(stage.id, "/etc/passwd", limit=10)
    assert gone.value.code == "NotReachable"


async def test_a_lost_container_and_a_silent_daemon_are_unknown(stage: Stage) -> None:
    await stage.toolbox.home(stage.id)
    await stage.fault(fault="toolbox_down", kind="toolbox.*", count=1)
    with pytest.raises(Unavailable):
        await stage.toolbox.home(stage.id)
    await stage.act("lose-container")
    with pytest.raises(Unavailable) as lost:
        await stage.toolbox.download(stage.id, "/x", limit=10)
    assert lost.value.code == "NotRunning"


async def test_a_cut_connection_is_unknown_and_the_address_is_asked_for_again(
    stage: Stage,
) -> None:
    await stage.toolbox.home(stage.id)
    before = await stage.calls("sandbox.get")
    await stage.fault(fault="reset", kind="toolbox.execute", count=1)
    with pytest.raises(Unavailable):
        await stage.toolbox.execute(stage.id, "true", seconds=5)
    await stage.toolbox.home(stage.id)
    assert await stage.calls("sandbox.get") == before + 1


async def test_a_sandbox_that_does_not_exist_is_not_found_by_the_control_plane(
    stage: Stage,
) -> None:
    with pytest.raises(NotFound):
        await stage.toolbox.home("none")


async def test_a_key_is_never_in_a_message(stage: Stage) -> None:
    toolbox = DaytonaToolbox("http://127.0.0.1:1/api", KEY, Timings())
    try:
        with pytest.raises(Unavailable) as caught:
            await toolbox.home("x")
        assert KEY not in str(caught.value)
    finally:
        await toolbox.close()


async def test_many_long_polls_leave_room_for_a_kill(stage: Stage) -> None:
    await stage.toolbox.home(stage.id)
    naps = [
        asyncio.ensure_future(stage.toolbox.execute(stage.id, "sleep 4", seconds=10))
        for _ in range(120)
    ]
    await asyncio.sleep(0)
    began = time.monotonic()
    await stage.toolbox.execute(stage.id, "true", seconds=10)
    assert time.monotonic() - began < 4
    await asyncio.gather(*naps)
