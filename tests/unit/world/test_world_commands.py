"""What a person gets who asks a world for something it cannot do: one line, and nothing is made."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from issuesandbox.local.folder_lock import lock_folder
from issuesandbox.local.world import cli
from issuesandbox.local.world.layout import Layout


def run(command: str, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(getattr(cli, command), arguments, env=environment)


def refusal(command: str, *arguments: str, **environment: str) -> str:
    """Return the one line that a command refused with."""
    result = run(command, *arguments, **environment)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Layout]:
    """The folder of a world that somebody runs."""
    lock = lock_folder(tmp_path)
    yield Layout(tmp_path)
    os.close(lock)


def test_looking_for_a_world_makes_nothing(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    assert f"no world runs in {tmp_path}" in run("down", "--dir", str(tmp_path)).output
    assert "start one with `make up`" in refusal("shell", "--dir", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("damage", ["export A='unclosed\n", "export A\n", "\udcff", "=\n"])
def test_a_damaged_environment_is_told(held: Layout, damage: str) -> None:
    held.environment.write_text(damage, errors="surrogateescape")
    line = refusal("shell", "--dir", str(held.root))
    assert line.startswith(f"Error: {held.environment} is missing or damaged")
    assert "`make down` and `make up`" in line


def test_a_shell_that_does_not_exist_is_told(held: Layout) -> None:
    held.environment.write_text("export ISSUESANDBOX_KUBECTL=/bin/kubectl\n")
    line = refusal("shell", "--dir", str(held.root), SHELL="/no/such/shell")
    assert line == "Error: cannot start /no/such/shell (No such file or directory); set SHELL"


def test_what_kubectl_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "error: spec.issue.number: Required value\nspec.issue.repository: Required value\n"

    async def refused(*_: object) -> None:
        raise subprocess.CalledProcessError(1, ["kubectl"], stderr=said)

    monkeypatch.setattr(cli, "_demo", refused)
    line = refusal("demo")
    assert line == f"Error: kubectl refused: {' / '.join(said.splitlines())}"


def test_a_world_elsewhere_is_named_in_the_first_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    there = str(tmp_path / "file" / "my world")
    first = run("up", "--dir", there).output.splitlines()[0]
    assert first.startswith(f"In another terminal:  make shell WORLD='{there}' ")
