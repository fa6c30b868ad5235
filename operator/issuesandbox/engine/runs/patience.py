"""Patience with what fails for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from issuesandbox.ports.errors import CallError, Denied, Invalid, NotFound

_TRIES = 4
# What no repetition changes.
FINAL = (NotFound, Denied, Invalid)
T = TypeVar("T")


async def patiently(act: Callable[[], Awaitable[T]]) -> T:
    """Do what may fail for a moment; raise what does not pass."""
    for attempt in range(_TRIES - 1):
        try:
            return await act()
        except FINAL:
            raise
        except CallError as error:
            await asyncio.sleep(min(error.retry_after or 2.0**attempt, 10.0))
    return await act()
