"""What an agent can do to the repository's own machinery: commits, settings, planted traps.

Each trap writes its name into a marker file when somebody runs it; a test then knows.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from . import shell
from .conversation import Conversation

_IDENTITY = ["-c", "user.name=Scripted Agent", "-c", "user.email=agent@example.invalid"]
_HOOKS = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-push",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
]


def commit(talk: Conversation, message: str) -> None:
    """Commit everything, by the agent's own hand."""
    everything = ["git", "add", "--all"]
    shell.run(talk, everything, ["git", *_IDENTITY, "commit", "--quiet", "--message", message])


def gitconfig(talk: Conversation, key: str, value: str) -> None:
    """Set a key in the repository's configuration."""
    shell.run(talk, ["git", "config", key, value])


def plant(talk: Conversation, trap: str, marker: str) -> None:
    """Leave something that git would execute later."""
    traps = {
        "hooks": _hooks,
        "hookspath": _hookspath,
        "filter": _filter,
        "fsmonitor": _fsmonitor,
    }
    shell.bash(talk, f"set -e; {traps[trap](marker)}")


def _hooks(marker: str) -> str:
    return "; ".join(_script(f".git/hooks/{hook}", hook, marker) for hook in _HOOKS)


def _hookspath(marker: str) -> str:
    planted = "; ".join(_script(f".git/planted/{hook}", hook, marker) for hook in _HOOKS)
    return f'mkdir -p .git/planted; {planted}; git config core.hooksPath "$PWD/.git/planted"'


def _filter(marker: str) -> str:
    command = f"echo filter >> {shlex.quote(marker)}; cat"
    return (
        "mkdir -p .git/info; echo '* filter=planted' >> .git/info/attributes; "
        f"git config filter.planted.clean {shlex.quote(command)}; "
        f"git config filter.planted.smudge {shlex.quote(command)}"
    )


def _fsmonitor(marker: str) -> str:
    script = _script(".git/planted-fsmonitor", "fsmonitor", marker)
    return f'{script}; git config core.fsmonitor "$PWD/.git/planted-fsmonitor"'


def _script(path: str, name: str, marker: str) -> str:
    body = f"#!/bin/sh\necho {name} >> {shlex.quote(marker)}\n"
    return f"printf %s {shlex.quote(body)} > {path}; chmod +x {path}"


HANDLERS: dict[str, Callable[..., None]] = {
    verb.__name__: verb for verb in (commit, gitconfig, plant)
}
