"""Work on many items: ten at a time, results in order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_UID
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.engine.batch import Cleanup, Result, in_batches
from issuesandbox.ports.resources import ResourceKey


async def test_never_more_than_ten_at_once_and_every_result_in_its_place() -> None:
    # R84
    at_once, most = 0, 0

    async def double(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.001 * (number % 3))
        at_once -= 1
        return number * 2

    assert await in_batches(range(25), double) == [number * 2 for number in range(25)]
    assert most == 10


async def test_nothing_to_do_is_done_at_once() -> None:
    async def never(item: object) -> None:
        raise AssertionError

    assert await in_batches([], never) == []


def a_resource(ended: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "team", "name": "one", "uid": "u-1"}
    status = {"sandbox": {"id": "sb-1"}, "run": ended}
    return {"metadata": metadata, "spec": {"run": {"trigger": "1"}, **spec}, "status": status}


FINISHED = {"phase": "Finished", "outcome": "Failed", "trigger": "1"}
ENDING = {"phase": "Collecting", "outcome": "Failed", "trigger": "1"}


class Somewhere:
    """Both ports of a cleanup: one resource as it is now, and its sandbox."""

    def __init__(self, now: Mapping[str, Any]) -> None:
        self._now = now
        self.deleted: list[str] = []

    async def get(self, key: ResourceKey | str) -> Any:
        if isinstance(key, ResourceKey):
            return self._now
        labels = {LABEL_INSTALLATION: "ours", LABEL_UID: "u-1"}
        return SandboxView(id=SandboxId(key), name="claude-issue-1", state="stopped", labels=labels)

    async def delete(self, what: ResourceKey | str) -> None:
        self.deleted.append(str(what))


@pytest.mark.parametrize(
    ("now", "result"),
    [
        (a_resource(FINISHED), Result.DELETED),
        (a_resource(ENDING), Result.SKIPPED),
        (a_resource(FINISHED, run={"trigger": "2"}), Result.SKIPPED),
        (a_resource(FINISHED, run={"trigger": "2"}, desiredState="Stopped"), Result.DELETED),
    ],
    ids=["finished", "its work is being saved", "another run waits", "nothing is wanted"],
)
async def test_a_sandbox_is_deleted_only_if_nobody_needs_it_by_now(
    now: dict[str, Any], result: Result
) -> None:
    world = Somewhere(now)
    cleanup = Cleanup(cast(Any, world), cast(Any, world), "ours", dry_run=False)
    (found,) = await cleanup.delete_sandboxes([a_resource(FINISHED)])
    assert found.result is result, found.why
    assert world.deleted == (["sb-1"] if result is Result.DELETED else [])
