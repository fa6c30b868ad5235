"""The command line of the real CLI, its refusals and its traps."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from agent_process import HEADLESS, SESSION, STREAM, Claude

from issuesandbox.local.agent.shim import PROGRAM

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")


def test_version_is_told_without_a_session(claude: Claude) -> None:
    outcome = claude.run("--version")
    assert (outcome.code, outcome.stdout) == (0, b"2.1.325 (Claude Code)\n")


def test_help_lists_every_step_of_a_scenario(claude: Claude) -> None:
    outcome = claude.run("--help")
    assert outcome.code == 0
    assert b"stubborn COUNT" in outcome.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "--no-such-flag", "x"], "unknown option '--no-such-flag'"),
        (["-p", "--output-format", "stream-json", "x"], "requires --verbose"),
        (["-p", "--output-format", "xml", "x"], "Allowed choices are"),
        (["-p", "--max-turns", "many", "x"], "not a positive number"),
        (["-p", "--model"], "argument missing"),
        (["-p", "--session-id", "12", "x"], "Must be a valid UUID"),
        (["-p", "--session-id", SESSION, "--resume", SESSION, "x"], "--fork-session"),
        (["-p", "--resume", "--verbose", "x"], "requires a valid session ID"),
        (["-p", "--append-system-prompt-file", "nowhere", "x"], "file not found: nowhere"),
        (["-p", "--mcp-config", "nowhere", "--", "x"], "file not found: nowhere"),
        (["-p"], "Input must be provided"),
        (["-p", "  "], "Input must be provided"),
    ],
)
def test_a_bad_command_line_gets_one_line_and_no_output(
    claude: Claude, arguments: list[str], message: str
) -> None:
    outcome = claude.run(*arguments)
    assert outcome.code == 1
    assert outcome.stdout == b""
    assert message in outcome.stderr
    assert outcome.stderr.count("\n") == 1


@as_root
@pytest.mark.parametrize(
    "bypass", [["--dangerously-skip-permissions"], ["--permission-mode", "bypassPermissions"]]
)
def test_root_may_not_skip_permissions_outside_a_sandbox(claude: Claude, bypass: list[str]) -> None:
    refused = claude.run(*STREAM, *bypass, "x", env={"IS_SANDBOX": None})
    assert (refused.code, refused.stdout) == (1, b"")
    assert "cannot be used with root/sudo privileges" in refused.stderr
    assert claude.run(*STREAM, *bypass, "x").code == 0


@as_root
def test_root_may_run_in_the_other_modes(claude: Claude) -> None:
    for mode in ("acceptEdits", "dontAsk", "default"):
        outcome = claude.run(*STREAM, "--permission-mode", mode, "x", env={"IS_SANDBOX": None})
        assert outcome.code == 0


@pytest.mark.parametrize("flag", ["--allowedTools", "--mcp-config"])
def test_a_variadic_flag_swallows_the_prompt_unless_dashes_end_it(
    claude: Claude, flag: str
) -> None:
    value = '{"mcpServers": {}}'
    swallowed = claude.run(*STREAM, flag, value, "{}")
    assert "Input must be provided" in swallowed.stderr
    assert claude.run(*STREAM, flag, value, "--", "Do it.").code == 0


def test_a_prompt_that_begins_with_a_dash_is_read_as_flags(claude: Claude) -> None:
    outcome = claude.run(*STREAM, "-rf everything")
    assert outcome.code == 1
    assert "No conversation found with session ID: f everything" in outcome.stderr
    assert claude.run(*STREAM, "--", "-rf everything").code == 0
    assert claude.run(*STREAM, stdin=b"-rf everything").code == 0


def test_argument_and_stdin_are_joined_argument_first(claude: Claude) -> None:
    claude.run(*HEADLESS, "first", stdin=b"second")
    prompt = json.loads(claude.transcripts()[0].read_text().splitlines()[0])
    assert prompt["message"]["content"] == "first\nsecond"


def test_an_open_silent_stdin_costs_three_seconds_and_a_warning(claude: Claude) -> None:
    reader, writer = os.pipe()
    process = claude.start(*HEADLESS, "x", stdin=reader)
    _, stderr = process.communicate(timeout=20)
    os.close(reader)
    os.close(writer)
    assert process.returncode == 0
    assert b"no stdin data received in 3s" in stderr


def test_stdin_over_ten_megabytes_is_refused(claude: Claude) -> None:
    outcome = claude.run(*HEADLESS, stdin=b"x" * 10_000_001)
    assert (outcome.code, outcome.stdout) == (1, b"")


def test_the_plain_formats_print_the_result_alone(claude: Claude) -> None:
    flags = ["-p", "--dangerously-skip-permissions"]
    text = claude.run(*flags, "x", scenario="write a b\nsay All done.")
    assert text.stdout == b"All done.\n"
    one = claude.run(*flags, "--output-format", "json", "x", scenario="say All done.")
    assert [line["type"] for line in one.lines] == ["result"]
    assert one.result["result"] == "All done."


def test_a_known_slash_command_runs_without_the_model(claude: Claude) -> None:
    for flags in ([], ["--disable-slash-commands"]):
        outcome = claude.run(*HEADLESS, *flags, stdin=b"/cost")
        assert (outcome.code, outcome.result["num_turns"]) == (0, 0)
        assert outcome.result["subtype"] == "success"
        assert outcome.of("assistant") == []
    for text in (b" /cost", b"Look:\n/cost", b"/unheard-of"):
        assert claude.run(*HEADLESS, stdin=text).of("assistant")


def test_the_default_mode_denies_writes_and_still_succeeds(claude: Claude) -> None:
    outcome = claude.run(*STREAM, "x", scenario="write a b\nbash touch c")
    assert (outcome.code, outcome.result["is_error"]) == (0, False)
    assert [denied["tool_name"] for denied in outcome.result["permission_denials"]] == [
        "Write",
        "Bash",
    ]
    assert len(outcome.of("system", "permission_denied")) == 2
    assert list(claude.work.iterdir()) == []


@pytest.mark.parametrize(
    "flags",
    [
        ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
        ["--permission-mode", "dontAsk", "--allowedTools", "Bash,Write,Edit,Read"],
        ["--allowedTools", "Bash(touch:*)", "Write"],
    ],
)
def test_named_tools_do_the_whole_job_without_bypass(claude: Claude, flags: list[str]) -> None:
    outcome = claude.run(*STREAM, *flags, "--", "x", scenario="write a b\nbash touch c")
    assert outcome.result["permission_denials"] == []
    assert sorted(path.name for path in claude.work.iterdir()) == ["a", "c"]


def test_bare_has_fewer_tools(claude: Claude) -> None:
    assert claude.run(*HEADLESS, "--", "x").init["tools"] == ["Bash", "Edit", "Read", "Write"]
    assert claude.run(*HEADLESS, "--bare", "--", "x").init["tools"] == ["Bash", "Edit", "Read"]


def test_init_tells_what_the_run_was_given(claude: Claude) -> None:
    servers = {
        "good": {"command": "sleep", "args": ["60"]},
        "gone": {"command": "/nowhere/server"},
        "dead": {"command": "false"},
    }
    (claude.work / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    flags = ["--model", "claude-x", "--strict-mcp-config", "--mcp-config", "servers.json"]
    init = claude.run(*HEADLESS, *flags, "--", "x").init
    assert init["cwd"] == str(claude.work)
    assert init["model"] == "claude-x"
    assert init["permissionMode"] == "bypassPermissions"
    assert init["apiKeySource"] == "ANTHROPIC_API_KEY"
    assert init["claude_code_version"] == "2.1.325"
    states = {server["name"]: server["status"] for server in init["mcp_servers"]}
    assert states == {"good": "connected", "gone": "failed", "dead": "failed"}


def test_the_command_of_this_project_passes_every_argument_on(
    claude: Claude, tmp_path: Path
) -> None:
    command = "import sys; from issuesandbox.local.agent.cli import agent; agent(sys.argv[1:])"
    root = str(PROGRAM.parents[4])
    done = subprocess.run(
        [sys.executable, "-c", command, "-p", "--allowedTools", "Bash", "--", "-rf"],
        env={**claude.env, "PYTHONPATH": root, "ISSUESANDBOX_SCENARIO": "say hello\nexit 7"},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (7, b"")


def test_the_folder_runs_on_its_own_where_nothing_is_installed(
    claude: Claude, tmp_path: Path
) -> None:
    alone = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(PROGRAM.parent, alone, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(alone), "-p", "x"],
        env={**claude.env, "ISSUESANDBOX_SCENARIO": "say hello"},
        cwd=claude.work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")
