"""Keeps the one comment of a resource on its issue: found again, edited in place, never two.

After a crash between posting and remembering, or with two operators at once, there may be more
than one: the lowest id wins and the others are deleted. Knows nothing of what the text says.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from issuesandbox.api.status import Comment
from issuesandbox.clock import Clock
from issuesandbox.domain.comment import CommentText
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.github import CommentView, GitHub

_REMEMBERED: Final = 10_000


class Teller:
    """Writes comments, each at most once in a while."""

    def __init__(self, github: GitHub, clock: Clock, *, gap: float, refresh: float) -> None:
        """Edit at most every `gap` seconds; without news only about every `refresh` seconds."""
        self._github = github
        self._clock = clock
        self._gap = gap
        # Whoever asks at that pace may come a little early.
        self._refresh = 0.9 * refresh
        self._written: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def tell(
        self, repository: str, number: int, text: CommentText, known: Comment | None
    ) -> Comment:
        """Make the comment say `text` and return what to remember in the status.

        Waits until the last edit is long enough ago; failures come as they are.
        """
        if known is not None and not self._is_due(text, known):
            return known
        await self._keep_distance(text)
        if known is not None:
            try:
                return self._noted(text, await self._update(repository, known.id, text))
            except NotFound:
                # Somebody deleted it, or the issue is gone: looking tells which.
                pass
        return self._noted(text, await self._write_first(repository, number, text))

    def _is_due(self, text: CommentText, known: Comment) -> bool:
        if known.digest != text.digest:
            return True
        at, body = self._written.get(text.marker, (None, None))
        # A comment that this process never wrote is right as it is: there is no news.
        return (
            at is not None and body != text.body and self._clock.monotonic() - at >= self._refresh
        )

    async def _keep_distance(self, text: CommentText) -> None:
        at, _ = self._written.get(text.marker, (None, None))
        if at is not None:
            await asyncio.sleep(max(0.0, at + self._gap - self._clock.monotonic()))

    async def _write_first(self, repository: str, number: int, text: CommentText) -> CommentView:
        """Write the comment where none is known: look for one before, and for others after."""
        found = list(await self._github.comments(repository, number, text.marker))
        if not found:
            # A list that is read right after may not show it yet.
            found = [await self._github.create_comment(repository, number, text.body)]
            found += await self._github.comments(repository, number, text.marker)
        kept = min(found, key=lambda each: each.id)
        for other in {each.id for each in found} - {kept.id}:
            await self._github.delete_comment(repository, other)
        if kept.body == text.body:
            return kept
        return await self._update(repository, kept.id, text)

    async def _update(self, repository: str, comment_id: int, text: CommentText) -> CommentView:
        return await self._github.update_comment(repository, comment_id, text.body)

    def _noted(self, text: CommentText, view: CommentView) -> Comment:
        self._written[text.marker] = (self._clock.monotonic(), text.body)
        self._written.move_to_end(text.marker)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
        return Comment(id=view.id, url=view.url or None, digest=text.digest)
