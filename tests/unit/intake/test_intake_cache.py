"""What the watch shows goes into the cache once, and only news asks for a pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.cache import ResourceCache, is_settled
from issuesandbox.engine.intake import Intake
from issuesandbox.engine.workqueue import WorkQueue
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.resources import ResourceKey

TIMINGS = Timings(settle_check=timedelta(seconds=0.1))
READY = {"type": "Ready", "status": "True", "reason": "Running"}
AT_REST = {"type": "Ready", "status": "False", "reason": "AtRest"}
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def body_of(version: int, name: str = "one", **status: Any) -> dict[str, Any]:
    metadata = {
        "namespace": "team",
        "name": name,
        "uid": f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 1,
    }
    return {"metadata": metadata, "spec": {"issue": {"body": "text " * 200}}, "status": status}


def key_of(name: str = "one") -> ResourceKey:
    return ResourceKey("team", name, f"uid-{name}")


SETTLED: dict[str, Any] = {"observedGeneration": 1, "conditions": [READY]}


SANDBOX = {"sandbox": {"id": "sb-1", "state": "started"}}


@pytest.mark.parametrize(
    ("status", "shown", "news"),
    [
        (SETTLED | SANDBOX, [("sb-1", "started")], False),
        (SETTLED | SANDBOX, [("sb-1", "stopped")], True),
        (SETTLED | SANDBOX, [("sb-2", "started")], True),
        (SETTLED | SANDBOX, [("sb-1", "started"), ("sb-2", "started")], True),
        (SETTLED | SANDBOX, [], True),
        (SETTLED, [("sb-1", "started")], True),
        (SANDBOX, [("sb-1", "started")], True),
    ],
)
async def test_a_list_is_news_where_it_shows_what_the_status_does_not_say(
    status: dict[str, Any], shown: list[tuple[str, str]], news: bool
) -> None:
    intake, _, queue = intake_of(Listed())
    intake.receive("ADDED", body_of(1, **status))
    queue.forget(key_of())
    views = tuple(SandboxView(id=SandboxId(name), name="", state=state) for name, state in shown)
    intake.compare("uid-of-nobody", views)
    intake.compare("uid-one", views)
    assert queue.depth == news


async def test_what_a_pass_under_way_writes_down_asks_for_no_other() -> None:
    intake, cache, queue = intake_of(Listed())
    intake.receive("ADDED", body_of(1))
    view = SandboxView(id=SandboxId("sb-1"), name="", state="started")
    passes: list[str] = []

    async def work(_: ResourceKey) -> None:
        passes.append("made")
        intake.compare("uid-one", (view,))
        if len(passes) == 1:
            intake.compare("uid-one", ())
        else:
            cache.put(body_of(2, **SETTLED, **SANDBOX), own=True)

    running = asyncio.create_task(queue.run(work))
    while queue.depth or queue.in_flight:
        await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert len(passes) == 2, "the first wrote nothing down, the second did"


RUNNING = {"id": "r1", "phase": "Executing", "trigger": "1"}
ENDED = {"id": "r1", "phase": "Finished", "outcome": "Failed", "trigger": "1"}


@pytest.mark.parametrize(
    ("metadata", "spec", "status", "urgent"),
    [
        ({}, {}, {}, False),
        ({"deletionTimestamp": "2030-01-01T00:00:00Z"}, {}, SETTLED, True),
        ({}, {"desiredState": "Stopped"}, {}, True),
        ({}, {"desiredState": "Stopped"}, SETTLED, False),
        ({}, {"run": {"trigger": "1"}}, {"run": RUNNING}, False),
        ({}, {"run": {"trigger": "2"}}, {"run": RUNNING}, True),
        ({}, {"run": {"trigger": "2"}}, {"run": ENDED}, False),
        ({}, {}, {"run": RUNNING, "stopRequestedAt": "2030-01-01T00:00:00Z"}, True),
    ],
)
def test_who_is_to_end_is_urgent(
    metadata: dict[str, Any], spec: dict[str, Any], status: dict[str, Any], urgent: bool
) -> None:
    body, cache = body_of(1, **status), ResourceCache()
    body["metadata"] |= metadata
    body["spec"] |= spec
    cache.put(body)
    assert cache.urgent(key_of()) is urgent


class Listed:
    """A census of names; the first of its lists has one more, which is deleted meanwhile."""

    def __init__(self, *names: str, gone: tuple[str, ...] = ()) -> None:
        self.lists = 0
        self._names = names
        self._gone = gone

    async def uids(self, namespaces: tuple[str, ...]) -> AsyncIterator[frozenset[ResourceKey]]:
        self.lists += 1
        names = self._names + (self._gone if self.lists == 1 else ())
        yield frozenset(key_of(name) for name in names)

    async def get(self, key: ResourceKey) -> dict[str, Any]:
        if key.name in self._gone:
            raise NotFound(key.name)
        return body_of(9, key.name)


def intake_of(census: Listed) -> tuple[Intake, ResourceCache, WorkQueue[ResourceKey]]:
    cache, queue = ResourceCache(), WorkQueue[ResourceKey]()
    return Intake(cache, queue, census, TIMINGS, ()), cache, queue


FINISHED = {"phase": "Finished", "outcome": "Succeeded", "trigger": "first"}


def test_a_body_comes_back_as_it_was() -> None:
    cache = ResourceCache()
    assert cache.put(body_of(5))
    assert cache.get(key_of()) == body_of(5)


@pytest.mark.parametrize("summary", ["short", "long " * 1000])
def test_who_is_settled_comes_back_without_the_text(summary: str) -> None:
    cache, body = ResourceCache(), body_of(5, **SETTLED, summary=summary)
    cache.put(body)
    del body["spec"]["issue"]["body"]
    assert cache.get(key_of()) == body


@pytest.mark.parametrize(
    ("run", "trigger", "kept"),
    [(None, "first", True), (FINISHED, "second", True), (FINISHED, "first", False)],
    ids=["the first run is ahead", "another run is ahead", "no run is ahead"],
)
def test_the_text_stays_where_a_run_may_begin(
    run: dict[str, Any] | None, trigger: str, kept: bool
) -> None:
    cache, body = ResourceCache(), body_of(5, **SETTLED, **({"run": run} if run else {}))
    body["spec"]["run"] = {"trigger": trigger}
    cache.put(body)
    found = cache.get(key_of())
    assert found is not None
    assert ("body" in found["spec"]["issue"]) is kept


def test_only_a_newer_body_is_news() -> None:
    cache = ResourceCache()
    assert cache.put(body_of(5))
    assert not cache.put(body_of(5))
    assert not cache.put(body_of(4))
    assert cache.put(body_of(6))


def test_a_copy_of_the_body_in_an_annotation_is_not_kept() -> None:
    cache, body = ResourceCache(), body_of(5)
    body["metadata"]["annotations"] = {APPLIED: "{}", "mine": "kept"}
    cache.put(body)
    kept = cache.get(key_of())
    assert kept is not None
    assert kept["metadata"]["annotations"] == {"mine": "kept"}


def test_what_we_wrote_is_known_as_ours_whoever_tells_it_first() -> None:
    cache = ResourceCache()
    cache.put(body_of(5), own=True)
    assert cache.is_own(key_of())
    cache.put(body_of(6))
    assert not cache.is_own(key_of())
    cache.put(body_of(6), own=True)
    assert cache.is_own(key_of())
    cache.put(body_of(7))
    cache.put(body_of(6), own=True)
    assert not cache.is_own(key_of())


@pytest.mark.parametrize(
    "status",
    [
        {},
        {**SETTLED, "observedGeneration": 0},
        {**SETTLED, "intent": {"kind": "Create"}},
        {**SETTLED, "run": {"phase": "Finalizing", "outcome": "Succeeded"}},
        {**SETTLED, "conditions": [{**READY, "status": "False", "reason": "Creating"}]},
    ],
    ids=["new", "edited", "a step is announced", "a run ends", "not ready"],
)
def test_who_has_something_under_way_is_not_settled(status: dict[str, Any]) -> None:
    assert not is_settled(body_of(5, **status))
    assert is_settled(body_of(5, **SETTLED))
    assert is_settled(body_of(5, **{**SETTLED, "conditions": [AT_REST]}))
    awaited = body_of(5, **SETTLED)
    awaited["spec"]["run"] = {"trigger": "1"}
    assert not is_settled(awaited), "its run has not begun"
    deleting = body_of(5, **SETTLED)
    deleting["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert not is_settled(deleting)


async def test_an_event_asks_for_a_pass_and_its_repetition_does_not() -> None:
    intake, _, queue = intake_of(Listed())
    intake.receive("ADDED", body_of(5))
    assert queue.depth == 1
    queue.forget(key_of())
    intake.receive("MODIFIED", body_of(5))
    assert queue.depth == 0


async def test_once_all_are_listed_the_settled_let_the_others_go_first() -> None:
    intake, _, queue = intake_of(Listed("one", "two", gone=("three",)))
    made: list[ResourceKey] = []

    async def work(key: ResourceKey) -> None:
        made.append(key)

    intake.receive(None, body_of(5, "one", **SETTLED))
    intake.receive(None, body_of(6, "two"))
    assert queue.depth == 0
    tasks = [asyncio.create_task(each) for each in (intake.run_resync(), queue.run(work))]
    try:
        async with asyncio.timeout(10):
            await intake.complete()
            while not made:
                await asyncio.sleep(0.01)
        assert made == [key_of("two")]
        assert queue.depth == 1
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_a_resource_that_the_cache_lost_is_read_again_by_the_next_list() -> None:
    census = Listed("one", "two")
    timings = replace(TIMINGS, resync=timedelta(seconds=0.05))
    cache, queue = ResourceCache(), WorkQueue[ResourceKey]()
    intake = Intake(cache, queue, census, timings, ())
    for name in ("one", "two"):
        intake.receive(None, body_of(5, name))
    resync = asyncio.create_task(intake.run_resync())
    try:
        async with asyncio.timeout(10):
            await intake.complete()
            cache.drop(key_of("two"))
            while cache.get(key_of("two")) is None:
                await asyncio.sleep(0.01)
        assert cache.get(key_of("two")) == body_of(9, "two")
        assert cache.get(key_of("one")) == body_of(5, "one"), "who is known is not asked about"
    finally:
        resync.cancel()
        with suppress(asyncio.CancelledError):
            await resync


async def test_a_delete_that_the_watch_missed_is_found_by_the_next_list() -> None:
    intake, cache, queue = intake_of(Listed("one"))
    for name in ("one", "ghost"):
        intake.receive(None, body_of(5, name))
    resync = asyncio.create_task(intake.run_resync())
    try:
        async with asyncio.timeout(10):
            await intake.complete()
        assert cache.get(key_of("ghost")) is None
        assert cache.get(key_of("one")) is not None
        assert queue.depth == 2, "what was kept for it is dropped by a last pass"
    finally:
        resync.cancel()
        with suppress(asyncio.CancelledError):
            await resync
