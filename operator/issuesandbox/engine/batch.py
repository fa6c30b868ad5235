"""The same work on many items, ten at a time, where one failure does not stop the others.

`Cleanup` is such work: it ends the sandboxes, or the resources, that an administrator selected.
Each item gets its own result. Knows nothing of how items are selected or shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_KEEP, LABEL_UID
from issuesandbox.api.status_run import RunPhase
from issuesandbox.engine.cache import key_of
from issuesandbox.ports.errors import CallError, NotFound
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes

BATCH = 10
Item = TypeVar("Item")
Made = TypeVar("Made")


async def in_batches(
    items: Sequence[Item], work: Callable[[Item], Coroutine[Any, Any, Made]]
) -> list[Made]:
    """Do the work on all items, ten side by side, and return the results in order.

    The work itself turns the failures it expects into results.
    """
    made: list[Made] = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work(item)) for item in batch]
        made += [task.result() for task in tasks]
    return made


class Result(StrEnum):
    """What became of one item."""

    DELETED = "deleted"
    GONE = "already gone"
    WOULD = "would be deleted"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What became of one selected resource, and why."""

    key: ResourceKey
    sandbox_id: str
    result: Result
    why: str = ""


class Deletable(Protocol):
    """Resources that can be asked to go."""

    async def get(self, key: ResourceKey) -> Mapping[str, Any]:
        """Return exactly this resource as it is now, not a namesake."""
        ...

    async def delete(self, key: ResourceKey) -> None:
        """Ask for the deletion of exactly this resource, not of a namesake."""
        ...


class Cleanup:
    """Ends what was selected; the operator itself is not asked."""

    def __init__(
        self, sandboxes: Sandboxes, resources: Deletable, installation: str, *, dry_run: bool
    ) -> None:
        self._sandboxes = sandboxes
        self._resources = resources
        self._installation = installation
        self._dry_run = dry_run

    async def delete_sandboxes(self, bodies: Sequence[Mapping[str, Any]]) -> list[ItemResult]:
        """Delete the sandboxes of resources that are done with them; the resources stay."""
        return await in_batches(bodies, lambda body: self._end(body, self._delete_sandbox))

    async def delete_resources(self, bodies: Sequence[Mapping[str, Any]]) -> list[ItemResult]:
        """Delete the resources; the operator then ends their runs and sandboxes in good order."""
        return await in_batches(bodies, lambda body: self._end(body, self._delete_resource))

    async def _end(
        self,
        listed: Mapping[str, Any],
        end: Callable[[Mapping[str, Any]], Coroutine[Any, Any, ItemResult]],
    ) -> ItemResult:
        """End one item as it is now: since it was listed, somebody may have been asked."""
        try:
            return await end(await self._resources.get(key_of(listed)))
        except CallError as error:
            return _failure(key_of(listed), _sandbox_id(listed), error)

    async def _delete_sandbox(self, body: Mapping[str, Any]) -> ItemResult:
        key, sandbox_id = key_of(body), _sandbox_id(body)
        obstacle = _in_use(body) if sandbox_id else "No sandbox ID provided"
        if obstacle is not None:
            return ItemResult(key, sandbox_id, Result.SKIPPED, obstacle)
        labels = (await self._sandboxes.get(sandbox_id)).labels
        if labels.get(LABEL_INSTALLATION) != self._installation or (
            labels.get(LABEL_UID) != key.uid
        ):
            text = "the sandbox belongs to somebody else"
            return ItemResult(key, sandbox_id, Result.SKIPPED, text)
        if self._dry_run:
            return ItemResult(key, sandbox_id, Result.WOULD)
        await self._sandboxes.delete(sandbox_id)
        return ItemResult(key, sandbox_id, Result.DELETED)

    async def _delete_resource(self, body: Mapping[str, Any]) -> ItemResult:
        key, sandbox_id = key_of(body), _sandbox_id(body)
        if (body["metadata"].get("labels") or {}).get(LABEL_KEEP) == "true":
            return ItemResult(key, sandbox_id, Result.SKIPPED, f"labelled {LABEL_KEEP}=true")
        if self._dry_run:
            return ItemResult(key, sandbox_id, Result.WOULD)
        await self._resources.delete(key)
        return ItemResult(key, sandbox_id, Result.DELETED)


def _failure(key: ResourceKey, sandbox_id: str, error: CallError) -> ItemResult:
    if isinstance(error, NotFound):
        return ItemResult(key, sandbox_id, Result.GONE)
    return ItemResult(key, sandbox_id, Result.FAILED, str(error))


def _sandbox_id(body: Mapping[str, Any]) -> str:
    sandbox = (body.get("status") or {}).get("sandbox") or {}
    return (sandbox.get("id") or "").strip()


def _in_use(body: Mapping[str, Any]) -> str | None:
    """Return why the operator would want the sandbox back, or None."""
    spec, run = body["spec"], (body.get("status") or {}).get("run")
    if run is not None and run.get("phase") != RunPhase.FINISHED:
        return "its run goes on; stop it first, or delete the resource"
    if spec.get("desiredState") == "Stopped":
        return None
    if run is not None and (spec.get("run") or run).get("trigger") != run.get("trigger"):
        return "another run is asked for; stop it first, or delete the resource"
    if run is None or (spec.get("run") or {}).get("keepAlive"):
        return "it is wanted running; set desiredState to Stopped, or delete the resource"
    return None
