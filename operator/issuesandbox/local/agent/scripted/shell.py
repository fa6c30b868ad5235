"""Tool calls that run a command: real processes, heartbeats while they last, tasks left behind.

Each command is a shell with its own session and process group, as with the real CLI, so that a
group kill of the agent misses it.
"""

from __future__ import annotations

import itertools
import os
import shlex
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

from . import tools
from .conversation import Conversation, Verdict

if TYPE_CHECKING:
    from subprocess import Popen

_ANNOUNCED_AFTER = 3
_HEARTBEAT = 30
_MOVED_TO_BACKGROUND_AFTER = 120
_SHOWN_OUTPUT = 30_000


class Task(NamedTuple):
    """A command that runs while the model goes on."""

    process: Popen[bytes]
    tool_id: str


def bash(talk: Conversation, command: str) -> None:
    """Run a command and wait for it."""

    def act(tool_id: str) -> str:
        process, output = _start(talk, command)
        with output:
            if not _follow(talk, process, tool_id):
                _leave_running(talk, Task(process, tool_id))
                return "Command was moved to the background."
            output.seek(0)
            shown = output.read(_SHOWN_OUTPUT).decode("utf-8", "replace")
        if process.returncode:
            raise ValueError(f"Exit code {process.returncode}\n{shown}")
        return shown

    tools.call(talk, "Bash", {"command": command}, act)


def background(talk: Conversation, command: str) -> None:
    """Run a command behind the conversation; where that is switched off, wait for it instead."""
    if not _may_run_in_background(talk):
        bash(talk, command)
        return

    def act(tool_id: str) -> str:
        process, output = _start(talk, command)
        output.close()
        _leave_running(talk, Task(process, tool_id))
        return "Command running in background."

    tools.call(talk, "Bash", {"command": command, "run_in_background": True}, act)


def stubborn(talk: Conversation, count: int) -> None:
    """Start children that no SIGTERM ends, and wait for them."""
    child = "while :; do sleep 1; done"
    bash(talk, "trap '' TERM HUP INT; " + f"({child}) & " * count + "wait")


def nohup(talk: Conversation, seconds: float) -> None:
    """Leave a child behind that outlives this process."""
    bash(talk, f"nohup sleep {seconds / talk.material.speed:g} >/dev/null 2>&1 &")


def outlast_tasks(talk: Conversation) -> None:
    """Stay for the tasks left running: each gives the model another turn and another result."""
    while talk.tasks:
        task = talk.tasks.pop(0)
        task.process.wait()
        talk.stream.emit(
            "system",
            subtype="task_notification",
            task_id=task.tool_id[-8:],
            status="completed" if task.process.returncode == 0 else "failed",
        )
        _announce_tasks(talk)
        talk.say("The background task has ended.")
        talk.result(Verdict(text=talk.final_text))


def run(talk: Conversation, *commands: list[str]) -> None:
    """Run commands given as argument lists, one after the other, as one tool call."""
    bash(talk, " && ".join(shlex.join(command) for command in commands))


def _start(talk: Conversation, command: str) -> tuple[Popen[bytes], IO[bytes]]:
    import subprocess
    import tempfile

    # A file and not a pipe: what a command leaves running must not keep the call open.
    output = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    marks = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": talk.stream.session_id,
        "CLAUDE_PID": str(os.getpid()),
    }
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        env={**talk.material.env, **marks},
    )
    return process, output


def _follow(talk: Conversation, process: Popen[bytes], tool_id: str) -> bool:
    """Wait for a command and give signs of life; False if it is to run on in the background."""
    from subprocess import TimeoutExpired

    began = time.monotonic()
    before = 0
    for due in _signs_of_life():
        left = due / talk.material.speed - (time.monotonic() - began)
        try:
            process.wait(max(left, 0))
        except TimeoutExpired:
            talk.note_elapsed(due - before)
            before = due
        else:
            return True
        if due == _ANNOUNCED_AFTER:
            talk.stream.emit(
                "system", subtype="task_started", task_id=tool_id[-8:], tool_use_id=tool_id
            )
        elif due == _MOVED_TO_BACKGROUND_AFTER and _may_run_in_background(talk):
            return False
        else:
            talk.stream.emit(
                "tool_progress",
                tool_use_id=tool_id,
                tool_name="Bash",
                heartbeat=True,
                elapsed_time_seconds=due,
                parent_tool_use_id=None,
            )
    return True


def _signs_of_life() -> Iterator[int]:
    yield _ANNOUNCED_AFTER
    yield from itertools.count(_HEARTBEAT, _HEARTBEAT)


def _may_run_in_background(talk: Conversation) -> bool:
    return talk.material.env.get("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS") != "1"


def _leave_running(talk: Conversation, task: Task) -> None:
    talk.tasks.append(task)
    _announce_tasks(talk)


def _announce_tasks(talk: Conversation) -> None:
    running = [task.tool_id[-8:] for task in talk.tasks]
    talk.stream.emit("system", subtype="background_tasks_changed", tasks=running)


HANDLERS: dict[str, Callable[..., None]] = {
    verb.__name__: verb for verb in (bash, background, stubborn, nohup)
}
