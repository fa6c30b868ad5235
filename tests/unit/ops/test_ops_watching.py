"""The watched ConfigMaps: every change is told, whatever the API server and the network do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes import client
from tests.fakes.api_server import api_server
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.adapters.kube import configuration
from issuesandbox.adapters.kube.configuration import KubeConfiguration
from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.watching import watch_record

GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}


class Maps:
    """ConfigMaps of one namespace, served as the API server does: lists, and watches from there."""

    def __init__(self) -> None:
        self.version = 10
        self.held: dict[str, Mapping[str, str]] = {}
        self.past: list[tuple[int, str, bytes]] = []
        self.changed = asyncio.Condition()
        self.lists = self.watches = 0
        self.broken: set[str] = set()
        self.over = False

    async def put(self, name: str, **data: str) -> None:
        kind = "MODIFIED" if name in self.held else "ADDED"
        self.held[name] = data
        await self._tell(name, kind, data)

    async def drop(self, name: str) -> None:
        await self._tell(name, "DELETED", self.held.pop(name))

    async def say(self, name: str, line: bytes) -> None:
        """Send one line to who watches, whatever it means."""
        async with self.changed:
            self.version += 1
            self.past.append((self.version, name, line))
            self.changed.notify_all()

    async def _tell(self, name: str, kind: str, data: Mapping[str, str]) -> None:
        body = self._body(name, data, self.version + 1)
        await self.say(name, msgspec.json.encode({"type": kind, "object": body}))

    def _body(self, name: str, data: Mapping[str, str], version: int) -> dict[str, object]:
        return {"metadata": {"name": name, "resourceVersion": str(version)}, "data": data}

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        if name in self.broken:
            return web.json_response({"message": "etcd is away"}, status=500)
        if "watch" in request.query:
            return await self._stream(request, name)
        self.lists += 1
        items = [self._body(name, self.held[name], self.version)] if name in self.held else None
        return web.json_response(
            {"metadata": {"resourceVersion": str(self.version)}, "items": items}
        )

    async def _stream(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        self.watches += 1
        answer, seen = web.StreamResponse(), int(request.query["resourceVersion"])
        await answer.prepare(request)
        while not self.over:
            async with self.changed:
                news = [each for each in self.past if each[0] > seen and each[1] == name]
                if not news:
                    await self.changed.wait()
                    continue
            for version, _, line in news:
                seen = version
                with suppress(ConnectionError):
                    await answer.write(line + b"\n")
        return answer

    async def end(self) -> None:
        async with self.changed:
            self.over = True
            self.changed.notify_all()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def watched(maps: Maps, silence: float = 5) -> AsyncIterator[list[Mapping[str, str] | None]]:
    told: list[Mapping[str, str] | None] = []
    async with api_server(maps.answer) as requests:
        watch = watch_record(requests, "home", "some", told.append, 0.02, silence)
        task = asyncio.create_task(watch)
        await until(lambda: maps.watches > 0)
        yield told
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await maps.end()


async def test_every_change_is_told_by_one_list_and_one_watch() -> None:
    maps = Maps()
    async with watched(maps) as told:
        await maps.put("some", number="1")
        await maps.put("other", number="9")
        await maps.put("some", number="2")
        await maps.drop("some")
        await maps.put("some", number="3")
        await until(lambda: len(told) == 5)
    assert told == [None, {"number": "1"}, {"number": "2"}, None, {"number": "3"}]
    assert (maps.lists, maps.watches) == (1, 1)


async def test_what_the_watch_cannot_say_is_read_from_a_new_list() -> None:
    maps = Maps()
    await maps.put("some", number="1")
    async with watched(maps) as told:
        for line in (msgspec.json.encode(GONE), b"no json", b'{"type": "MODIFIED", "object": {}}'):
            before = maps.watches
            maps.held["some"] = {"number": str(before + 1)}
            await maps.say("some", line)
            await until(lambda before=before: maps.watches > before)  # type: ignore[misc]
    assert told == [{"number": str(each)} for each in (1, 2, 3, 4)]


async def test_a_watch_that_says_nothing_for_too_long_is_taken_up_anew() -> None:
    maps = Maps()
    await maps.put("some", number="1")
    async with watched(maps, silence=0.2) as told:
        del maps.held["some"]  # the connection died without a sign: this is never told
        await until(lambda: told == [{"number": "1"}, None])
    assert maps.lists >= 2


async def test_a_freeze_is_told_while_the_settings_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configuration, "_RETRY", 0.02)
    maps, settings, freezes = Maps(), list[Mapping[str, str]](), list[str | None]()
    maps.broken.add("issuesandbox")
    async with api_server(maps.answer) as requests:
        stored = KubeConfiguration(requests, "home", FakeClock(FakeTime()), "test")
        task = asyncio.create_task(stored.follow(settings.append, freezes.append))
        await until(lambda: freezes == [None])
        await maps.put("issuesandbox-freeze", reason="quota incident")
        await until(lambda: freezes == [None, "quota incident"])
        assert settings == []
        await maps.put("issuesandbox", ENABLE_HEALTH_PROBE="false")
        maps.broken.clear()
        await until(lambda: settings == [{"ENABLE_HEALTH_PROBE": "false"}])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await maps.end()


async def test_a_connection_asks_for_a_sign_of_life_by_itself() -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=bytes(1_000_000))  # not read whole at once: it stays open

    app = web.Application()
    app.router.add_get("/", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        connection = Connection(url, "home", client.Configuration(host=url))
        async with connection.session(limit=1) as session:
            response = await session.get(url)
            assert response.connection is not None
            assert response.connection.transport is not None
            used = response.connection.transport.get_extra_info("socket")
            assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            if hasattr(socket, "TCP_KEEPIDLE"):
                assert used.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 5
            response.release()
