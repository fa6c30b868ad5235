"""What an agent printed, in lines for people. Understands little and hides nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

_LONGEST = 2000


def shown(text: str) -> Iterator[str]:
    """Yield the lines a person wants to read; what is no message is shown as it stands."""
    for line in text.splitlines():
        try:
            message = msgspec.json.decode(line)
        except msgspec.MsgspecError:
            yield line[:_LONGEST]
            continue
        if isinstance(message, dict):
            yield from (each[:_LONGEST] for each in _of(message))


def _of(message: Mapping[str, Any]) -> Iterator[str]:
    kind = message.get("type")
    if kind == "result":
        verdict = "failed" if message.get("is_error") else "done"
        yield f"[{verdict}] {message.get('result') or message.get('subtype') or ''}"
    elif kind == "assistant":
        yield from _blocks(message)
    elif kind == "system" and message.get("subtype") == "api_retry":
        status = message.get("error_status") or "no answer"
        yield f"[retry] the model's service: {status}"


def _blocks(message: Mapping[str, Any]) -> Iterator[str]:
    body = message.get("message")
    blocks = body.get("content") if isinstance(body, dict) else None
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "text":
            yield str(block.get("text", ""))
        elif block.get("type") == "tool_use":
            given = msgspec.json.encode(block.get("input")).decode()
            yield f"[{block.get('name')}] {given[:200]}"
