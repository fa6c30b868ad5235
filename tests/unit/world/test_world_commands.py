"""What a person gets who asks a world for something it cannot do: one line, and nothing is made."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.control_plane.made_up_machine import Machine, write_program

from issuesandbox.local.folder_lock import lock_folder
from issuesandbox.local.world import cli
from issuesandbox.local.world.layout import Layout
from issuesandbox.local.world.outside import real_outside


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


def test_the_advice_names_only_the_ways_that_the_command_has(tmp_path: Path) -> None:
    machine = Machine(tmp_path, io.StringIO())
    write_program(machine.path / "git", "true")
    machine.go(before="exit 1")
    environment = {**machine.environment, "KUBEBUILDER_ASSETS": ""}
    refused = run("up", "--dir", str(tmp_path / "world"), **environment)
    assert refused.exit_code == 1
    last = refused.stderr.splitlines()[-1]
    assert "(1) set KUBEBUILDER_ASSETS" in last
    assert "--kubeconfig" not in refused.output


REAL = {
    "DAYTONA_API_KEY": "dtn_0123456789",
    "DAYTONA_TARGET": "eu",
    "GITHUB_TOKEN": "ghp_0123456789",
    "GITHUB_WEBHOOK_SECRET": "a secret",
    "ANTHROPIC_API_KEY": "sk-ant-0123456789",
    "HOME": "/root",
}


def test_with_real_services_all_that_is_missing_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*REAL, "GITHUB_APP_ID"]:
        monkeypatch.delenv(name, raising=False)
    refused = run("up", "--real", "--dir", str(tmp_path / "world"), GITHUB_APP_ID="1")
    assert refused.exit_code == 1
    assert [line for line in refused.stderr.splitlines() if line.startswith("  - ")] == [
        "  - DAYTONA_API_KEY",
        "  - GITHUB_WEBHOOK_SECRET",
        "  - GITHUB_TOKEN (or GITHUB_APP_ID with GITHUB_APP_PRIVATE_KEY)",
        "  - ANTHROPIC_API_KEY",
    ]
    assert not (tmp_path / "world").exists()


def test_each_part_gets_its_own_share_of_the_real_services() -> None:
    outside = real_outside(REAL)
    assert set(outside.for_operator()) == {"DAYTONA_API_KEY", "DAYTONA_TARGET", "GITHUB_TOKEN"}
    assert set(outside.for_webhook()) == {"GITHUB_TOKEN", "GITHUB_WEBHOOK_SECRET"}
    assert "0123456789" not in repr(outside)
    files = {
        "DAYTONA_API_KEY_FILE": "a",
        "GITHUB_APP_ID": "1",
        "GITHUB_APP_PRIVATE_KEY_FILE": "b",
        "GITHUB_WEBHOOK_SECRET_FILE": "c",
    }
    told = real_outside({**files, "ANTHROPIC_API_KEY": "k"})
    assert told.settings == files
    assert "GITHUB_WEBHOOK_SECRET_FILE" not in told.for_operator()
