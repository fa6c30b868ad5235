"""How the operator talks to the supervisor of an agent: command lines out, pulses in.

The lines hold constants, numbers and quoted paths and arguments of the operator's own making.
What comes back was written beside a possibly hostile agent: every field is checked, and a pulse
proves nothing that the control plane could not be asked for. Calls nothing itself.
"""

from __future__ import annotations

import binascii
import math
import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from issuesandbox import inside
from issuesandbox.domain.collection import SUMMARY_FILE, SYSTEM_PATH

SUPERVISOR: Final = "supervisor.sh"
_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_HEADER: Final = "issuesandbox-pulse"
_CHANGED: Final = "the supervisor's file was changed"
# An agent may have written any figure: none beyond these is possible, or can be reckoned with.
_MOST_BYTES: Final = 2 * 10**15
_MOST_PROCESSES: Final = 10**6
_LONGEST: Final = 10**9
_EXIT_CODES: Final = 256
# Run from memory: it outlives any file, and is what was sent whatever lies in the sandbox. No
# variable of a common name is set: it could be one of the agent's.
_OWN_PATH: Final = f'export ISSUESANDBOX_PATH="$PATH" PATH={SYSTEM_PATH};'
_RUN_SENT: Final = "sh -c 'eval \"$ISSUESANDBOX_SCRIPT\"' supervisor"
MISSING: Final = "the supervisor's file is missing"


class PulseError(ValueError):
    """The answer is not a pulse: the command was cut off or did not run."""


class RunState(StrEnum):
    """What became of the supervisor of a run."""

    ABSENT = "Absent"
    """No folder of the run: it was never started here, or somebody removed everything."""
    STARTING = "Starting"
    RUNNING = "Running"
    ENDED = "Ended"
    """The agent has ended, what it left was killed, all its output can be read."""
    LOST = "Lost"
    """The supervisor is dead or its files are gone: only the sandbox's stop is a sure end."""


class EndedBy(StrEnum):
    """What ended the agent, if not itself."""

    INACTIVITY = "Inactivity"
    AGENT = "Agent"
    RUN = "Run"
    STOP = "Stop"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where everything of one run lies in a sandbox; the work tree holds nothing of ours."""

    home: str
    run_id: str

    def __post_init__(self) -> None:
        if not self.home.startswith("/") or "\0" in self.home or "\n" in self.home:
            raise ValueError(f"the home directory is not an absolute path: {self.home!r}")
        if not _RUN_ID.fullmatch(self.run_id):
            raise ValueError(f"not the id of a run: {self.run_id!r}")

    @property
    def root(self) -> str:
        """Return the operator's own folder."""
        return f"{self.home.rstrip('/')}/.issuesandbox"

    @property
    def supervisor(self) -> str:
        """Return the path of the supervisor, another one for each version of its text.

        An operator that was upgraded finds agents that an older one started: it brings its own
        supervisor along, and the one that runs is left in peace.
        """
        return f"{self.root}/bin/supervisor-{inside.digest(SUPERVISOR)[:12]}.sh"

    @property
    def run(self) -> str:
        """Return the supervisor's folder; making it is the right to start the agent."""
        return f"{self.root}/run/{self.run_id}"

    @property
    def inputs(self) -> str:
        """Return the folder of what the agent is given, uploaded before the start."""
        return f"{self.root}/input/{self.run_id}"

    @property
    def prompt(self) -> str:
        """Return the path of the fixed sentence, the agent's standard input."""
        return f"{self.inputs}/prompt.txt"

    @property
    def issue(self) -> str:
        """Return the path of the issue's text, which the fixed sentence names as data."""
        return f"{self.inputs}/issue.md"

    @property
    def summary(self) -> str:
        """Return the path where the agent is asked to write its summary; it is never committed."""
        return f"{self.work}/{SUMMARY_FILE}"

    @property
    def agent_config(self) -> str:
        """Return the agent's own folder, the same for all runs: sessions are resumed from it."""
        return f"{self.root}/agent"

    @property
    def work(self) -> str:
        """Return the work tree."""
        return f"{self.home.rstrip('/')}/work"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds, None for no limit; `agent` and `run` count from the agent's start."""

    inactivity: float | None = None
    agent: float | None = None
    run: float | None = None
    or_child: bool = False
    """A child process that works is a sign of life, as output is."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What one call to the supervisor told."""

    state: RunState
    exit_code: int | None = None
    ended_by: EndedBy | None = None
    silent_for: float = 0.0
    """Seconds since the last sign of life."""
    started_ago: float = 0.0
    """Seconds since the agent was started."""
    size: int = 0
    """Bytes the agent has printed so far, also those that are not kept any more."""
    chunk: bytes = b""
    chunk_offset: int = 0
    """Where the chunk begins; later than asked for if bytes in between are not kept."""
    survivors: int | None = None
    """Processes that could not be ended; known after the end, a stop or a sweep."""
    fresh: bool = False
    """This very call started the agent."""
    problem: str | None = None
    """Why nothing could be started or asked, in a sentence."""

    def next_offset(self, asked: int) -> int:
        """Return where to read on after a poll that asked for `asked`."""
        return self.chunk_offset + len(self.chunk) if self.chunk else asked


def limits_text(limits: Limits) -> str:
    """Return the limits as the supervisor reads them, in hundredths of a second."""
    figures = (limits.inactivity, limits.agent, limits.run)
    source = "OutputOrChild" if limits.or_child else "Output"
    # A limit that has passed is not the same as none.
    shown = (0 if each is None else max(1, math.ceil(each * 100)) for each in figures)
    return f"{' '.join(map(str, shown))} {source} ."


def start_command(paths: RunPaths, limits: Limits, argv: Iterable[str], stdin_path: str) -> str:
    """Start the agent in the work tree, unless this run was started before; answers at once.

    Needs `supervisor_sent`.
    """
    words = (limits_text(limits), paths.run, paths.work, stdin_path or "/dev/null", *argv)
    return f"{_OWN_PATH} exec {_RUN_SENT} start {' '.join(map(quoted, words))} </dev/null"


def poll_command(
    paths: RunPaths, offset: int, wait: float, max_bytes: int, limits: Limits | None = None
) -> str:
    """Wait up to `wait` seconds for the end, then tell the state and the output since `offset`.

    With limits, the supervisor goes by these from now on. Does not wait when more than
    `max_bytes` are there already.
    """
    more = () if limits is None else (limits_text(limits),)
    return _line(paths, "poll", paths.run, str(offset), f"{wait:g}", str(max_bytes), *more)


def kill_command(paths: RunPaths) -> str:
    """End the agent within 5 s, with force after 3; a start that comes later starts nothing."""
    return _line(paths, "stop", paths.run)


def sweep_command(paths: RunPaths, then: str = ":") -> str:
    """Kill whatever is left of the run, wherever it hides; if nothing remains, do `then` as well.

    What that prints follows the pulse. Needs `supervisor_sent`.
    """
    return (
        f'{_OWN_PATH} set -- "$({_RUN_SENT} sweep {quoted(paths.run)} </dev/null)"; '
        'printf \'%s\\n\' "$1"; case "$1" in *"\nsurvivors 0\n"*) '
        f'PATH="$ISSUESANDBOX_PATH"; unset ISSUESANDBOX_PATH ISSUESANDBOX_SCRIPT; {then};; esac'
    )


def parse_pulse(output: str) -> Pulse:
    """Return what a command above answered; `PulseError` if that is no whole answer."""
    _, header, told = output.partition(f"{_HEADER}\n")
    lines = told.splitlines()
    if not header or "end" not in lines:
        raise PulseError("the supervisor gave no whole answer")
    fields: dict[str, str] = {}
    encoded: list[str] = []
    for line in lines[: lines.index("end")]:
        if "base64" in fields or "hex" in fields:
            encoded.append(line)
        else:
            name, _, value = line.partition(" ")
            fields[name] = value
    try:
        return _pulse(fields, "".join(encoded))
    except (ValueError, KeyError, binascii.Error) as error:
        raise PulseError(f"the supervisor's answer cannot be read: {error}") from error


def supervisor_file(paths: RunPaths) -> dict[str, bytes]:
    """Return what has to lie in the sandbox for a poll or a kill to work."""
    return {paths.supervisor: inside.script(SUPERVISOR)}


def supervisor_sent() -> dict[str, str]:
    """Return the variable that brings the supervisor along to a start or a sweep."""
    return {"ISSUESANDBOX_SCRIPT": inside.script(SUPERVISOR).decode()}


def quoted(word: str) -> str:
    """Return a word for any shell; `shlex` leaves a leading `=`, which zsh expands."""
    if "\0" in word:
        raise ValueError("a command line cannot hold a zero byte")
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _line(paths: RunPaths, verb: str, *words: str) -> str:
    """Build a line that runs our own supervisor or says that there is none.

    The agent may have put another program in its place, and another operator may be writing it
    at this very moment: so its digest is taken first, three times at most.
    """
    run = f'exec sh "$1" {verb} {" ".join(map(quoted, words))} </dev/null'
    changed, missing = (
        f"{_HEADER}\\nstate LOST\\nproblem {each}\\nend\\n" for each in (_CHANGED, MISSING)
    )
    return (
        f"set -- {quoted(paths.supervisor)}; PATH={SYSTEM_PATH}; "
        'for _ in 1 2 3; do [ -f "$1" ] || break; '
        f'case "$(sha256sum <"$1" 2>/dev/null)" in {inside.digest(SUPERVISOR)}*) {run};; esac; '
        "sleep 0.3; done; "
        f'if [ -e "$1" ]; then printf {quoted(changed)}; else printf {quoted(missing)}; fi'
    )


def _pulse(fields: dict[str, str], encoded: str) -> Pulse:
    ended = fields.get("ended")
    code, survivors = int(fields.get("exit", -1)), fields.get("survivors")
    chunk = bytes.fromhex(encoded) if "hex" in fields else b64decode(encoded, validate=True)
    return Pulse(
        state=RunState(fields["state"].capitalize()),
        exit_code=code if code in range(_EXIT_CODES) else None,
        ended_by=None if ended is None else EndedBy(ended),
        silent_for=_figure(fields.get("silent"), _LONGEST) / 100,
        started_ago=_figure(fields.get("age"), _LONGEST) / 100,
        size=_figure(fields.get("size"), _MOST_BYTES),
        chunk=chunk,
        chunk_offset=_figure(fields.get("base64") or fields.get("hex"), _MOST_BYTES),
        survivors=None if survivors is None else _figure(survivors, _MOST_PROCESSES),
        fresh=fields.get("fresh") == "yes",
        problem=fields.get("problem"),
    )


def _figure(told: str | None, most: int) -> int:
    return max(0, min(int(told or 0), most))
