"""The local world as a newcomer meets it: up, demo, down, and every rough way to end it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from issuesandbox.local.world.judged import judged
from issuesandbox.local.world.layout import Layout

ROOT = Path(__file__).resolve().parents[3]
ISSUESANDBOX = [sys.executable, "-P", "-m", "issuesandbox"]
# Seven programs start in each of these; on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(300)
PARTS = {"etcd", "kube-apiserver", "daytona", "operator"}


@pytest.fixture(autouse=True)
def _binaries(programs: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail early and clearly where there is no control plane; never draw a progress bar."""
    monkeypatch.setenv("TERM", "dumb")


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 150) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)


@contextmanager
def running(command: list[str], log: Path) -> Iterator[psutil.Popen]:
    """Run a world in the background until it is ready; whatever is left at the end is killed."""
    with log.open("wb") as output:
        process = psutil.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    family: list[psutil.Process] = []
    try:

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            return "Ready." in log.read_text()

        wait_until(ready, "the world to be ready")
        family = [process, *process.children(recursive=True)]
        yield process
    finally:
        # Also where it never got ready, or was ended by the test and left somebody behind.
        left = [process, *process.children(recursive=True)] if process.is_running() else []
        for each in {*family, *left}:
            if each.is_running():
                each.kill()
        process.wait(10)


async def live_in(folder: Path) -> None:
    """Let a resource get its sandbox in a running world, under the eyes of the checker."""
    async with judged(Layout(folder)):
        sample = str(ROOT / "manifests" / "samples" / "sandbox-only.yaml")
        kubectl(folder, "apply", "-f", sample)
        kubectl(folder, "wait", "isb", "--all", "--for=condition=Ready", "--timeout=60s")


def kubectl(folder: Path, *arguments: str) -> None:
    environment = Layout(folder).read_environment()
    command = [environment["ISSUESANDBOX_KUBECTL"], "--kubeconfig", environment["KUBECONFIG"]]
    subprocess.run([*command, *arguments], check=True)


def all_gone(family: list[psutil.Process]) -> bool:
    return not [each for each in family if each.is_running() and each.status() != "zombie"]


@pytest.mark.parametrize("victim", ["make", "world"])
async def test_a_world_whose_make_or_self_is_killed_leaves_no_process(
    tmp_path: Path, victim: str
) -> None:
    world = tmp_path / "world"
    with running(["make", "up", f"WORLD={world}"], tmp_path / "log") as make:
        await live_in(world)
        family = [make, *make.children(recursive=True)]
        names = " ".join(" ".join(each.cmdline()) for each in family)
        assert all(part in names for part in PARTS), names
        target = make if victim == "make" else make.children()[0]
        target.send_signal(signal.SIGKILL)
        make.wait(10)
        wait_until(lambda: all_gone(family), f"all of {len(family)} processes to end", 30)


async def test_ctrl_c_ends_a_world_cleanly(tmp_path: Path) -> None:
    command = [*ISSUESANDBOX, "local", "up", "--dir", str(tmp_path / "world")]
    with running(command, tmp_path / "log") as world:
        await live_in(tmp_path / "world")
        family = world.children(recursive=True)
        world.send_signal(signal.SIGINT)
        assert world.wait(30) == 0
        assert all_gone(family)
    assert "Traceback" not in (tmp_path / "log").read_text()


async def test_a_second_world_in_the_same_folder_is_refused_and_down_ends_the_first(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path / "world")
    with running([*ISSUESANDBOX, "local", "up", "--dir", folder], tmp_path / "log") as world:
        async with judged(Layout(tmp_path / "world")):
            second = run("local", "up", "--dir", folder)
        assert second.returncode == 1
        assert f"a world already runs in {folder} (process {world.pid})" in second.stderr
        assert "Traceback" not in second.stderr
        down = run("local", "down", "--dir", folder)
        assert (down.returncode, down.stdout) == (0, "stopped\n")
        assert world.wait(10) == 0
    assert "no world runs" in run("local", "down", "--dir", folder).stdout


async def test_a_shell_inside_the_world_has_kubectl_and_its_cluster(tmp_path: Path) -> None:
    folder = str(tmp_path / "world")
    with running([*ISSUESANDBOX, "local", "up", "--dir", folder], tmp_path / "log") as world:
        script = tmp_path / "shell"
        script.write_text("#!/bin/sh\nkubectl get isb -A && kubectl isb list\n")
        script.chmod(0o700)
        async with judged(Layout(tmp_path / "world")):
            shell = run("local", "shell", "--dir", folder, SHELL=str(script))
        assert shell.returncode == 0, shell.stderr
        assert "No resources found" in shell.stderr
        assert "No resource in default." in shell.stdout
        log = (tmp_path / "log").read_text()
        assert log.startswith("In another terminal:  make shell")
        world.send_signal(signal.SIGTERM)
        assert world.wait(30) == 0


def test_a_shell_without_a_world_says_how_to_start_one(tmp_path: Path) -> None:
    shell = run("local", "shell", "--dir", str(tmp_path))
    assert shell.returncode == 1
    assert "start one with `make up`" in shell.stderr


def test_the_demonstration_tells_the_whole_story() -> None:
    demo = run("local", "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    story = demo.stdout
    parts = [
        "claude-issue-2 started",
        "was stopped; starting",
        "# Somebody opens an issue on GitHub",
        "octocat/hello-world#1: Greet people by their name",
        "# A pull request is open: http",
        "# What GitHub shows under the issue",
        "Solved: see pull request",
        "Done: every sandbox",
    ]
    positions = [story.find(part) for part in parts]
    assert -1 not in positions, story
    assert positions == sorted(positions), story
    assert "Checked: no promise was broken" in story
    readme = (ROOT / "README.md").read_text()
    shown = readme.split("$ make demo\n", 1)[1].split("```", 1)[0]
    assert steps_of(story) == steps_of(shown), "run `make demo` and paste its output"


def steps_of(story: str) -> list[str]:
    """Return the headings, the commands and the end of a demonstration, without addresses."""
    lines = [
        line for line in story.splitlines() if line.startswith(("# ", "$ ", "Done", "Checked"))
    ]
    return [re.sub(r"http://[\d.:]+", "", line) for line in lines]


def test_a_folder_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused = run("local", "up", "--dir", str(blocked / "world"))
    assert refused.returncode == 1
    assert "choose another --dir" in refused.stderr
    assert "Traceback" not in refused.stderr


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ISSUESANDBOX, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
