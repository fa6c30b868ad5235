r"""The script an agent follows: how it is written, and where it is found.

One step per line: a verb and its arguments. Blank lines and lines that begin with `#` are
skipped. An argument in capitals at the end of a line takes the rest of the line, in which `\n`,
`\t` and `\\` stand for a line break, a tab and a backslash. `steps()` lists every verb.

A scenario is taken from the first of these that has one: the variable ISSUESANDBOX_SCENARIO, the
file named by ISSUESANDBOX_SCENARIO_FILE, the last fenced block marked `scenario` in the prompt,
the last such block in a file that the prompt names. Without one, the agent does a small default
job.

Knows the language, not what the verbs do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

Argument = str | int | float

VERBS = {
    "seed": ("TEXT", "choose other ids and figures; the same seed gives the same output"),
    "speed": ("FACTOR", "let every wait of the script pass FACTOR times as fast"),
    "say": ("TEXT", "one assistant message; the last one is the final text"),
    "wait": ("SECONDS", "the model is silent before it answers at all"),
    "stall": ("SECONDS", "the model is silent after the stream began"),
    "ping": ("SECONDS [EVERY]", "the model keeps the stream open with pings, each 10 s"),
    "tick": ("EVERY COUNT TEXT", "COUNT messages, one each EVERY seconds"),
    "forever": ("[EVERY]", "never end: silent, or with a message each EVERY seconds"),
    "cut": ("TEXT", "the stream breaks off after its start; the answer comes all the same"),
    "api": ("STATUS [TIMES]", "the model service answers STATUS (or `refused`), for good or TIMES"),
    "throttle": ("SECONDS", "one 429 with that retry-after: waited out, or fatal if over 60"),
    "cost": ("USD", "add to the session's cost"),
    "done": ("", "print the result line now and go on"),
    "read": ("PATH", "tool call: read a file"),
    "write": ("PATH CONTENT", "tool call: write a file"),
    "append": ("PATH CONTENT", "tool call: add a line to a file"),
    "edit": ("PATH CHANGE", "tool call: replace text in a file, CHANGE is `old => new`"),
    "delete": ("PATH", "tool call: remove a file"),
    "summary": ("CONTENT", "tool call: write the summary file that the prompt names"),
    "bash": ("COMMAND", "tool call: run a shell command"),
    "background": ("COMMAND", "tool call: run it behind the result line; a second result follows"),
    "commit": ("MESSAGE", "tool call: commit everything"),
    "gitconfig": ("KEY CONTENT", "tool call: set a key in .git/config"),
    "plant": ("TRAP MARKER", "tool call: hooks, hookspath, filter or fsmonitor that write MARKER"),
    "stubborn": ("COUNT", "tool call: COUNT children that ignore SIGTERM, and no end"),
    "nohup": ("SECONDS", "tool call: leave a nohup child behind"),
    "deny": ("TOOL", "tool call: one that is denied"),
    "flood": ("MB", "print MB megabytes of messages"),
    "longline": ("MB", "print one line of MB megabytes"),
    "binary": ("BYTES", "print bytes that are no text"),
    "raw": ("TEXT", "print a line as it stands"),
    "unknown": ("TYPE", "print a line of an unknown type"),
    "stderr": ("TEXT", "print a line on stderr"),
    "deaf": ("", "ignore SIGTERM, SIGINT and SIGHUP from here on"),
    "exit": ("CODE", "end at once, without a result line"),
    "crash": ("", "be killed by SIGKILL"),
}
_FLOATS = frozenset({"SECONDS", "EVERY", "FACTOR", "USD", "MB"})
_INTEGERS = frozenset({"COUNT", "TIMES", "CODE", "BYTES"})
_REST_OF_LINE = frozenset({"TEXT", "CONTENT", "COMMAND", "MESSAGE", "CHANGE"})
_CHOICES = {
    "STATUS": re.compile(r"[1-5]\d\d|refused"),
    "TRAP": re.compile(r"hooks|hookspath|filter|fsmonitor"),
}
_FENCE = re.compile(r"^[ >\t]*(`{3,}|~{3,})[ \t]*scenario[ \t]*$")
_ESCAPE = re.compile(r"\\([nt\\])")
_NAMED_FILE = re.compile(r"[^\s\"'`<>()\[\]]*/[^\s\"'`<>()\[\]]+")
_LARGEST_FILE = 1_000_000


class ScenarioError(Exception):
    """A scenario line that cannot be followed."""


class Step(NamedTuple):
    """One verb with its arguments."""

    verb: str
    arguments: tuple[Argument, ...]


class Scenario(NamedTuple):
    """What the agent is to do, in order."""

    steps: tuple[Step, ...]
    seed: str
    speed: float = 1.0


def steps() -> Iterator[str]:
    """Describe every verb, one line each."""
    for verb, (signature, meaning) in VERBS.items():
        yield f"  {verb + ' ' + signature:22} {meaning}"


def parse(text: str, env: Mapping[str, str]) -> Scenario:
    """Read a scenario; the environment may set ISSUESANDBOX_AGENT_SEED and _SPEED for all."""
    seed = env.get("ISSUESANDBOX_AGENT_SEED", text)
    speed = env.get("ISSUESANDBOX_AGENT_SPEED", "1")
    factor = _convert("FACTOR", speed, f"ISSUESANDBOX_AGENT_SPEED={speed}")
    parsed = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        step = _parse_line(line.strip(), f"scenario line {number}")
        if step.verb == "seed":
            seed = str(step.arguments[0])
        elif step.verb == "speed":
            factor = step.arguments[0]
        else:
            parsed.append(step)
    if not isinstance(factor, float) or factor == 0:
        raise ScenarioError("scenario: speed 0 would never end; give a factor above 0")
    return Scenario(tuple(parsed), seed, factor)


def find(prompt: str, files: Iterable[str], env: Mapping[str, str]) -> str | None:
    """Return the text of the scenario that applies, None where there is none."""
    if "ISSUESANDBOX_SCENARIO" in env:
        return env["ISSUESANDBOX_SCENARIO"]
    if "ISSUESANDBOX_SCENARIO_FILE" in env:
        path = env["ISSUESANDBOX_SCENARIO_FILE"]
        text = read_small(path)
        if text is None:
            raise ScenarioError(f"scenario file {path}: not a readable text file under 1 MB")
        return text
    for text in (prompt, *files):
        block = _last_block(text)
        if block is not None:
            return block
    return None


def named_files(prompt: str) -> Iterator[str]:
    """Yield the contents of the files that a prompt names by a path with a slash."""
    for match in _NAMED_FILE.finditer(prompt):
        text = read_small(match.group().rstrip(".,;:!?"))
        if text is not None:
            yield text


def read_small(path: str) -> str | None:
    """Return a file's text, None if it is missing, no regular file or too large for a prompt."""
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError):
        return None
    return data.decode("utf-8", "replace") if len(data) <= _LARGEST_FILE else None


def _last_block(text: str) -> str | None:
    found: str | None = None
    fence = ""
    block: list[str] = []
    for line in text.splitlines():
        bare = line.strip(" >\t")
        opening = None if fence else _FENCE.match(line)
        if opening:
            fence, block = opening.group(1), []
        elif fence and bare.startswith(fence):
            found, fence = "\n".join(block), ""
        elif fence:
            block.append(bare)
    return found


def _parse_line(line: str, where: str) -> Step:
    verb, _, rest = line.partition(" ")
    if verb not in VERBS:
        raise ScenarioError(f"{where}: no step is called '{verb}'; `claude --help` lists them")
    signature = VERBS[verb][0]
    arguments: list[Argument] = []
    rest = rest.strip()
    for parameter in signature.split():
        name = parameter.strip("[]")
        if not rest and parameter.startswith("["):
            break
        if not rest:
            raise ScenarioError(f"{where}: '{verb}' wants {signature}")
        if name in _REST_OF_LINE:
            word, rest = _unescape(rest), ""
        else:
            word, _, rest = rest.partition(" ")
        arguments.append(_convert(name, word, f"{where}: '{line}'"))
        rest = rest.strip()
    if rest:
        raise ScenarioError(f"{where}: '{verb}' takes {signature or 'nothing'}, not '{rest}'")
    return Step(verb, tuple(arguments))


def _convert(name: str, word: str, where: str) -> Argument:
    kind = float if name in _FLOATS else int if name in _INTEGERS else str
    if name in _CHOICES and not _CHOICES[name].fullmatch(word):
        raise ScenarioError(f"{where}: {name} cannot be '{word}'")
    try:
        value = kind(word)
    except ValueError:
        raise ScenarioError(f"{where}: {name} must be a number") from None
    if not isinstance(value, str) and not 0 <= value < float("inf"):
        raise ScenarioError(f"{where}: {name} must be a number from 0")
    return value


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: {"n": "\n", "t": "\t", "\\": "\\"}[match.group(1)], text)
