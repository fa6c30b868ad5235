"""What goes over the wire: the answer is written by hand, and must be what HTTP says."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from aiohttp import web
from webhook_door import SECRETS, Door, Notes, opened

from issuesandbox.clock import SystemClock
from issuesandbox.domain.webhook.signature import sign
from issuesandbox.entry.webhook.lines import Lines

GOOD = json.dumps(opened()).encode()


@asynccontextmanager
async def _line(door: Door) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(door.host, door.port)
    try:
        async with asyncio.timeout(5):
            yield reader, writer
    finally:
        writer.close()


def _head(body: bytes, *lines: str, version: str = "1.1") -> bytes:
    fields = (
        f"POST /webhook HTTP/{version}",
        "Host: x",
        "Content-Type: application/json",
        "X-GitHub-Delivery: guid",
        f"X-Hub-Signature-256: {sign(SECRETS[0], body)}",
        *lines,
    )
    return "\r\n".join((*fields, "", "")).encode()


async def test_who_asks_before_sending_a_large_body_is_told_to_go_on_or_not_to(door: Door) -> None:
    # As curl does, which else waits for a second before it sends.
    asking = ("X-GitHub-Event: issues", "Connection: close", "Expect: 100-continue")
    async with _line(door) as (reader, writer):
        writer.write(_head(GOOD, *asking, f"Content-Length: {len(GOOD)}"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(GOOD)
        assert (await reader.read()).startswith(b"HTTP/1.1 202 Accepted\r\n")
    async with _line(door) as (reader, writer):
        writer.write(_head(GOOD, *asking, f"Content-Length: {30 * 2**20}"))
        assert (await reader.read()).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("asked", ["keep-alive", "close"])
async def test_an_answer_is_whole_and_the_connection_stays_as_was_asked(
    door: Door, version: str, asked: str
) -> None:
    lines = ("X-GitHub-Event: check_run", f"Connection: {asked}", "Content-Length: 2")
    async with _line(door) as (reader, writer):
        for _ in range(2 if asked == "keep-alive" else 1):
            writer.write(_head(b"{}", *lines, version=version) + b"{}")
            first, *rest = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
            fields = dict(each.split(b": ", 1) for each in rest)
            assert first == b"HTTP/1.1 200 OK"
            assert fields[b"Connection"] == asked.encode()
            assert fields[b"Content-Type"] == b"application/json"
            sent = parsedate_to_datetime(fields[b"Date"].decode())
            assert abs(SystemClock().now() - sent) < timedelta(seconds=30)
            body = await reader.readexactly(int(fields[b"Content-Length"]))
            assert json.loads(body) == {"ignored": "check_run events need nothing"}
        if asked == "close":
            assert await reader.read() == b""


async def test_who_shall_come_again_is_told_when_and_who_sends_too_much_is_cut_off(
    door: Door, notes: Notes
) -> None:
    notes.ready = False
    lines = ("X-GitHub-Event: issues", f"Content-Length: {len(GOOD)}")
    async with _line(door) as (reader, writer):
        writer.write(_head(GOOD, *lines) + GOOD)
        said = await reader.readuntil(b"\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nRetry-After: 10\r\n" in said
        assert b"\r\nConnection: keep-alive\r\n" in said
    async with _line(door) as (reader, writer):
        writer.write(_head(b"", "X-GitHub-Event: issues", f"Content-Length: {30 * 2**20}"))
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in said
        assert b"Retry-After" not in said


async def test_a_line_that_was_paused_goes_on() -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(text=str(len(await request.read())))

    # With so little room it is paused for every part that comes.
    runner = web.ServerRunner(Lines(answer, read_bufsize=1024))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with asyncio.timeout(5), aiohttp.ClientSession() as session:
            for size in (900_000, 10, 900_000):
                async with session.post(url, data=io.BytesIO(b"x" * size)) as said:
                    assert await said.text() == str(size)
    finally:
        await runner.cleanup()
