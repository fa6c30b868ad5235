"""Reads what an agent prints: one JSON object per line, among anything else.

Nothing an agent prints can break a run: what is not understood is skipped, memory is bounded,
and every figure is checked. Knows the lines of `claude` and `cursor-agent`; key order varies
and types are added, so lines are parsed and never matched.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from issuesandbox.api.spec_agent import AgentProfile
from issuesandbox.api.status_run import TokenUsage
from issuesandbox.domain.agents.facts import AgentFacts
from issuesandbox.domain.prompt import clean

LONGEST_LINE: Final = 2 << 20
_LONGEST_TEXT: Final = 16_384
# It becomes an argument of the agent that resumes it, so it must not look like a flag, and the
# status gives it 64 characters.
_SESSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LARGEST_FIGURE: Final = 10**15
_REFUSED: Final = (401, 403)
_TOKENS: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}

Line = Mapping[str, Any]


class StreamReader:
    """Puts chunks of output together to lines, and lines to facts."""

    def __init__(self, profile: AgentProfile = AgentProfile.CLAUDE) -> None:
        self._needs_result = profile is not AgentProfile.CUSTOM
        self._offset = 0
        self._partial = bytearray()
        self._skipping = False
        self._facts: dict[str, Any] = {}
        self._said = ""
        self._message_id: object = None
        # Figures of finished results, and of the messages since the last one.
        self._settled: Counter[str] = Counter()
        self._open: Counter[str] = Counter()
        self._readers: dict[object, Callable[[Line], None]] = {
            "system": self._system,
            "assistant": self._assistant,
            "tool_call": self._tool_call,
            "result": self._result,
        }

    @property
    def offset(self) -> int:
        """Return up to where the output has been read."""
        return self._offset

    @property
    def facts(self) -> AgentFacts:
        """Return what is known by now."""
        sums = self._settled + self._open
        figures = Counter({name: min(sums[name], _LARGEST_FIGURE) for name in sums})
        turns = figures.pop("turns", 0)
        cost = self._facts.get("cost")
        known = {name: figures[name] for name in _TOKENS.values() if name in figures}
        usage = TokenUsage(turns=turns or None, cost_usd=cost, **known)
        return AgentFacts(
            needs_result=self._needs_result,
            turns=turns,
            usage=usage,
            **{"final_text": self._said, **self._facts},
        )

    def feed(self, data: bytes, offset: int | None = None) -> None:
        """Read the next bytes; with an offset, gaps and repetitions are recognised."""
        if offset is not None and offset != self._offset:
            if offset < self._offset:
                data = data[self._offset - offset :]
            else:
                # What lies between is lost, so neither half of a line there can be read.
                self._partial.clear()
                self._skipping = offset > 0
                self._offset = offset
        self._offset += len(data)
        *lines, rest = data.split(b"\n")
        for part in lines:
            self._append(part)
            self._end_line()
        self._append(rest)

    def _append(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._partial) + len(part) > LONGEST_LINE:
            self._partial.clear()
            self._skipping = True
        else:
            self._partial += part

    def _end_line(self) -> None:
        line, skipped = bytes(self._partial), self._skipping
        self._partial.clear()
        self._skipping = False
        if skipped or not line.strip():
            return
        told = _decoded(line)
        if told is None:
            self._facts["last_words"] = clean(line[:2000].decode("utf-8", "replace")).strip()
            return
        session = told.get("session_id")
        if isinstance(session, str) and _SESSION.fullmatch(session):
            self._facts["session_id"] = session
        kind = told.get("type")
        reader = self._readers.get(kind) if isinstance(kind, str) else None
        if reader is not None:
            reader(told)

    def _system(self, line: Line) -> None:
        if line.get("subtype") != "api_retry":
            return
        self._facts["retries"] = self._facts.get("retries", 0) + 1
        status = line.get("error_status")
        self._facts["last_retry_status"] = status if isinstance(status, int) else None
        if status in _REFUSED:
            self._facts["unauthorized"] = True

    def _assistant(self, line: Line) -> None:
        message = _mapping(line.get("message"))
        if line.get("is_api_error_message") is True or line.get("error"):
            if line.get("api_error_status") in _REFUSED:
                self._facts["unauthorized"] = True
        else:
            # The service took the key after all.
            self._facts["unauthorized"] = False
        # One line per block of the message, each with the figures of the whole message.
        message_id = message.get("id")
        if message_id is None or message_id != self._message_id:
            self._message_id = message_id
            self._open += Counter({"turns": 1, **_tokens(message.get("usage"))})
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                self._facts["last_tool"] = _text(block.get("name"))[:64] or None
            elif block.get("type") == "text" and _text(block.get("text")).strip():
                self._said = _text(block.get("text"))[:_LONGEST_TEXT]

    def _tool_call(self, line: Line) -> None:
        name = next(iter(_mapping(line.get("tool_call"))), "")
        tool = _text(name).removesuffix("ToolCall")[:64] or None
        self._facts["last_tool"] = tool

    def _result(self, line: Line) -> None:
        self._settled += Counter(
            {"turns": _figure(line.get("num_turns")), **_tokens(line.get("usage"))}
        )
        self._open.clear()
        errors = line.get("errors")
        told = "\n".join(map(_text, errors)) if isinstance(errors, list) else ""
        text = (_text(line.get("result")) or told or self._said)[:_LONGEST_TEXT]
        failed = line.get("is_error") is not False
        self._facts.update(
            result_seen=True,
            is_error=failed,
            subtype=_text(line.get("subtype"))[:64] or None,
            terminal_reason=_text(line.get("terminal_reason"))[:64] or None,
            final_text=text,
        )
        cost = _amount(line.get("total_cost_usd"))
        if cost is not None:
            self._facts["cost"] = cost
        refused = line.get("api_error_status") in _REFUSED or "not logged in" in text[:200].lower()
        if failed and refused:
            self._facts["unauthorized"] = True


def _decoded(line: bytes) -> Line | None:
    if not line.lstrip().startswith(b"{"):
        return None
    for candidate in (line, line.decode("utf-8", "replace").encode()):
        try:
            found = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _mapping(value: object) -> Line:
    return value if isinstance(value, dict) else {}


def _blocks(message: Line) -> list[Line]:
    content = message.get("content")
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


def _text(value: object) -> str:
    return clean(value) if isinstance(value, str) else ""


def _tokens(usage: object) -> dict[str, int]:
    told = _mapping(usage)
    return {ours: _figure(told.get(theirs)) for theirs, ours in _TOKENS.items() if theirs in told}


def _figure(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_FIGURE:
        return value
    return 0


def _amount(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not (math.isfinite(value) and 0 <= value < 10**8):
        return None
    return f"{value:.6f}".rstrip("0").rstrip(".")
