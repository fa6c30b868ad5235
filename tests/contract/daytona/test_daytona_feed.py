"""The operator's own ear at the push feed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from daytona_admin import KEY, Admin, eventually

from issuesandbox.adapters.daytona.events import DaytonaEvents
from issuesandbox.domain.timings import Timings
from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.ports.state_events import StateEvent

SOON = Timings(event_retry=timedelta(milliseconds=200), read_timeout=timedelta(seconds=1))


@asynccontextmanager
async def listening(
    url: str, key: str = KEY
) -> AsyncIterator[tuple[DaytonaEvents, list[StateEvent]]]:
    heard: list[StateEvent] = []
    events = DaytonaEvents(url, key, SOON)
    task = asyncio.create_task(events.run(heard.append))
    try:
        yield events, heard
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def connected(events: DaytonaEvents, times: int = 1) -> None:
    async def is_so() -> bool:
        return events.connections >= times

    await eventually(is_so)


async def test_a_change_is_heard_with_state_and_labels(simulator: Simulator, admin: Admin) -> None:
    (planted,) = await admin.plant(name="a", labels={"team": "x"})
    async with listening(simulator.url) as (events, heard):
        await connected(events)
        await admin.call("POST", f"/sandboxes/{planted['id']}/stop", {})

        async def told() -> bool:
            return bool(heard)

        await eventually(told)
    assert heard[-1] == StateEvent(planted["id"], "stopped", heard[-1].labels)
    assert heard[-1].labels["team"] == "x"


async def test_a_feed_that_ends_is_heard_again_when_it_is_back(
    config: SimulatorConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "issuesandbox.adapters.daytona.events")
    stable = replace(config, state_dir=tmp_path / "state")
    async with Simulator(stable) as first:
        url = first.url
        port = int(first.base_url.rsplit(":", 1)[1])
        feed = listening(url)
        events, _ = await feed.__aenter__()
        await connected(events)
    async with Simulator(replace(stable, port=port)):
        try:
            await connected(events, 2)
        finally:
            await feed.__aexit__(None, None, None)
    said = [each.message for each in caplog.records]
    assert said[:2] == ["state events are off, ticks go on", "state events are back"]


@pytest.mark.parametrize("key", ["wrong-key", ""])
async def test_a_feed_that_refuses_is_a_log_line_and_nothing_more(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    async with listening(simulator.url, key) as (events, heard):

        async def tried() -> bool:
            return events.tries >= 4

        await eventually(tried)
        assert (events.connections, heard) == (0, [])
    warnings = [each for each in caplog.records if "state events are off" in each.message]
    assert len(warnings) == 1, "the same news is told once"
    assert "wrong-key" not in caplog.text


async def test_events_that_cannot_be_read_are_passed_over() -> None:
    """A server that greets well, tells nonsense in every shape, and then something true."""
    frames = (
        *("42[]", "42{}", "42", "421[]", "4", "7", '42["sandbox.state.updated"]'),
        '42["sandbox.state.updated",{"sandbox":1}]',
        '42["sandbox.created",{"id":"sb-0"}]',
        '42["sandbox.state.updated",{"sandbox":{"id":"sb-1","state":"stopped","new":{}}}]',
    )

    async def serve(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str('0{"sid":"x","pingInterval":25000,"pingTimeout":20000}')
        assert KEY in await socket.receive_str()
        for frame in ('40{"sid":"y"}', *frames):
            await socket.send_str(frame)
        await socket.receive()
        return socket

    async with serving(serve) as url, listening(url) as (_, heard):

        async def told() -> bool:
            return bool(heard)

        await eventually(told)
        assert heard == [StateEvent("sb-1", "stopped", {})]


@asynccontextmanager
async def serving(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """Answer every request in Daytona's place."""
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/api"
    await runner.cleanup()


@pytest.mark.parametrize("answer", ["garbage", "silence", "page"])
async def test_whatever_answers_in_its_place_does_no_harm(
    answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        if answer == "page":
            return web.Response(text="<html>hello</html>")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        if answer == "garbage":
            await socket.send_str("<html>")
        await socket.receive()
        return socket

    def is_told() -> bool:
        return any("state events are off" in each.message for each in caplog.records)

    async with serving(serve) as url, listening(url) as (events, heard), asyncio.timeout(5):
        while not is_told():
            await asyncio.sleep(0.02)
        assert (events.connections, heard) == (0, [])


async def test_it_ends_when_told_at_any_moment_of_its_connecting(simulator: Simulator) -> None:
    for milliseconds in range(40):
        task = asyncio.create_task(DaytonaEvents(simulator.url, KEY, SOON).run(lambda _: None))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        _, pending = await asyncio.wait([task], timeout=5)
        for each in pending:
            each.cancel()
        assert not pending, f"went on after it was cancelled {milliseconds} ms after its start"
