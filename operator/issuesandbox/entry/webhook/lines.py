"""The connections that deliveries come over: aiohttp's own, less what they do in vain.

Twice for each body aiohttp resumes a connection that nobody paused, and parses nothing once more;
most bodies are small, and nothing is paused for them. Knows nothing of deliveries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web


class Line(web.RequestHandler):
    """One connection; only what was paused is resumed."""

    __slots__ = ("_is_paused",)

    def __init__(self, lines: Lines, **options: Any) -> None:
        super().__init__(lines, loop=asyncio.get_running_loop(), **options)
        self._is_paused = False

    def pause_reading(self) -> None:
        """Take in nothing for a while: more came than was read."""
        self._is_paused = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on after a pause."""
        if self._is_paused:
            self._is_paused = False
            super().resume_reading(resume_parser)


class Lines(web.Server):
    """All connections of one server."""

    def __init__(
        self,
        answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        **options: Any,
    ) -> None:
        super().__init__(answer)
        self._options = options

    def __call__(self) -> Line:
        """Take one more."""
        return Line(self, **self._options)
