"""The command line of the real CLI, with its traps: variadic flags swallow a prompt, `-rf` resumes.

Knows what may be written on a command line, not what any of it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

OUTPUT_FORMATS = ("text", "json", "stream-json")
PERMISSION_MODES = ("default", "acceptEdits", "bypassPermissions", "dontAsk", "plan", "auto")

# How much of the command line a flag takes: nothing, one argument, perhaps one, one or more.
_SWITCHES = [
    "--print",
    "--verbose",
    "--include-partial-messages",
    "--dangerously-skip-permissions",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--fork-session",
    "--no-session-persistence",
    "--bare",
    "--safe-mode",
    "--version",
    "--help",
]
_VALUES = [
    "--output-format",
    "--permission-mode",
    "--setting-sources",
    "--model",
    "--max-turns",
    "--max-budget-usd",
    "--session-id",
    "--append-system-prompt",
    "--append-system-prompt-file",
    "--system-prompt",
    "--system-prompt-file",
    "--settings",
    "--fallback-model",
    "--effort",
    "--name",
]
_OPTIONALS = ["--resume", "--debug"]
_MANY = ["--allowedTools", "--disallowedTools", "--mcp-config", "--tools", "--add-dir"]
_ALIASES = {
    "-p": "--print",
    "-v": "--version",
    "-h": "--help",
    "-r": "--resume",
    "-d": "--debug",
    "-n": "--name",
    "--allowed-tools": "--allowedTools",
    "--disallowed-tools": "--disallowedTools",
}


class UsageError(Exception):
    """A command line the real CLI refuses: one line on stderr, exit code 1, nothing on stdout."""


class Invocation(NamedTuple):
    """What one command line asked for."""

    prompt: str
    switches: frozenset[str]
    values: Mapping[str, str]
    lists: Mapping[str, tuple[str, ...]]

    def has(self, switch: str) -> bool:
        """Tell whether a switch was given."""
        return switch in self.switches

    def value(self, flag: str) -> str | None:
        """Return the value of a flag, None where it was not given."""
        return self.values.get(flag)

    @property
    def output_format(self) -> str:
        """Return how the answer is to be printed."""
        return self.values.get("--output-format", "text")

    @property
    def permission_mode(self) -> str:
        """Return which tools run without asking; nobody can be asked in a headless run."""
        if self.has("--dangerously-skip-permissions"):
            return "bypassPermissions"
        return self.values.get("--permission-mode", "default")

    @property
    def setting_sources(self) -> frozenset[str]:
        """Return whose settings apply; an empty value means nobody's."""
        given = self.values.get("--setting-sources", "user,project,local")
        return frozenset(source.strip() for source in given.split(",") if source.strip())

    @property
    def allowed_tools(self) -> frozenset[str]:
        """Return the tools allowed by name."""
        given = ",".join(self.lists.get("--allowedTools", ()))
        return frozenset(name.strip() for name in given.split(",") if name.strip())

    @property
    def max_turns(self) -> int | None:
        """Return the cap on model requests."""
        value = self.values.get("--max-turns")
        return None if value is None else int(value)

    @property
    def max_budget_usd(self) -> float | None:
        """Return the cap on the session's cost."""
        value = self.values.get("--max-budget-usd")
        return None if value is None else float(value)


def parse(argv: Sequence[str]) -> Invocation:
    """Read a command line; raise UsageError for what the real CLI would refuse."""
    parser = _Parser(list(argv))
    parser.run()
    invocation = Invocation(
        prompt=" ".join(parser.words),
        switches=frozenset(parser.switches),
        values=parser.values,
        lists={flag: tuple(given) for flag, given in parser.lists.items()},
    )
    _validate(invocation)
    return invocation


class _Parser:
    """One pass over the arguments, by the rules of the option parser the real CLI uses."""

    def __init__(self, rest: list[str]) -> None:
        self.rest = rest
        self.words: list[str] = []
        self.switches: set[str] = set()
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}

    def run(self) -> None:
        while self.rest:
            argument = self.rest.pop(0)
            if argument == "--":
                self.words += self.rest
                return
            if argument.startswith("-") and argument != "-":
                self._flag(argument)
            else:
                self.words.append(argument)

    def _flag(self, argument: str) -> None:
        name, inline = _split(argument)
        if name in _SWITCHES:
            self.switches.add(name)
            if inline:
                self.rest.insert(0, f"-{inline}")
        elif name in _VALUES:
            self.values[name] = self._required(name, inline)
        elif name in _OPTIONALS:
            self.values[name] = self._optional(inline)
        elif name in _MANY:
            self.lists.setdefault(name, []).extend(self._several(name, inline))
        else:
            raise UsageError(f"error: unknown option '{argument}'")

    def _required(self, name: str, inline: str | None) -> str:
        if inline is not None:
            return inline
        if not self.rest:
            raise UsageError(f"error: option '{name} <value>' argument missing")
        return self.rest.pop(0)

    def _optional(self, inline: str | None) -> str:
        if inline is not None:
            return inline
        return self.rest.pop(0) if self.rest and not self.rest[0].startswith("-") else ""

    def _several(self, name: str, inline: str | None) -> list[str]:
        given = [self._required(name, inline)]
        while self.rest and not self.rest[0].startswith("-"):
            given.append(self.rest.pop(0))
        return given


def _split(argument: str) -> tuple[str, str | None]:
    """Split a value off its flag: `--flag=value`, `-rvalue`."""
    if argument.startswith("--"):
        name, equals, inline = argument.partition("=")
        return _ALIASES.get(name, name), inline if equals else None
    short = argument[:2]
    return _ALIASES.get(short, short), argument[2:] or None


def _validate(invocation: Invocation) -> None:
    _one_of(invocation, "--output-format", OUTPUT_FORMATS)
    _one_of(invocation, "--permission-mode", PERMISSION_MODES)
    _number(invocation, "--max-turns", int)
    _number(invocation, "--max-budget-usd", float)
    if invocation.output_format == "stream-json" and not invocation.has("--verbose"):
        raise UsageError(
            "Error: When using --print, --output-format=stream-json requires --verbose"
        )


def _one_of(invocation: Invocation, flag: str, choices: Sequence[str]) -> None:
    value = invocation.value(flag)
    if value is not None and value not in choices:
        allowed = ", ".join(choices)
        raise UsageError(
            f"error: option '{flag}' argument '{value}' is invalid. Allowed choices are {allowed}."
        )


def _number(invocation: Invocation, flag: str, kind: type[int] | type[float]) -> None:
    value = invocation.value(flag)
    if value is None:
        return
    try:
        positive = kind(value) > 0
    except ValueError:
        positive = False
    if not positive:
        raise UsageError(f"error: option '{flag}' argument '{value}' is not a positive number")
