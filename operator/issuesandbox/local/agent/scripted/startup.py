"""Everything between the command line and the first turn: refusals, prompt, session, settings.

Knows what must be true before a run begins, nothing of how it goes.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from . import default_job, scenario
from .conversation import Conversation, Material, Verdict
from .flags import Invocation, UsageError
from .repository import Settings, run_command, send_key, start_server
from .scenario import Scenario
from .sessions import UUID, Sessions, Transcript, config_dir
from .stream import Seed, Stdout, Stream

if TYPE_CHECKING:
    from subprocess import Popen

VERSION = "2.1.325"
_TOOLS = ["Bash", "Edit", "Read", "Write"]
_BARE_TOOLS = ["Bash", "Edit", "Read"]
_LARGEST_STDIN = 10_000_000
_SILENT_STDIN = 3.0
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


class Run(NamedTuple):
    """A run that is ready for its first turn."""

    talk: Conversation
    settings: Settings
    scenario: Scenario
    key_source: str
    servers: dict[str, Popen[bytes] | None]


def prepare(invocation: Invocation, env: Mapping[str, str]) -> Run:
    """Check everything that the real CLI checks first, and open the session."""
    _refuse_root(invocation, env)
    _require_files(invocation)
    sessions = Sessions(config_dir(env), working_directory())
    _check_session(invocation, sessions, env)
    prompt = _read_prompt(invocation)
    files = tuple(scenario.named_files(prompt))
    script = _choose_scenario(prompt, files, env)
    session_id, transcript = _open_session(invocation, sessions, script.seed)

    settings = Settings(invocation, config_dir(env))
    merged = {**env, **settings.environment()}
    key_source = _log_in(settings, merged)
    # A resumed session goes on drawing where it has not drawn before.
    seed = Seed(f"{script.seed}:{transcript.length}")
    stream = Stream(Stdout(), invocation.output_format, seed)
    stream.session_id = session_id
    material = Material(prompt, files, merged, script.speed)
    talk = Conversation(invocation, material, stream, transcript, seed)
    talk.model = invocation.value("--model") or settings.model() or talk.model
    return Run(talk, settings, script, key_source, servers={})


def begin(run: Run) -> None:
    """Run what settings attached to the start, then print the init line."""
    talk = run.talk
    if talk.seed.fraction() < 0.5:
        talk.stream.emit("system", subtype="ui_invalidate")  # init is not always the first line
    run_hooks(run, "SessionStart")
    run.servers.update(
        (name, start_server(command, talk.material.env))
        for name, command in run.settings.servers().items()
    )
    talk.stream.emit(
        "system",
        subtype="init",
        cwd=working_directory(),
        model=talk.model,
        tools=_BARE_TOOLS if talk.invocation.has("--bare") else _TOOLS,
        permissionMode=talk.invocation.permission_mode,
        mcp_servers=[
            {"name": name, "status": "connected" if server else "failed"}
            for name, server in run.servers.items()
        ],
        apiKeySource=run.key_source,
        claude_code_version=VERSION,
    )
    run_hooks(run, "UserPromptSubmit")
    talk.transcript.append(
        {"type": "user", "message": {"role": "user", "content": talk.material.prompt}}
    )


def working_directory() -> str:
    """Return where the run takes place; somebody may have removed it."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("Error: The current working directory was removed") from None


def run_hooks(run: Run, event: str) -> None:
    """Run the commands that settings attached to an event."""
    for command in run.settings.hooks(event):
        run.talk.stream.emit("system", subtype="hook_started", hook_event=event)
        output = run_command(command, run.talk.material.env)
        run.talk.stream.emit("system", subtype="hook_response", hook_event=event, output=output)


def _refuse_root(invocation: Invocation, env: Mapping[str, str]) -> None:
    bypass = invocation.permission_mode == "bypassPermissions"
    if bypass and os.geteuid() == 0 and env.get("IS_SANDBOX") != "1":
        raise UsageError(
            "--dangerously-skip-permissions cannot be used with root/sudo privileges "
            "for security reasons"
        )


def _require_files(invocation: Invocation) -> None:
    for flag in ("--append-system-prompt-file", "--system-prompt-file"):
        path = invocation.value(flag)
        if path is not None and not os.path.isfile(path):
            raise UsageError(f"Error: {flag}: file not found: {path}")
    for source in invocation.lists.get("--mcp-config", ()):
        if not source.lstrip().startswith("{") and not os.path.isfile(source):
            raise UsageError(f"Error: Invalid MCP configuration: file not found: {source}")


def _check_session(invocation: Invocation, sessions: Sessions, env: Mapping[str, str]) -> None:
    chosen, resumed = invocation.value("--session-id"), invocation.value("--resume")
    if chosen is not None and not UUID.fullmatch(chosen):
        raise UsageError("Error: Invalid session ID. Must be a valid UUID.")
    if chosen is not None and resumed is not None and not invocation.has("--fork-session"):
        raise UsageError("Error: --session-id with --resume also needs --fork-session.")
    if chosen is not None and sessions.find(chosen):
        raise UsageError(f"Error: Session ID {chosen} is already in use.")
    if resumed == "":
        raise UsageError("Error: --resume requires a valid session ID when used with --print")
    if resumed is not None and not sessions.find(resumed):
        error = f"No conversation found with session ID: {resumed}"
        _report_nothing_to_resume(invocation, env, error)
        raise UsageError(error)


def _report_nothing_to_resume(invocation: Invocation, env: Mapping[str, str], error: str) -> None:
    """Print a result line that echoes the id that was asked for."""
    asked = invocation.value("--resume") or ""
    stream = Stream(Stdout(), invocation.output_format, Seed(asked))
    stream.session_id = asked
    material = Material("", (), env, 1.0)
    talk = Conversation(invocation, material, stream, Transcript(None), Seed(asked))
    talk.result(Verdict.failure("error_during_execution", "error", error))


def _open_session(invocation: Invocation, sessions: Sessions, seed: str) -> tuple[str, Transcript]:
    chosen, resumed = invocation.value("--session-id"), invocation.value("--resume")
    earlier = sessions.find(resumed) if resumed else None
    if earlier and not invocation.has("--fork-session"):
        return os.path.basename(earlier).removesuffix(".jsonl"), Transcript(earlier)
    ids = Seed(f"session:{seed}")
    session_id = chosen or ids.uuid()
    while not chosen and sessions.find(session_id):
        session_id = ids.uuid()
    if invocation.has("--no-session-persistence"):
        return session_id, Transcript(None)
    return session_id, Transcript(sessions.path(session_id), history=earlier)


def _choose_scenario(prompt: str, files: tuple[str, ...], env: Mapping[str, str]) -> Scenario:
    text = scenario.find(prompt, files, env)
    if text is not None:
        return scenario.parse(text, env)
    defaults = scenario.parse("", {"ISSUESANDBOX_AGENT_SEED": prompt, **env})
    return Scenario(default_job.steps_for(prompt, files), defaults.seed, defaults.speed)


def _log_in(settings: Settings, env: dict[str, str]) -> str:
    helper = settings.key_helper()
    if helper:
        env["ANTHROPIC_API_KEY"] = run_command(helper, env)
    source = next((name for name in _KEYS if env.get(name)), "none")
    redirect = settings.environment().get("ANTHROPIC_BASE_URL")
    if redirect and source != "none":
        send_key(redirect, env[source])
    return "apiKeyHelper" if helper else source


def _read_prompt(invocation: Invocation) -> str:
    piped = _read_stdin()
    prompt = "\n".join(part for part in (invocation.prompt, piped) if part)
    if not prompt.strip():
        raise UsageError(
            "Error: Input must be provided either through stdin or as a prompt argument "
            "when using --print"
        )
    return prompt


def _read_stdin() -> str:
    try:
        if os.isatty(0):
            return ""
        if not select.select([0], [], [], _SILENT_STDIN)[0]:
            sys.stderr.write("Warning: no stdin data received in 3s, proceeding without it.\n")
            return ""
        with open(0, "rb", closefd=False) as stdin:
            data = stdin.read(_LARGEST_STDIN + 1)
    except OSError:
        return ""  # a closed stdin is an empty one
    if len(data) > _LARGEST_STDIN:
        raise UsageError("Error: stdin is larger than 10 MB")
    return data.decode("utf-8", "replace")
