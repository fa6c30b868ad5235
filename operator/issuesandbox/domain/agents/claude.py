"""The `claude` command line agent, run headless. Flags and variables are those of 2.1.

What a checked-out repository brings along stays off: with `-p` there is no trust dialog, and a
settings file of the repository could otherwise send the model key to a host of its choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from issuesandbox.domain.agents.launch import Launch, LaunchOrder, answers_version, program_of
from issuesandbox.domain.collection import SYSTEM_FIRST
from issuesandbox.domain.supervision import Limits, RunPaths, quoted

# Another version may behave differently: this one was watched.
_INSTALL = "npm install --global --no-fund --no-audit @anthropic-ai/claude-code@2.1.325"
# A silent model must become a retry line before the limit takes the silence for a hang.
_API_SHARE = 0.75


def launch(order: LaunchOrder) -> Launch:
    """Return how `claude` is started for one run."""
    agent, paths = order.agent, order.paths
    program = program_of(agent, ("claude",))
    files = {}
    if agent.system_prompt is not None:
        files[_system_prompt(paths)] = agent.system_prompt.encode()
    if agent.mcp_config is not None:
        files[_mcp_config(paths)] = agent.mcp_config.encode()
    return Launch(
        argv=(*program, *_flags(order), *(agent.args or ())),
        env=_environment(paths, order.limits),
        stdin_path=paths.prompt,
        check_command=answers_version(program),
        install_command=None if agent.command else _INSTALL,
        session_command=_find_session(order) if order.resume else None,
        files=files,
    )


def _flags(order: LaunchOrder) -> Iterator[str]:
    agent = order.agent
    yield from ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
    # This flag takes all arguments up to the next flag.
    if agent.mcp_config is not None:
        yield from ("--mcp-config", _mcp_config(order.paths))
    yield "--dangerously-skip-permissions"
    if agent.trust_repository_settings:
        # Never the user's own settings: an earlier run may have written them.
        yield from ("--setting-sources", "project,local")
    else:
        yield from ("--setting-sources", "", "--strict-mcp-config", "--disable-slash-commands")
    if agent.model is not None:
        yield from ("--model", agent.model)
    if agent.max_turns is not None:
        yield from ("--max-turns", str(agent.max_turns))
    if agent.max_budget_usd is not None:
        yield from ("--max-budget-usd", agent.max_budget_usd)
    if agent.system_prompt is not None:
        yield from ("--append-system-prompt-file", _system_prompt(order.paths))
    yield from ("--resume" if order.resume else "--session-id", order.session_id)


def _environment(paths: RunPaths, limits: Limits) -> dict[str, str]:
    env = {
        # A relative folder would land inside the work tree.
        "CLAUDE_CONFIG_DIR": _config(paths),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        # Without it the agent refuses to skip permissions as root.
        "IS_SANDBOX": "1",
    }
    if limits.inactivity is not None:
        env["API_TIMEOUT_MS"] = str(max(1000, int(limits.inactivity * 1000 * _API_SHARE)))
    return env


def _find_session(order: LaunchOrder) -> str:
    # The folder between is named after the working directory.
    projects = quoted(f"{_config(order.paths)}/projects")
    return f"{SYSTEM_FIRST}; ls {projects}/*/{quoted(f'{order.session_id}.jsonl')} >/dev/null 2>&1"


def _config(paths: RunPaths) -> str:
    return f"{paths.agent_config}/claude"


def _system_prompt(paths: RunPaths) -> str:
    return f"{paths.inputs}/system-prompt.md"


def _mcp_config(paths: RunPaths) -> str:
    return f"{paths.inputs}/mcp.json"
