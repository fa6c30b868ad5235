"""The one wire that every outgoing call of an operator goes over; it can end the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeVar

from issuesandbox.ports.errors import CallError, Unavailable

Answer = TypeVar("Answer")


class Fate(Enum):
    """What becomes of the operator, or of its call."""

    DIES_BEFORE = auto()
    DIES_AFTER = auto()
    ANSWER_LOST = auto()


@dataclass
class Wire:
    """Carries every call; one of them may be doomed."""

    doomed: int | None = None
    """Which call it is, counted from 0."""
    named: str | None = None
    """Which call it is, by its name."""
    fate: Fate = Fate.DIES_BEFORE
    calls: list[str] = field(default_factory=list)
    death: asyncio.Event = field(default_factory=asyncio.Event)
    interruption: Callable[[], None] | None = None
    """What happens in the world right before the doomed call, instead of its fate."""
    under_way: set[asyncio.Task[object]] = field(default_factory=set)
    refusals: dict[str, list[CallError]] = field(default_factory=dict)
    """What calls of a name are answered one after the other, without effect."""

    def check(self, what: str) -> None:
        """Raise what the next call of this name is refused with."""
        refusals = self.refusals.get(what)
        if refusals:
            raise refusals.pop(0)

    async def carry(self, what: str, effect: Callable[[], Awaitable[Answer]]) -> Answer:
        """Make a call."""
        doomed = len(self.calls) == self.doomed or what == self.named
        self.calls.append(what)
        if doomed and self.interruption is not None:
            self.interruption()
            doomed = False
        self.check(what)
        if doomed and self.fate is Fate.DIES_BEFORE:
            await self._die()
        answer = await self._effect(effect)
        if doomed and self.fate is Fate.DIES_AFTER:
            await self._die()
        if doomed:
            raise Unavailable(f"the answer to {what} was lost")
        return answer

    async def _effect(self, effect: Callable[[], Awaitable[Answer]]) -> Answer:
        """Let a call take effect, also if whoever made it waits no longer."""
        task = asyncio.ensure_future(effect())
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return await asyncio.shield(task)

    async def settle(self) -> None:
        """Wait until every call that was made has taken effect."""
        await asyncio.gather(*self.under_way, return_exceptions=True)

    async def _die(self) -> None:
        """Never go on: the process is gone."""
        self.death.set()
        await asyncio.Event().wait()
