"""Sandboxes that only talk: the toolbox of the Daytona stub, for many runs at once.

Two hundred real supervisors with their agents and looks would need more than two cores, and that
is not the operator's cost. Here a command answers what the supervisor would: `start` at once,
`poll` after as long as it may wait, with what the agent printed until then. The output of an agent
is the same line over and over, at a steady pace. A line counts as received when the operator asks
for what comes after it.
"""

from __future__ import annotations

import base64
import re
import shlex
import time
from collections import Counter
from dataclasses import dataclass

import msgspec

LINES_PER_SECOND = 5.0
LINE = (
    msgspec.json.encode(
        {
            "type": "stream_event",
            "event": {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "Looking at the next file. " * 4},
            },
            "session_id": "00000000-0000-4000-8000-000000000000",
        }
    )
    + b"\n"
)
_HOME = msgspec.json.encode({"dir": "/home/daytona"})
_COMMAND = re.compile(r'exec sh (?:"\$1" |-c .* supervisor )(start|poll) (.*) </dev/null')
_encode = msgspec.json.Encoder().encode

Delayed = tuple[int, bytes, float]


@dataclass(slots=True)
class _Agent:
    started: float
    read: int = 0
    """How many lines the operator has for sure."""

    def printed(self, now: float) -> int:
        return int((now - self.started) * LINES_PER_SECOND)


class Toolboxes:
    """The inside of all sandboxes."""

    def __init__(self) -> None:
        self._agents: dict[str, _Agent] = {}
        self.calls: Counter[str] = Counter()
        self.lags: list[float] = []

    @property
    def running(self) -> int:
        """Return how many agents were looked at so far."""
        return sum(agent.read > 0 for agent in self._agents.values())

    def forget_calls(self) -> None:
        """Begin to count anew."""
        self.calls.clear()
        self.lags.clear()

    def answer(self, sandbox: str, call: str, body: bytes) -> Delayed:
        """Return the answer to one call, and how long it takes."""
        if call != "process/execute":
            self.calls[call] += 1
            return 200, _HOME if call == "user-home-dir" else b"{}", 0.0
        order = msgspec.json.decode(body)
        found = _COMMAND.search(order["command"])
        verb = found[1] if found is not None else "execute"
        self.calls[verb] += 1
        now = time.monotonic()
        if found is None:
            return 200, _result("a" * 40), 0.0
        if verb == "start":
            self._agents[sandbox] = _Agent(now)
            return 200, _result(_pulse(self._agents[sandbox], now, None)), 0.0
        _, offset, wait, *_ = shlex.split(found[2])
        agent = self._agents[sandbox]
        self._received(agent, int(offset), now)
        # Told as it will be when the answer leaves.
        then = now + float(wait)
        return 200, _result(_pulse(agent, then, int(offset))), float(wait)

    def _received(self, agent: _Agent, offset: int, now: float) -> None:
        lines = offset // len(LINE)
        for turn in range(agent.read + 1, lines + 1):
            self.lags.append(now - agent.started - turn / LINES_PER_SECOND)
        agent.read = lines


def _pulse(agent: _Agent, now: float, offset: int | None) -> str:
    lines = agent.printed(now)
    size, age = lines * len(LINE), int((now - agent.started) * 100)
    told = ["issuesandbox-pulse", "state RUNNING", f"size {size}", f"age {age}", "silent 0"]
    if offset is not None and size > offset:
        chunk = LINE * (lines - offset // len(LINE))
        told += [f"base64 {offset}", base64.b64encode(chunk).decode()]
    return "\n".join((*told, "end", ""))


def _result(text: str) -> bytes:
    return _encode({"exitCode": 0, "result": text})
