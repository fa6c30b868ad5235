"""The adapter's own watches: what they tell, and how seldom they ask while nothing comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.fakes.api_server import Handler, api_server

from issuesandbox.adapters.kube.watching import watch_record, watch_resources
from issuesandbox.engine.inbox.policies import PolicyKeeper
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.inbox import Record
from issuesandbox.ports.resources import EventNote


class Nobody:
    """Hears of resources and does nothing."""

    def replace(self, scope: str, bodies: list[Mapping[str, Any]]) -> None: ...
    def put(self, body: Mapping[str, Any]) -> None: ...
    def drop(self, body: Mapping[str, Any]) -> None: ...


async def _absent(_: web.BaseRequest) -> web.StreamResponse:
    return web.json_response({"message": "there is no such resource"}, status=404)


async def _nonsense(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="[]\n")


async def _ends_at_once(request: web.BaseRequest) -> web.StreamResponse:
    if "watch" in request.query:
        return web.Response(text="")
    return web.json_response({"metadata": {"resourceVersion": "5"}, "items": []})


async def _too_old(request: web.BaseRequest) -> web.StreamResponse:
    if "watch" in request.query:
        return web.json_response({"type": "ERROR", "object": {"code": 410}})
    return await _ends_at_once(request)


@pytest.mark.parametrize("answer", [_absent, _nonsense, _ends_at_once, _too_old])
async def test_a_watch_that_comes_to_nothing_asks_seldom(answer: Handler) -> None:
    asked = 0

    async def counted(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return await answer(request)

    async with api_server(counted) as requests:
        watches = (
            watch_resources(requests, (), Nobody(), 0.1),
            watch_record(requests, "home", "policy", lambda _: None, 0.1),
        )
        tasks = [asyncio.create_task(each) for each in watches]
        ended, _ = await asyncio.wait(tasks, timeout=2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert not ended, "a watch is taken up again for ever"
    assert 4 <= asked <= 30


class Maps:
    """ConfigMaps that are away for the first read."""

    def __init__(self) -> None:
        self.reads = 0
        self.read_again = asyncio.Event()

    async def read(self, name: str) -> Record:
        self.reads += 1
        if self.reads == 1:
            raise Unavailable("away")
        self.read_again.set()
        return Record({"policy.yaml": f"defaults: {{label: at-{self.reads}}}"}, str(self.reads))

    async def write(self, name: str, record: Record) -> None: ...
    async def note(self, name: str, event: EventNote) -> None: ...


async def test_the_policy_is_read_as_soon_as_the_watch_tells_of_a_change() -> None:
    going, told, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def watched(request: web.BaseRequest) -> web.StreamResponse:
        assert request.path == "/api/v1/namespaces/home/configmaps"
        assert request.query["fieldSelector"] == "metadata.name=policy"
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "5"}, "items": None})
        answer = web.StreamResponse()
        await answer.prepare(request)
        going.set()
        await told.wait()
        changed = {"type": "MODIFIED", "object": {"metadata": {"name": "policy"}}}
        await answer.write(msgspec.json.encode(changed) + b"\n")
        await over.wait()
        return answer

    maps = Maps()
    keeper = PolicyKeeper(maps, "policy", tick=3600)
    async with api_server(watched) as requests, asyncio.timeout(20):
        watch = watch_record(requests, "home", "policy", lambda _: keeper.changed(), 0.1)
        tasks = [asyncio.create_task(each) for each in (keeper.run(), watch)]
        await going.wait()
        await maps.read_again.wait()  # soon after a read that failed, without anybody's word
        maps.read_again.clear()
        told.set()
        await maps.read_again.wait()
        over.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    rules = keeper.policy and keeper.policy.rules_for("acme/app")
    assert rules
    assert rules.label == f"at-{maps.reads}"
