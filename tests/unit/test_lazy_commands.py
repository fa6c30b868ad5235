"""Commands are imported when they are called, and say which extra they need."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from issuesandbox.entry.cli import cli
from issuesandbox.entry.plugin import plugin


@pytest.mark.parametrize(
    ("command", "module", "package", "extra"),
    [
        ("mcp", "issuesandbox.entry.mcp_server", "mcp.server.mcpserver", "mcp"),
        ("local", "issuesandbox.local.cli", "click", "local"),
    ],
)
def test_a_missing_extra_is_named_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, command: str, module: str, package: str, extra: str
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    done = CliRunner().invoke(cli, [command])
    assert done.exit_code == 1
    assert f"'{command}' needs the package {package}" in done.output
    assert f"pip install 'issuesandbox[{extra}]'" in done.output


def test_help_lists_every_command_without_importing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "issuesandbox.entry.run", None)  # type: ignore[arg-type]
    done = CliRunner().invoke(cli, ["--help"])
    assert done.exit_code == 0
    assert "Run the operator." in done.output


def test_a_slip_of_the_fingers_is_answered_with_the_right_word() -> None:
    done = CliRunner().invoke(plugin, ["lsit"])
    assert done.exit_code == 2
    assert "No such command 'lsit'; did you mean list?" in done.output
    assert "No such command 'xyzzy'." in CliRunner().invoke(plugin, ["xyzzy"]).output
