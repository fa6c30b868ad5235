"""Tool calls: how one appears in the output, who permits it, and the calls that touch files.

A tool that fails is told to the model and ends nothing, as with the real CLI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from .conversation import Block, Conversation

_SUMMARY_FILE = re.compile(r"[\w./-]*summary[\w-]*\.(?:md|txt|json)", re.IGNORECASE)
_DEFAULT_SUMMARY_FILE = "SUMMARY.md"
_EDITS = frozenset({"Write", "Edit"})


def call(talk: Conversation, name: str, told: Block, act: Callable[[str], str]) -> None:
    """Make one tool call: announce it, run it if permitted, report what came back."""
    tool_id = announce(talk, name, told)
    if not _permitted(talk, name):
        refuse(talk, tool_id, name, told)
        return
    talk.in_tool = True
    try:
        report(talk, tool_id, act(tool_id))
    except (OSError, ValueError) as error:
        report(talk, tool_id, f"Error: {error}", failed=True)
    talk.in_tool = False


def announce(talk: Conversation, name: str, told: Block) -> str:
    """Let the model ask for a tool, in a message of two blocks; return the call's id."""
    tool_id = f"toolu_{talk.seed.hex()[:24]}"
    talk.answer(
        {"type": "text", "text": f"I use {name}."},
        {"type": "tool_use", "id": tool_id, "name": name, "input": told},
    )
    talk.final_text = None
    return tool_id


def report(talk: Conversation, tool_id: str, output: str, *, failed: bool = False) -> None:
    """Print what a tool gave back."""
    block: Block = {
        "type": "tool_result",
        "tool_use_id": tool_id,
        "content": output,
        "is_error": failed,
    }
    message = {"role": "user", "content": [block]}
    details = {"output": output, "interrupted": False}
    talk.stream.emit("user", message=message, tool_use_result=details, parent_tool_use_id=None)
    talk.transcript.append({"type": "user", "message": message})


def refuse(talk: Conversation, tool_id: str, name: str, told: Block) -> None:
    """Deny a call: the run goes on and can still end in success."""
    talk.denials.append({"tool_name": name, "tool_use_id": tool_id, "tool_input": told})
    talk.stream.emit("system", subtype="permission_denied", tool_name=name, tool_use_id=tool_id)
    report(talk, tool_id, f"Permission to use {name} was not granted.", failed=True)


def read(talk: Conversation, path: str) -> None:
    """Read a file."""
    call(talk, "Read", {"file_path": _absolute(path)}, lambda _: _read(path)[:30_000])


def write(talk: Conversation, path: str, content: str) -> None:
    """Write a file, one line break at its end."""

    def act(_: str) -> str:
        _write(path, content + "\n")
        return f"File created successfully at: {path}"

    call(talk, "Write", {"file_path": _absolute(path), "content": content}, act)


def append(talk: Conversation, path: str, content: str) -> None:
    """Add a line to a file, which need not exist."""

    def act(_: str) -> str:
        _write(path, (_read(path) if os.path.exists(path) else "") + content + "\n")
        return f"The file {path} has been updated."

    call(talk, "Edit", {"file_path": _absolute(path), "new_string": content}, act)


def edit(talk: Conversation, path: str, change: str) -> None:
    """Replace text that is in a file."""
    old, _, new = change.partition(" => ")

    def act(_: str) -> str:
        text = _read(path)
        if old not in text:
            raise ValueError("String to replace not found in file.")
        _write(path, text.replace(old, new))
        return f"The file {path} has been updated."

    told: Block = {"file_path": _absolute(path), "old_string": old, "new_string": new}
    call(talk, "Edit", told, act)


def delete(talk: Conversation, path: str) -> None:
    """Remove a file."""

    def act(_: str) -> str:
        os.unlink(path)
        return ""

    call(talk, "Bash", {"command": f"rm {path}"}, act)


def summary(talk: Conversation, content: str) -> None:
    """Write the summary file; the prompt, or a file it names, says where."""
    for text in (talk.material.prompt, *talk.material.files):
        named = _SUMMARY_FILE.search(text)
        if named:
            write(talk, named.group(), content)
            return
    write(talk, _DEFAULT_SUMMARY_FILE, content)


def deny(talk: Conversation, name: str) -> None:
    """Ask for a tool that is denied whatever the permissions."""
    refuse(talk, announce(talk, name, {}), name, {})


def _permitted(talk: Conversation, name: str) -> bool:
    mode = talk.invocation.permission_mode
    allowed = {tool.partition("(")[0] for tool in talk.invocation.allowed_tools}
    if mode == "bypassPermissions" or name in allowed:
        return True
    return (name == "Read" and mode != "dontAsk") or (name in _EDITS and mode == "acceptEdits")


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        return path  # the script removed its own working directory


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


HANDLERS: dict[str, Callable[..., None]] = {
    verb.__name__: verb for verb in (read, write, append, edit, delete, summary, deny)
}
