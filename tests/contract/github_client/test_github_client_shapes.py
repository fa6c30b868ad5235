"""Answers of another shape than GitHub's: whoever asked hears that there was no answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.clock import SystemClock
from issuesandbox.local.github.tokens import new_private_key
from issuesandbox.ports.errors import Unavailable

Ask = Callable[[GitHubConnection], Awaitable[Any]]


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    # The first pages of an App say what they should, so that the later ones are asked for.
    if request.path == "/app/installations":
        return web.json_response([{"id": 1}])
    return web.json_response({"message": "maintenance", "id": "one"})


@pytest.fixture
async def elsewhere() -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(_answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def _repositories(github: GitHubConnection) -> list[Any]:
    return [each async for each in github.forge.repositories()]


ASKS: dict[str, Ask] = {
    "who we are": lambda github: github.forge.own_login(),
    "a token": lambda github: github.client.read_token("acme/app"),
    "repositories": _repositories,
    "the last edit": lambda github: github.forge.last_edit("acme/app", 1),
}


# A person's token is not asked for.
PAIRS = [(ask, is_app) for ask in ASKS for is_app in (True, False) if is_app or ask != "a token"]


@pytest.mark.parametrize(("ask", "is_app"), PAIRS)
async def test_an_answer_of_an_unknown_shape_is_none(
    elsewhere: str, ask: str, is_app: bool
) -> None:
    identity = AppKey("1", new_private_key()) if is_app else PlainToken("token")
    github = GitHubConnection(elsewhere, identity, SystemClock())
    try:
        with pytest.raises(Unavailable, match="shape"):
            await ASKS[ask](github)
    finally:
        await github.close()
