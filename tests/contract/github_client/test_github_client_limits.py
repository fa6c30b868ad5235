"""Rate limits, outages and repeats."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web
from tests.fakes.github_stage import REPOSITORY, TOKEN, Stage

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.ports.errors import Throttled, Unavailable


async def test_reads_are_repeated_and_writes_are_not(
    github: GitHubConnection, stage: Stage
) -> None:
    number = await stage.issue()
    await stage.fault("status", "issues/get", status=502, count=2)
    assert (await github.client.issue(REPOSITORY, number)).number == number
    await stage.fault("reset", "issues/create-comment", after_effect=True)
    with pytest.raises(Unavailable):
        await github.client.create_comment(REPOSITORY, number, "once")
    assert len(await stage.requests("issues/create-comment")) == 1


async def test_an_edit_whose_answer_was_lost_is_repeated(
    github: GitHubConnection, stage: Stage
) -> None:
    number = await stage.issue()
    made = await github.client.create_comment(REPOSITORY, number, "one")
    await stage.fault("reset", "issues/update-comment", after_effect=True)
    assert (await github.client.update_comment(REPOSITORY, made.id, "two")).body == "two"


async def test_a_lasting_outage_is_unavailable(github: GitHubConnection, stage: Stage) -> None:
    await stage.fault("status", "repos/get", status=503, count=None)
    with pytest.raises(Unavailable, match="GitHub answered 503"):
        await github.client.repository(REPOSITORY)


async def test_silence_is_unavailable(stage: Stage) -> None:
    connection = stage.connect(token=TOKEN, timeout=0.1)
    await stage.fault("slow", "repos/get", seconds=0.4, count=3)
    try:
        with pytest.raises(Unavailable, match=r"no answer .* in 0.1 s"):
            await connection.client.repository(REPOSITORY)
        assert (await connection.client.repository(REPOSITORY)).full_name == REPOSITORY
    finally:
        await connection.close()


async def test_a_secondary_limit_holds_back_all_of_that_installation(
    github: GitHubConnection, stage: Stage
) -> None:
    number = await stage.issue()
    await github.client.repository(REPOSITORY)
    await stage.fault("secondary-rate-limit", "issues/create-comment", seconds=30)
    with pytest.raises(Throttled) as caught:
        await github.client.create_comment(REPOSITORY, number, "x")
    assert caught.value.retry_after == 30
    before = len(await stage.requests())
    with pytest.raises(Throttled) as held:
        await github.client.issue(REPOSITORY, number)
    assert held.value.retry_after == pytest.approx(30, abs=5)
    assert len(await stage.requests()) == before
    stage.clock.ahead = timedelta(seconds=31)
    assert (await github.client.create_comment(REPOSITORY, number, "x")).body == "x"


async def test_the_hourly_budget_is_throttled_until_its_reset(
    github: GitHubConnection, stage: Stage
) -> None:
    await github.client.repository(REPOSITORY)
    await stage.admin("PUT", "/rate", {"limit": 1})
    number = await stage.issue()
    await github.client.issue(REPOSITORY, number)
    with pytest.raises(Throttled) as caught:
        await github.client.create_comment(REPOSITORY, number, "x")
    assert caught.value.retry_after == pytest.approx(3600, abs=30)
    assert caught.value.code == "RateLimited"


async def test_an_unchanged_answer_costs_nothing(github: GitHubConnection, stage: Stage) -> None:
    number = await stage.issue("before")
    first = await github.client.issue(REPOSITORY, number)
    assert await github.client.issue(REPOSITORY, number) == first
    assert [each["status"] for each in await stage.requests("issues/get")] == [200, 304]
    await stage.post(f"/repos/{REPOSITORY}/issues/{number}/edit", title="after")
    assert (await github.client.issue(REPOSITORY, number)).title == "after"


async def test_a_refused_connection_is_unavailable(stage: Stage) -> None:
    connection = GitHubConnection("http://127.0.0.1:9", PlainToken(TOKEN), stage.clock, timeout=1)
    try:
        with pytest.raises(Unavailable, match="cannot be reached"):
            await connection.client.repository(REPOSITORY)
    finally:
        await connection.close()


async def test_a_proxy_of_the_environment_is_used(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().split()[1])
        await reader.readuntil(b"\r\n\r\n")
        body = b'{"login": "through-the-proxy"}'
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    connection = GitHubConnection("http://ghe.example/api/v3", PlainToken(TOKEN), stage.clock)
    async with server:
        assert await connection.forge.own_login() == "through-the-proxy"
        await connection.close()
    assert asked == ["http://ghe.example/api/v3/user"]


async def test_the_next_page_is_read_from_the_host_we_know(stage: Stage) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path_qs)
        link = '<http://evil.example/api/v3/page?after=a%3D1>; rel="next"'
        headers = {} if "after" in request.query else {"Link": link}
        return web.json_response([], headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/v3"
    connection = GitHubConnection(url, PlainToken(TOKEN), stage.clock)
    try:
        assert await connection.forge.issue_events(REPOSITORY, 1) == []
    finally:
        await connection.close()
        await runner.cleanup()
    assert asked == [
        "/api/v3/repos/acme/app/issues/1/events?per_page=100",
        "/api/v3/page?after=a%3D1",
    ]
