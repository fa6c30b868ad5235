"""The program from its command line to its exit code.

Knows what each end of a run gives: which verdict, which exit code, what a signal leaves behind.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

from . import gitwork, noise, scenario, shell, speech, tools
from .conversation import Conversation, Ended, Left, Verdict
from .flags import Invocation, UsageError, parse
from .scenario import ScenarioError
from .startup import VERSION, Run, begin, prepare, run_hooks
from .tree import kill_descendants

_LARGEST_PROMPT = 4_000_000
_DYING_IN_A_TOOL_CALL = 1.5
_SLASH_COMMANDS = frozenset({"/clear", "/compact", "/context", "/cost", "/help"})
_HANDLERS = {
    **speech.HANDLERS,
    **tools.HANDLERS,
    **shell.HANDLERS,
    **gitwork.HANDLERS,
    **noise.HANDLERS,
}


class _Interrupted(BaseException):
    """A signal asked for the end; not an Exception, so that nothing on the way handles it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(argv: Sequence[str]) -> int:
    """Run the agent and return its exit code."""
    try:
        return _run(parse(argv), dict(os.environ))
    except (UsageError, ScenarioError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except _Interrupted as interrupted:
        return 128 + interrupted.number


def _run(invocation: Invocation, env: Mapping[str, str]) -> int:
    if invocation.has("--version") or invocation.has("--help"):
        version = f"{VERSION} (Claude Code)"
        sys.stdout.write(f"{version if invocation.has('--version') else _help()}\n")
        return 0
    _listen()
    run = prepare(invocation, env)
    try:
        return _follow(run)
    except Left as left:
        return left.exit_code
    except _Interrupted as interrupted:
        return _die(run.talk, interrupted.number)


def _follow(run: Run) -> int:
    """Play the scenario to its end and print what became of it."""
    talk = run.talk
    begin(run)
    try:
        _check_prompt(run)
        for step in run.scenario.steps:
            _HANDLERS[step.verb](talk, *step.arguments)
        speech.close(talk)
        run_hooks(run, "Stop")
        talk.result(Verdict(text=talk.final_text))
        shell.outlast_tasks(talk)
        exit_code = 0
    except Ended as ended:
        talk.result(ended.verdict)
        exit_code = ended.verdict.exit_code
    run_hooks(run, "SessionEnd")
    kill_descendants()  # MCP servers, and tasks that a failed run leaves
    return exit_code


def _check_prompt(run: Run) -> None:
    """End where the real CLI never asks the model."""
    prompt = run.talk.material.prompt
    if prompt.split(maxsplit=1)[0] in _SLASH_COMMANDS and prompt.startswith("/"):
        raise Ended(Verdict(text=f"{prompt.split()[0]} was executed."))
    if run.key_source == "none":
        run.talk.fail(None, "authentication_failed", "Not logged in · Please run /login")
    if len(prompt) > _LARGEST_PROMPT:
        raise Ended(Verdict.refused("blocking_limit", "Prompt is too long"))


def _listen() -> None:
    def interrupt(number: int, _: FrameType | None) -> None:
        for other in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise _Interrupted(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupt)


def _die(talk: Conversation, number: int) -> int:
    """End the running tool call's whole tree; only SIGINT still gets a result line, and exit 0."""
    if talk.in_tool:
        time.sleep(_DYING_IN_A_TOOL_CALL / talk.material.speed)
    kill_descendants()
    if number != signal.SIGINT:
        talk.save_account()
        return 128 + number
    talk.stream.stdout.finish_line()
    reason = "aborted_tools" if talk.in_tool else "aborted_streaming"
    talk.result(Verdict.failure("error_during_execution", reason, "Request was aborted."))
    return 0


def _help() -> str:
    return "\n".join(
        (
            "Usage: claude -p [flags of the real CLI] [prompt]",
            "",
            "A scripted stand-in. It follows the scenario in ISSUESANDBOX_SCENARIO, in the file",
            "ISSUESANDBOX_SCENARIO_FILE, or in a fenced block marked `scenario` in the prompt or",
            "in a file that the prompt names. One step per line:",
            "",
            *scenario.steps(),
        )
    )
