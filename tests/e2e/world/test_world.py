"""The local world as a newcomer meets it: up, demo, down, and every rough way to end it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.checker.guard import guarded
from issuesandbox.local.daytona.config import DEFAULT_KEY
from issuesandbox.local.world.judged import judged
from issuesandbox.local.world.layout import NAMESPACE, Layout

ROOT = Path(__file__).resolve().parents[3]
ISSUESANDBOX = [sys.executable, "-P", "-m", "issuesandbox"]
# Seven programs start in each of these; on a busy machine that takes its time.
pytestmark = pytest.mark.timeout(300)
PARTS = {"etcd", "kube-apiserver", "daytona", "operator"}
# A line of the story: when, which resource, its phase.
WATCHED = r"\d\d:\d\d:\d\d +\S+ +(\w+)"
TOKEN = "ghp_of_no_use_outside"


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
def running(
    command: list[str], log: Path, until: str = "Ready.", **environment: str
) -> Iterator[psutil.Popen]:
    """Run a world in the background until it is ready; whatever is left at the end is killed."""
    with log.open("wb") as output:
        process = psutil.Popen(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
    family: list[psutil.Process] = []
    try:

        def ready() -> bool:
            assert process.poll() is None, log.read_text()
            return until in log.read_text()

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
        settle(folder)


def settle(folder: Path) -> None:
    """Let a resource get its sandbox."""
    sample = str(ROOT / "manifests" / "samples" / "sandbox-only.yaml")
    kubectl(folder, "apply", "-f", sample)
    kubectl(folder, "wait", "isb", "--all", "--for=condition=Ready", "--timeout=60s")


def kubectl(folder: Path, *arguments: str) -> str:
    environment = Layout(folder).read_environment()
    command = [environment["ISSUESANDBOX_KUBECTL"], "--kubeconfig", environment["KUBECONFIG"]]
    done = subprocess.run([*command, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def all_gone(family: list[psutil.Process]) -> bool:
    return not any(is_alive(each) for each in family)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != "zombie"
    except psutil.NoSuchProcess:
        return False  # It ended between the two questions.


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


async def test_ctrl_c_ends_a_world_of_real_services_cleanly(tmp_path: Path) -> None:
    # Simulators that the world did not start are as real as anything to it.
    folder, log = tmp_path / "world", tmp_path / "log"
    command = [*ISSUESANDBOX, "local", "up", "--real", "--dir", str(folder)]
    with alone("daytona") as daytona, alone("github", "--token", f"{TOKEN}=octocat") as github:
        secrets = {
            "DAYTONA_API_KEY": DEFAULT_KEY,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_WEBHOOK_SECRET": "secret of the webhook",
            "ANTHROPIC_API_KEY": "sk-ant-0123456789",
        }
        places = {"DAYTONA_API_URL": f"{daytona}/api", "GITHUB_API_URL": github}
        with running(command, log, **places, **secrets) as world:
            uid = kubectl(folder, "get", "ns", NAMESPACE, "-o", "jsonpath={.metadata.uid}")
            logs = (Layout(folder).logs, Layout(folder).environment)
            sources = Sources(uid, f"{daytona}/_sim", github, logs=logs, secrets=secrets)
            kubeconfig = Layout(folder).read_environment()["KUBECONFIG"]
            async with guarded(sources, Path(kubeconfig)):
                settle(folder)
            family = world.children(recursive=True)
            world.send_signal(signal.SIGINT)
            assert world.wait(30) == 0
            assert all_gone(family)
    said = log.read_text()
    assert f"Daytona         {daytona}/api (real)\n" in said
    assert f"GitHub          {github} (real)\n" in said
    assert "Traceback" not in said
    assert not {"daytona", "github"} & {path.name for path in folder.iterdir()}


@contextmanager
def alone(service: str, *options: str) -> Iterator[str]:
    """Run a simulator by itself and yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [*ISSUESANDBOX, "local", service, "--port", "0", *options]
        with running(command, log, until="\n") as process:
            found = re.search(r"http://[\d.:]+", log.read_text())
            assert found is not None, log.read_text()
            yield found[0]
            process.terminate()
            process.wait(10)


def test_a_demonstration_that_is_interrupted_is_no_success(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running([*ISSUESANDBOX, "local", "demo"], log, until="API server") as demo:
        family = demo.children(recursive=True)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 1
        assert all_gone(family)
    assert log.read_text().endswith("Error: stopped before its end\n")
    assert "Traceback" not in log.read_text()


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
        down = make("down", f"WORLD={folder}")
        assert (down.returncode, down.stdout) == (0, "stopped\n")
        assert world.wait(10) == 0
    assert "no world runs" in make("down", f"WORLD={folder}").stdout


async def test_a_shell_inside_the_world_has_kubectl_and_its_cluster(tmp_path: Path) -> None:
    folder = str(tmp_path / "world")
    with running([*ISSUESANDBOX, "local", "up", "--dir", folder], tmp_path / "log") as world:
        script = tmp_path / "shell"
        script.write_text("#!/bin/sh\nkubectl get isb -A && kubectl isb list\n")
        script.chmod(0o700)
        async with judged(Layout(tmp_path / "world")):
            shell = make("shell", f"WORLD={folder}", SHELL=str(script))
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
    demo = make("demo")
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
    assert told(shown) == told(story), "run `make demo` and paste its output"
    assert phases(shown) == phases(story), "run `make demo` and paste its output"
    for text in (shown, story):
        github = re.findall(r"^GitHub +(\S+)", text, re.M)
        assert set(re.findall(r"(http://\S+?)/octocat/", text)) == set(github), "two runs in one"


def told(story: str) -> list[str]:
    """Return all but the watch's lines of a demonstration, without what differs between two."""
    masks = {
        r"127\.0\.0\.1:\d+": "HERE",
        r"\b[0-9a-f]{12}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b": "ID",
        r"\b\d+ ?(ms|s)\b|less than a second": "TIME",
        r" +": " ",
    }
    lines = [line for line in story.splitlines() if not re.match(WATCHED, line)]
    for pattern, mask in masks.items():
        lines = [re.sub(pattern, mask, line) for line in lines]
    return lines


def phases(story: str) -> set[str]:
    """Return what the watch saw; how often and in which words depends on the moment."""
    return {match[1] for line in story.splitlines() if (match := re.match(WATCHED, line))}


def test_help_lists_every_target() -> None:
    listed = re.findall(r"^  make (\w+) +\S", make("help").stdout, re.M)
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert declared is not None
    assert sorted(listed) == sorted(declared[1].split())


def test_a_folder_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused = run("local", "up", "--dir", str(blocked / "world"))
    assert refused.returncode == 1
    assert "choose another --dir" in refused.stderr
    assert "Traceback" not in refused.stderr


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return execute([*ISSUESANDBOX, *arguments], environment)


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return execute(["make", "--no-print-directory", *arguments], environment)


def execute(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
