"""What goes wrong on purpose: refusals, delays and broken connections, before or after the effect.

A fault after the effect is a lost answer: the work is done and the caller cannot know. Knows
operations by GitHub's own names for them, such as `issues/create-comment`.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from aiohttp import web

from issuesandbox.local.github.answers import GitHubError, secondary_limit


class FaultKind(StrEnum):
    """How a call fails."""

    STATUS = "status"
    SECONDARY_RATE_LIMIT = "secondary-rate-limit"
    SLOW = "slow"
    RESET = "reset"


@dataclass
class Fault:
    """A fault for the next calls that match; without a count, until it is removed."""

    id: int
    kind: FaultKind
    operation: str = "*"
    method: str = "*"
    path: str = "*"
    count: int | None = 1
    skip: int = 0
    probability: float = 1.0
    after_effect: bool = False
    status: int = 500
    message: str = ""
    seconds: float = 1.0
    hits: int = 0

    def matches(self, operation: str, method: str, path: str) -> bool:
        """Tell whether this fault is meant for a call."""
        return (
            fnmatchcase(operation, self.operation)
            and fnmatchcase(method, self.method)
            and fnmatchcase(path, self.path)
        )

    def label(self) -> str:
        """Name the fault for the journal."""
        kind = f"status {self.status}" if self.kind is FaultKind.STATUS else self.kind.value
        return f"{kind} {'after' if self.after_effect else 'before'} effect"


class Faults:
    """All faults in force, first match first."""

    def __init__(self, seed: int = 0) -> None:
        self.active: list[Fault] = []
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self._last_id = 0
        self._held: set[asyncio.Task[object]] = set()

    def next_id(self) -> int:
        """Return a number for a new fault."""
        self._last_id += 1
        return self._last_id

    def take(self, operation: str, method: str, path: str) -> Fault | None:
        """Return the fault that strikes this call, and use it up."""
        for fault in self.active:
            if not fault.matches(operation, method, path):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                continue
            if self._random.random() >= fault.probability:
                continue
            fault.hits += 1
            if fault.count is not None and fault.hits >= fault.count:
                self.active.remove(fault)
            return fault
        return None

    async def strike(self, fault: Fault, request: web.Request) -> web.StreamResponse | None:
        """Let a fault happen; nothing comes back when the call goes on afterwards."""
        if fault.kind is FaultKind.SLOW:
            await self._hold(fault.seconds)
            return None
        if fault.kind is FaultKind.SECONDARY_RATE_LIMIT:
            raise secondary_limit(max(1, round(fault.seconds)))
        if fault.kind is FaultKind.STATUS:
            raise GitHubError(fault.status, fault.message)
        _reset(request)
        return web.Response(status=599)

    async def _hold(self, seconds: float) -> None:
        task = asyncio.current_task()
        assert task is not None, "requests are handled in tasks"
        self._held.add(task)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._held.discard(task)

    async def close(self) -> None:
        """Drop the calls that are held back: their callers may be gone, and nobody waits."""
        held = tuple(self._held)
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)


def _reset(request: web.Request) -> None:
    """Break the connection hard, so that the caller sees a reset and not an empty answer."""
    transport = request.transport
    if transport is None:
        return
    peer = transport.get_extra_info("socket")
    if peer is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
