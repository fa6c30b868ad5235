"""How each agent is started."""

from __future__ import annotations

import pytest

from issuesandbox.api.spec_agent import Agent, AgentProfile
from issuesandbox.api.spec_common import EnvVar
from issuesandbox.domain.agents.launch import Launch
from issuesandbox.domain.agents.profiles import launch
from issuesandbox.domain.supervision import Limits, RunPaths

PATHS = RunPaths("/home/daytona", "run-1")
SESSION = "6d0a2c7e-0000-4000-8000-0123456789ab"
LIMITS = Limits(inactivity=60, agent=300, run=900)


def made(agent: Agent, *, resume: bool = False, limits: Limits = LIMITS) -> Launch:
    return launch(agent, paths=PATHS, session_id=SESSION, resume=resume, limits=limits)


def test_claude_runs_headless_and_closed_to_what_the_repository_brings() -> None:
    # R40
    found = made(Agent())
    assert " ".join(found.argv) == (
        "claude -p --output-format stream-json --verbose --include-partial-messages "
        "--dangerously-skip-permissions --setting-sources  --strict-mcp-config "
        f"--disable-slash-commands --session-id {SESSION}"
    )
    assert found.argv[found.argv.index("--setting-sources") + 1] == ""
    assert found.stdin_path == PATHS.prompt
    assert found.env == {
        "CLAUDE_CONFIG_DIR": "/home/daytona/.issuesandbox/agent/claude",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "IS_SANDBOX": "1",
        "API_TIMEOUT_MS": "45000",
    }


def test_claude_gets_every_option_of_the_resource() -> None:
    agent = Agent(
        model="opus",
        max_turns=7,
        max_budget_usd="2.50",
        system_prompt="Be brief.",
        mcp_config="{}",
        args=("--effort", "high"),
    )
    found = made(agent, resume=True)
    argv = found.argv
    for flag, value in (
        ("--model", "opus"),
        ("--max-turns", "7"),
        ("--max-budget-usd", "2.50"),
        ("--append-system-prompt-file", f"{PATHS.inputs}/system-prompt.md"),
        ("--mcp-config", f"{PATHS.inputs}/mcp.json"),
        ("--resume", SESSION),
    ):
        assert argv[argv.index(flag) + 1] == value
    # The flag before takes all up to the next flag.
    assert argv[argv.index("--mcp-config") + 2].startswith("--")
    assert "--strict-mcp-config" in argv
    assert "--session-id" not in argv
    assert argv[-2:] == ("--effort", "high")
    assert found.files == {
        f"{PATHS.inputs}/system-prompt.md": b"Be brief.",
        f"{PATHS.inputs}/mcp.json": b"{}",
    }


def test_a_trusted_repository_may_bring_its_settings_but_never_those_of_an_earlier_run() -> None:
    argv = made(Agent(trust_repository_settings=True)).argv
    assert argv[argv.index("--setting-sources") + 1] == "project,local"
    assert "--strict-mcp-config" not in argv


@pytest.mark.parametrize(
    ("inactivity", "timeout"), [(60, "45000"), (400, "300000"), (1, "1000"), (None, None)]
)
def test_the_model_is_asked_again_before_its_silence_counts_as_a_hang(
    inactivity: float | None, timeout: str | None
) -> None:
    env = made(Agent(), limits=Limits(inactivity=inactivity)).env
    assert env.get("API_TIMEOUT_MS") == timeout


def test_the_resource_wins_over_its_secrets_and_these_over_the_profile() -> None:
    agent = Agent(env=(EnvVar(name="A", value="spec"), EnvVar(name="IS_SANDBOX", value="0")))
    found = launch(
        agent,
        paths=PATHS,
        session_id=SESSION,
        resume=False,
        limits=LIMITS,
        secrets={"A": "secret", "B": "secret", "API_TIMEOUT_MS": "1"},
    )
    assert (found.env["A"], found.env["B"]) == ("spec", "secret")
    assert (found.env["IS_SANDBOX"], found.env["API_TIMEOUT_MS"]) == ("0", "1")
    assert "secret" not in repr(found)


def test_only_the_profiles_own_program_is_installed() -> None:
    assert made(Agent()).install_command
    own = made(Agent(command=("/opt/it's mine/claude",)))
    assert own.install_command is None
    assert own.check_command == "'/opt/it'\"'\"'s mine/claude' --version </dev/null"


def test_cursor_gets_the_fixed_sentence_as_its_last_word() -> None:
    found = made(Agent(profile=AgentProfile.CURSOR, model="gpt-5"), resume=True)
    assert found.argv[:2] == ("cursor-agent", "-p")
    assert found.argv[-2] == "--"
    assert PATHS.issue in found.argv[-1]
    assert found.argv[-4:-2] == ("--resume", SESSION)
    assert found.stdin_path == "/dev/null"


def test_a_custom_program_learns_of_its_files_from_the_environment() -> None:
    agent = Agent(profile=AgentProfile.CUSTOM, command=("my-agent", "--fast"), args=("x",))
    found = made(agent)
    assert found.argv == ("my-agent", "--fast", "x")
    assert found.env["ISSUESANDBOX_ISSUE_FILE"] == PATHS.issue
    with pytest.raises(ValueError, match="needs a command"):
        made(Agent(profile=AgentProfile.CUSTOM))
