"""Steps that make trouble for whoever reads the output or watches the process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from .conversation import Conversation, Left

_MEGABYTE = 1_000_000
_FLOOD_LINE = 16_000


def flood(talk: Conversation, megabytes: float) -> None:
    """Print many well-formed messages."""
    for _ in range(round(megabytes * _MEGABYTE / _FLOOD_LINE)):
        _message_of(talk, _FLOOD_LINE)


def longline(talk: Conversation, megabytes: float) -> None:
    """Print one message on a line that hardly fits anywhere."""
    _message_of(talk, round(megabytes * _MEGABYTE))


def binary(talk: Conversation, length: int) -> None:
    """Print bytes of all values; they end in a line break, so that later lines can be read."""
    every = bytes(value for value in range(256) if value != ord("\n"))
    talk.stream.stdout.write((every * (length // len(every) + 1))[:length] + b"\n")


def raw(talk: Conversation, text: str) -> None:
    """Print a line as it stands."""
    talk.stream.stdout.write(f"{text}\n".encode("utf-8", "replace"))


def unknown(talk: Conversation, kind: str) -> None:
    """Print a line of a type no reader knows."""
    talk.stream.emit(kind, subtype="scripted")


def stderr(_: Conversation, text: str) -> None:
    """Print a line on stderr."""
    os.write(2, f"{text}\n".encode("utf-8", "replace"))


def deaf(_: Conversation) -> None:
    """Ignore the signals that ask for an end; only SIGKILL helps."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def leave(_: Conversation, code: int) -> None:
    """End at once, without a result line."""
    raise Left(code)


def crash(_: Conversation) -> None:
    """End as a process ends that the kernel kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def _message_of(talk: Conversation, length: int) -> None:
    block = {"type": "text", "text": "x" * length}
    message = {"role": "assistant", "model": talk.model, "content": [block]}
    talk.stream.emit("assistant", message=message, parent_tool_use_id=None)


HANDLERS: dict[str, Callable[..., None]] = {
    "exit": leave,
    **{verb.__name__: verb for verb in (flood, longline, binary, raw, unknown, stderr)},
    **{verb.__name__: verb for verb in (deaf, crash)},
}
