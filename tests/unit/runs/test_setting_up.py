"""Setup commands are run once, however often and by however many they are asked for."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from issuesandbox.domain.supervision import RunPaths
from issuesandbox.engine.runs.setting_up import once


def begin(line: str, folder: Path) -> subprocess.Popen[str]:
    """Ask for a line; who asked may go away, as far as the line is concerned."""
    return subprocess.Popen(["sh", "-c", line], cwd=folder, stdout=subprocess.PIPE, text=True)


def test_whoever_comes_later_waits_and_takes_the_same_code(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    command = "echo x >>log; read _ <go; echo 'it''s'; exit 3"
    line = once(RunPaths(str(tmp_path), "r1"), "setup-1", command)
    asked = [begin(line, tmp_path) for _ in range(3)]
    # Opened only when one of them reads.
    (tmp_path / "go").write_text("go\n")
    answers = [(each.communicate(timeout=20)[0], each.returncode) for each in asked]
    assert answers == [("its\n", 3)] * 3
    again = begin(line, tmp_path)
    assert (again.communicate(timeout=20)[0], again.returncode) == ("its\n", 3)
    assert (tmp_path / "log").read_text() == "x\n"


def test_one_who_died_over_it_does_not_hold_it(tmp_path: Path) -> None:
    paths = RunPaths(str(tmp_path), "r1")
    Path(paths.inputs).mkdir(parents=True)
    # No process has such an id.
    (Path(paths.inputs) / "setup-1.lock").symlink_to("4194999")
    asked = begin(once(paths, "setup-1", "echo x"), tmp_path)
    assert (asked.communicate(timeout=20)[0], asked.returncode) == ("x\n", 0)


def test_what_an_earlier_agent_planted_is_run_by_nobody_but_the_command(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    for name in ("mkdir", "ln", "rm", "mv", "cat", "tail", "readlink", "sleep", "tool"):
        (planted / name).write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/caught\n")
        (planted / name).chmod(0o755)
    # The lock of one who died, so that every program is needed.
    paths = RunPaths(str(tmp_path), "r1")
    Path(paths.inputs).mkdir(parents=True)
    (Path(paths.inputs) / "setup-1.lock").symlink_to("4194999")
    path = f"{planted}:{os.environ['PATH']}"
    line = once(paths, "setup-1", 'tool; echo "$PATH"; echo "${ISSUESANDBOX_PATH-}"')
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        env={"PATH": path},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert done.stdout == f"{path}\n\n"
    assert (tmp_path / "caught").read_text() == "tool\n"
