"""Long calls of a run, made beside its passes.

A pass never waits: it asks for an errand and is woken when that has ended. What an errand found
is kept in memory alone, so every errand must be safe to repeat after a crash. A stop drops the
errand that is under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from issuesandbox.ports.errors import CallError, Unavailable
from issuesandbox.ports.resources import ResourceKey

T = TypeVar("T")
logger = logging.getLogger(__name__)

UNEXPECTED = "Unexpected"
"""The code of a failure that is an error of our own."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What an errand brought back: a value, or the failure that ended it."""

    value: T | None = None
    failure: CallError | None = None


@dataclass(slots=True)
class _Errand:
    tag: str
    task: asyncio.Task[Any]


class Errands:
    """At most one errand per resource, each known by its tag."""

    def __init__(self, wake: Callable[[ResourceKey], None]) -> None:
        self._wake = wake
        self._errands: dict[ResourceKey, _Errand] = {}

    def __len__(self) -> int:
        return len(self._errands)

    def ask(
        self, key: ResourceKey, tag: str, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> Found[T] | None:
        """Return what the errand with this tag found, or None while it is under way.

        The first call begins it; another tag drops what was under way before.
        """
        errand = self._errands.get(key)
        if errand is None or errand.tag != tag:
            self.drop(key)
            task = asyncio.create_task(self._bring(key, work), name=f"{tag} of {key}")
            self._errands[key] = _Errand(tag, task)
            return None
        if not errand.task.done():
            return None
        found: Found[T] = errand.task.result()
        return found

    def known(self, key: ResourceKey, tag: str) -> Found[Any] | None:
        """Return what the errand with this tag found, if it has ended; begins nothing."""
        errand = self._errands.get(key)
        if errand is None or errand.tag != tag or not errand.task.done():
            return None
        found: Found[Any] = errand.task.result()
        return found

    def has(self, key: ResourceKey, tag: str) -> bool:
        """Tell whether the errand with this tag is under way, or has ended and is not dropped."""
        errand = self._errands.get(key)
        return errand is not None and errand.tag == tag

    def drop(self, key: ResourceKey) -> None:
        """End whatever is under way, and forget what was found."""
        errand = self._errands.pop(key, None)
        if errand is not None:
            errand.task.cancel()

    async def close(self) -> None:
        """End all errands."""
        tasks = [each.task for each in self._errands.values()]
        self._errands.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _bring(
        self, key: ResourceKey, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> Found[T]:
        try:
            return Found(value=await work())
        except CallError as error:
            return Found(failure=error)
        except Exception:
            logger.exception("errand failed", extra={"resource": str(key)})
            text = "an unexpected error; see the operator's log"
            return Found(failure=Unavailable(text, code=UNEXPECTED))
        finally:
            # The task is done only after this frame: wake a moment later.
            asyncio.get_running_loop().call_soon(self._wake, key)
