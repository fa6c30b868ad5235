"""Slash commands in comments. Knows nothing of who may give them or what they do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from issuesandbox.api.constraints import clip

# Every comment of ours carries it, so that we never listen to ourselves.
MARKER = "<!-- issuesandbox"
# The one comment about the runs of a resource.
STATUS_MARKER = f"{MARKER}:status"
_MAX_TEXT = 16384
_LINE = re.compile(r"/([a-z][a-z-]{0,30})(?:[ \t]+(.*))?", re.ASCII | re.DOTALL)


class Verb(StrEnum):
    """What can be asked for in a comment."""

    RUN = "run"
    STOP = "stop"
    RETRY = "retry"
    CONTINUE = "continue"
    STATUS = "status"
    KEEP = "keep"
    DELETE = "delete"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Command:
    """One command with the text behind it."""

    verb: Verb
    text: str = ""
    word: str = ""
    """What was typed, where nobody knows it."""


def read_command(body: str) -> Command | None:
    """Return the command that a comment begins with, if it does.

    Only the very beginning counts: quotes, code and commands further down are talk. A path such
    as `/etc/hosts` is no command.
    """
    text = body.replace("\r\n", "\n").strip()
    first, _, rest = text.partition("\n")
    found = _LINE.fullmatch(first.rstrip())
    if found is None or MARKER in body:
        return None
    word = found.group(1)
    said = clip("\n".join(filter(None, (found.group(2), rest))).strip(), _MAX_TEXT)
    if word not in set(Verb) or word == Verb.UNKNOWN:
        return Command(Verb.UNKNOWN, said, word)
    return Command(Verb(word), said, word)


def mentions(body: str, name: str) -> bool:
    """Tell whether a text addresses somebody by `@name`; ours and quoted lines do not count."""
    if not name or MARKER in body:
        return False
    wanted = re.compile(rf"(?<![\w@/-])@{re.escape(name.lstrip('@'))}(?![\w-])", re.IGNORECASE)
    return any(
        wanted.search(line) for line in body.splitlines() if not line.lstrip().startswith(">")
    )
