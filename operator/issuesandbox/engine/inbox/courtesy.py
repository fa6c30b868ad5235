"""Reactions and answers on GitHub, after the delivery was answered: nobody waits for them.

Reactions are made once however often they are asked for. An answer is found again by its marker;
where two replicas answered at once, the lowest id stays.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from issuesandbox.domain.webhook.answers import with_marker
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.github import Forge, GitHub, Reaction

_AT_ONCE = 16
_MOST_WAITING = 1000

logger = logging.getLogger(__name__)


class Courtesy:
    """Does small things for people in the background."""

    def __init__(self, github: GitHub, forge: Forge) -> None:
        self._github = github
        self._forge = forge
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_of: dict[int, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self.failures = 0

    def react(self, repository: str, comment_id: int, *reactions: Reaction) -> None:
        """Put reactions under a comment, one after the other."""

        async def work() -> None:
            for each in reactions:
                await self._forge.react_to_comment(repository, comment_id, each)

        self._start(work(), comment_id)

    def answer(
        self, repository: str, number: int, text: str, marker: str, refused: int | None = None
    ) -> None:
        """Post an answer unless it is there; `refused` is the comment that was not obeyed."""

        async def work() -> None:
            if await self._github.comments(repository, number, marker):
                return
            if refused is not None:
                await self._forge.react_to_comment(repository, refused, Reaction.CONFUSED)
            await self._github.create_comment(repository, number, with_marker(text, marker))
            _, *others = await self._github.comments(repository, number, marker)
            for each in others:
                await self._github.delete_comment(repository, each.id)

        self._start(work(), refused or 0)

    async def drain(self, seconds: float) -> None:
        """Wait for what is on its way, but not for ever."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None], comment_id: int) -> None:
        if len(self._tasks) >= _MOST_WAITING:
            work.close()
            self.failures += 1
            return
        # What is done about one comment is done in its order, and people see it so.
        before = self._last_of.get(comment_id) if comment_id else None
        task = asyncio.get_running_loop().create_task(self._guarded(work, before))
        self._tasks.add(task)
        self._last_of[comment_id] = task
        task.add_done_callback(lambda ended: self._forget(ended, comment_id))

    def _forget(self, ended: asyncio.Task[None], comment_id: int) -> None:
        self._tasks.discard(ended)
        if self._last_of.get(comment_id) is ended:
            del self._last_of[comment_id]

    async def _guarded(
        self, work: Coroutine[Any, Any, None], before: asyncio.Task[None] | None
    ) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
            async with self._turn:
                await work
        except CallError as error:
            self.failures += 1
            logger.warning("courtesy failed", extra={"error": str(error)})
        finally:
            work.close()
