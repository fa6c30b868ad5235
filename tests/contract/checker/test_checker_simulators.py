"""The checker reads what the simulators really write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from checker_history import INSTALLATION, UID, labels

from issuesandbox.local.checker.asking import CollectError
from issuesandbox.local.checker.collect import Sources, collect
from issuesandbox.local.checker.evidence import Moment, Observation
from issuesandbox.local.checker.verdict import check
from issuesandbox.local.daytona.config import ApiKey, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator

OPERATOR = {"Authorization": "Bearer operator-key"}
SOMEBODY = {"Authorization": "Bearer somebody-key"}
RESOURCE: dict[str, Any] = {
    "metadata": {"uid": UID, "namespace": "default", "name": "shop-7"},
    "spec": {"issue": {"repository": "acme/shop", "number": 1}},
}


class Worlds:
    """Both simulators, and how the operator and others call them."""

    def __init__(
        self, daytona: Simulator, github: GitHubSimulator, session: aiohttp.ClientSession
    ) -> None:
        self.daytona = daytona
        self.github = github
        self.session = session
        self.sources = Sources(
            INSTALLATION,
            daytona.admin_url,
            github.url,
            daytona_identities=frozenset({"org/operator"}),
        )

    async def call(self, method: str, url: str, **request: Any) -> Any:
        async with self.session.request(method, url, **request) as response:
            text = await response.text()
            assert response.status < 300, text
            return json.loads(text) if text else None

    async def at_daytona(
        self, method: str, path: str, body: Any = None, headers: Any = OPERATOR
    ) -> Any:
        return await self.call(
            method, f"{self.daytona.url}{path}", json=body, headers=dict(headers)
        )

    async def broken(self, *seen: Observation, **options: Any) -> list[str]:
        evidence = await collect(self.sources, seen, **options)
        return [violation.rule for violation in check(evidence)]


Leak = Callable[[Worlds, dict[str, str]], Awaitable[None]]


@pytest_asyncio.fixture
async def worlds() -> AsyncIterator[Worlds]:
    keys = (ApiKey("operator-key", "org", "operator"), ApiKey("somebody-key", "org", "somebody"))
    async with (
        Simulator(SimulatorConfig(keys=keys, speed=100)) as daytona,
        GitHubSimulator(GitHubConfig()) as github,
        aiohttp.ClientSession(headers={"User-Agent": "test"}) as session,
    ):
        yield Worlds(daytona, github, session)


def seen(**changes: Any) -> Observation:
    return Observation(Moment(0.0), "ADDED", {**RESOURCE, **changes})


async def make_repository(worlds: Worlds) -> dict[str, str]:
    """Make a repository with an issue, and return the headers of the App installed there."""
    admin = worlds.github.admin_url
    await worlds.call(
        "POST", f"{admin}/repos", json={"repository": "acme/shop", "files": {"README.md": "hello"}}
    )
    made = await worlds.call("POST", f"{admin}/installations", json={"account": "acme"})
    await worlds.call("POST", f"{admin}/repos/acme/shop/issues", json={"title": "broken"})
    token = await worlds.call("POST", f"{admin}/tokens", json={"installation": made["id"]})
    return {"Authorization": f"Bearer {token['token']}"}


async def test_an_orderly_life_is_clean(worlds: Worlds) -> None:
    made = await worlds.at_daytona("POST", "/sandbox", {"name": "a", "labels": labels()})
    assert await worlds.broken(seen()) == []
    await worlds.at_daytona("DELETE", f"/sandbox/{made['id']}")
    assert await worlds.broken() == []


async def test_two_sandboxes_and_an_orphan_are_seen(worlds: Worlds) -> None:
    for name in ("a", "b"):
        await worlds.at_daytona("POST", "/sandbox", {"name": name, "labels": labels()})
    assert await worlds.broken(seen()) == ["one-live-sandbox"]
    assert await worlds.broken() == ["one-live-sandbox", "no-orphan", "no-orphan"]


async def test_resources_of_other_namespaces_are_not_judged(worlds: Worlds) -> None:
    await worlds.at_daytona("POST", "/sandbox", {"name": "a", "labels": labels()})
    worlds.sources = replace(worlds.sources, namespaces=frozenset({"default"}))
    assert await worlds.broken(seen()) == []
    worlds.sources = replace(worlds.sources, namespaces=frozenset({"elsewhere"}))
    assert await worlds.broken(seen()) == ["no-orphan"]


async def test_a_sandbox_without_labels_is_seen(worlds: Worlds) -> None:
    await worlds.at_daytona("POST", "/sandbox", {"name": "a"})
    await worlds.at_daytona("POST", "/sandbox", {"name": "b"}, SOMEBODY)
    assert await worlds.broken() == ["all-labelled"]


async def test_a_touched_foreign_sandbox_is_seen(worlds: Worlds) -> None:
    plant = {"organization": "org", "name": "theirs", "state": "started"}
    await worlds.call("POST", f"{worlds.daytona.admin_url}/sandboxes", json=plant)
    await worlds.at_daytona("GET", "/sandbox/theirs")
    await worlds.at_daytona("POST", "/sandbox/theirs/autostop/5", headers=SOMEBODY)
    assert await worlds.broken() == []
    await worlds.at_daytona("POST", "/sandbox/theirs/autostop/6")
    assert await worlds.broken() == ["foreign-untouched"]


async def test_pushes_pull_requests_and_comments_are_read(worlds: Worlds) -> None:
    app = await make_repository(worlds)
    repo = f"{worlds.github.url}/repos/acme/shop"
    finished = seen(status={"run": {"id": "r", "outcome": "Failed"}})
    comments = f"{repo}/issues/1/comments"
    said = await worlds.call("POST", comments, headers=app, json={"body": f"<!-- {UID} -->"})
    edit = f"{repo}/issues/comments/{said['id']}"
    await worlds.call("PATCH", edit, headers=app, json={"body": f"done {UID}"})
    assert await worlds.broken(finished) == []
    await worlds.call("POST", comments, headers=app, json={"body": f"again {UID}"})
    assert await worlds.broken(finished) == ["one-comment"]


async def test_an_ungated_push_and_an_unknown_pull_request_are_seen(worlds: Worlds) -> None:
    app = await make_repository(worlds)
    repo = f"{worlds.github.url}/repos/acme/shop"
    admin = f"{worlds.github.admin_url}/repos/acme/shop"
    change = {"branch": "side", "files": {"a": "b"}}
    await worlds.call("POST", f"{admin}/push", json=change)
    assert await worlds.broken(seen()) == []
    tip = (await worlds.call("GET", f"{repo}/git/ref/heads/side", headers=app))["object"]["sha"]
    new = {"ref": "refs/heads/claude-fix-issue-1", "sha": tip}
    await worlds.call("POST", f"{repo}/git/refs", headers=app, json=new)
    pull = {"title": "x", "head": "claude-fix-issue-1", "base": "main"}
    await worlds.call("POST", f"{repo}/pulls", headers=app, json=pull)
    assert await worlds.broken(seen()) == ["push-through-gate", "one-pull-request"]


KEY = "sk-0123456789"


async def comment_with_the_key(worlds: Worlds, app: dict[str, str]) -> None:
    comment = f"{worlds.github.admin_url}/repos/acme/shop/issues/1/comment"
    await worlds.call("POST", comment, json={"body": f"my key is {KEY}"})


async def pull_request_with_the_key(worlds: Worlds, app: dict[str, str]) -> None:
    side = {"branch": "side", "files": {"a": "b"}}
    await worlds.call("POST", f"{worlds.github.admin_url}/repos/acme/shop/push", json=side)
    pull = {"title": "x", "head": "side", "base": "main", "body": f"made with {KEY}"}
    await worlds.call("POST", f"{worlds.github.url}/repos/acme/shop/pulls", headers=app, json=pull)


async def commit_with_the_key(worlds: Worlds, app: dict[str, str]) -> None:
    admin, repo = (f"{worlds.github.url}/{part}repos/acme/shop" for part in ("_sim/", ""))
    side = {"branch": "side", "files": {"config.py": f"key = '{KEY}'"}}
    await worlds.call("POST", f"{admin}/push", json=side)
    tip = (await worlds.call("GET", f"{repo}/git/ref/heads/side", headers=app))["object"]["sha"]
    for sha, name in ((tip, "claude-fix-issue-1"), (tip, "claude-fix-issue-1-2")):
        new = {"ref": f"refs/heads/{name}", "sha": sha}
        await worlds.call("POST", f"{repo}/git/refs", headers=app, json=new)


async def sandbox_with_the_key(worlds: Worlds, app: dict[str, str]) -> None:
    made = {"name": "a", "labels": labels(), "env": {"KEY": KEY}}
    await worlds.at_daytona("POST", "/sandbox", made)


PLACES = {
    comment_with_the_key: "comments",
    pull_request_with_the_key: "pull requests",
    commit_with_the_key: "pushed commits",
    sandbox_with_the_key: "Daytona's sandboxes",
}


@pytest.mark.parametrize("leak", PLACES, ids=lambda leak: leak.__name__)
async def test_a_secret_is_found_where_others_can_read_it(worlds: Worlds, leak: Leak) -> None:
    await leak(worlds, await make_repository(worlds))
    worlds.sources = replace(worlds.sources, secrets={"key": KEY})
    evidence = await collect(worlds.sources, [seen()])
    found = [each.subject for each in check(evidence) if each.rule == "no-secret"]
    assert found == [PLACES[leak]]


async def test_secrets_are_searched_in_logs_given_texts_and_metrics(
    worlds: Worlds, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "operator.log").write_text(KEY)
    sources = replace(worlds.sources, logs=(logs,), secrets={"key": KEY})
    server = await served(f'issuesandbox_calls{{key="{KEY}"}} 1')
    exported = str(server.make_url("/metrics"))
    try:
        # Who is gone exports nothing.
        metrics = [exported, "http://127.0.0.1:1/metrics"]
        texts = {"environment": f"KEY={KEY}"}
        evidence = await collect(sources, [seen()], texts=texts, metrics=metrics)
    finally:
        await server.close()
    places = {violation.subject for violation in check(evidence)}
    assert places == {"environment", exported, str(logs / "operator.log")}


async def served(text: str) -> TestServer:
    """Serve a text for as long as nobody closes it."""

    async def show(request: web.Request) -> web.Response:
        return web.Response(text=text)

    app = web.Application()
    app.router.add_get("/metrics", show)
    server = TestServer(app)
    await server.start_server()
    return server


async def test_a_world_without_daytona_is_judged_by_github_alone(worlds: Worlds) -> None:
    app = await make_repository(worlds)
    await worlds.at_daytona("POST", "/sandbox", {"name": "a"})
    worlds.sources = Sources(INSTALLATION, github=worlds.github.url)
    assert await worlds.broken(seen()) == []
    await pull_request_with_the_key(worlds, app)
    assert await worlds.broken(seen()) == ["one-pull-request"]


async def test_what_was_pushed_and_is_gone_holds_nobody_up(worlds: Worlds) -> None:
    app = await make_repository(worlds)
    await commit_with_the_key(worlds, app)
    repo = f"{worlds.github.url}/repos/acme/shop"
    for branch in ("claude-fix-issue-1", "claude-fix-issue-1-2"):
        await worlds.call("DELETE", f"{repo}/git/refs/heads/{branch}", headers=app)
    evidence = await collect(worlds.sources, [seen()])
    assert KEY in evidence.texts["pushed commits"], "the branch of a person still has it"
    await worlds.call("DELETE", f"{worlds.github.admin_url}/repos/acme/shop")
    assert (await collect(worlds.sources, [seen()])).texts["pushed commits"] == ""


async def test_a_source_that_does_not_answer_is_named(worlds: Worlds) -> None:
    gone = Sources(INSTALLATION, "http://127.0.0.1:1/_sim")
    with pytest.raises(CollectError, match="_sim/journal does not answer"):
        await collect(gone, [])
    odd = Sources(INSTALLATION, f"{worlds.daytona.admin_url}/nowhere")
    with pytest.raises(CollectError, match="answered 404"):
        await collect(odd, [])
