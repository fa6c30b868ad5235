"""Nothing a world started outlives it, and nothing else is touched."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from control_plane_command import until

from issuesandbox.local.processes import MARKER, Leash, spawn

SLEEP = str(shutil.which("sleep"))

WORLD = """
import asyncio, sys
from pathlib import Path
from issuesandbox.local.processes import Leash, spawn
state = Path(sys.argv[1])
leash = Leash.attach(state)
spawn("tree", ["sh", "-c", sys.argv[2]], leash=leash, log=state / "log")
asyncio.run(asyncio.sleep(1000))
"""


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_in(file: Path) -> int:
    until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


@pytest.fixture
async def leash(tmp_path: Path) -> AsyncIterator[Leash]:
    leash = Leash.attach(tmp_path)
    yield leash
    await leash.release()


@pytest.fixture
def bystanders() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that no sweep may touch; ended by the test itself."""
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        with process:
            process.kill()


async def test_a_child_is_asked_first_and_its_output_is_kept(leash: Leash, tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 3' TERM; echo hello; while :; do sleep 0.05; done"
    child = spawn("polite", ["sh", "-c", script], leash=leash, log=tmp_path / "log")
    until(lambda: child.last_lines() == ["hello"])
    assert await child.stop() == 3
    assert child.last_lines() == ["hello", "bye"]


async def test_a_child_that_does_not_listen_is_killed_with_its_group(
    leash: Leash, tmp_path: Path
) -> None:
    script = f"trap '' TERM; sleep 1000 & echo $! > {tmp_path}/pid; wait; wait"
    child = spawn("deaf", ["sh", "-c", script], leash=leash, log=tmp_path / "log")
    grandchild = pid_in(tmp_path / "pid")
    assert await child.stop(grace=0.2) == -signal.SIGKILL
    until(lambda: not alive(grandchild))


async def test_a_program_that_is_not_there_is_told_in_the_log(leash: Leash, tmp_path: Path) -> None:
    child = spawn("none", ["/no/such/program"], leash=leash, log=tmp_path / "log")
    assert await child.wait() == 1
    assert child.last_lines() == ["cannot start /no/such/program: No such file or directory"]


def escapees(state: Path) -> str:
    """Return a script whose processes leave their parent in every way a program can."""
    return f"""
        cd /
        nohup setsid {SLEEP} 1000 & echo $! > {state}/own-session
        (setsid sh -c 'echo $$ > {state}/orphan; exec {SLEEP} 1000' &)
        cd {state} && env -i setsid sh -c 'echo $$ > {state}/no-marker; exec {SLEEP} 1000' &
        wait
    """


def test_a_killed_parent_takes_everything_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WORLD, str(tmp_path), escapees(tmp_path)]
    world = subprocess.Popen(command)
    pids = [pid_in(tmp_path / name) for name in ("own-session", "orphan", "no-marker")]
    assert all(map(alive, pids))
    world.kill()
    world.wait()
    until(lambda: not any(map(alive, pids)))


async def test_a_clean_stop_sweeps_the_same_way(tmp_path: Path) -> None:
    leash = Leash.attach(tmp_path)
    child = spawn("tree", ["sh", "-c", escapees(tmp_path)], leash=leash, log=tmp_path / "log")
    pids = [pid_in(tmp_path / name) for name in ("own-session", "orphan", "no-marker")]
    await child.stop(grace=1)
    assert any(map(alive, pids))
    await leash.release()
    assert not any(map(alive, pids))


def test_what_belongs_to_others_is_left_alone(
    tmp_path: Path, bystanders: list[subprocess.Popen[bytes]]
) -> None:
    bystanders.append(subprocess.Popen([SLEEP, "1000"], cwd=tmp_path))  # older than the world
    leash = Leash.attach(tmp_path)
    other_world = {**os.environ, MARKER: "another"}
    bystanders.append(subprocess.Popen([SLEEP, "1000"], cwd=tmp_path, env=other_world))
    shell = f"cd {tmp_path}; echo $$ > on-a-terminal; exec {SLEEP} 1000"
    terminal = f"import pty; pty.spawn(['sh', '-c', {shell!r}])"
    bystanders.append(subprocess.Popen([sys.executable, "-c", terminal], stdin=subprocess.PIPE))
    on_a_terminal = pid_in(tmp_path / "on-a-terminal")
    asyncio.run(leash.release())
    assert [process.poll() for process in bystanders] == [None, None, None]
    assert alive(on_a_terminal)
    # Where a hang-up is ignored, as under nohup, the end of its terminal does not end it.
    os.kill(on_a_terminal, signal.SIGKILL)
