"""The checker reads what the simulators really write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from checker_history import INSTALLATION, UID, labels

from issuesandbox.local.checker.collect import CollectError, Sources, collect
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


async def test_secrets_are_searched_in_logs_comments_and_given_texts(
    worlds: Worlds, tmp_path: Path
) -> None:
    await make_repository(worlds)
    comment = f"{worlds.github.admin_url}/repos/acme/shop/issues/1/comment"
    await worlds.call("POST", comment, json={"body": "my key is sk-0123456789"})
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "operator.log").write_text("sk-0123456789")
    sources = Sources(
        INSTALLATION,
        worlds.daytona.admin_url,
        worlds.github.url,
        logs=(tmp_path / "logs",),
        secrets={"key": "sk-0123456789"},
    )
    evidence = await collect(sources, [seen()], texts={"environment": "KEY=sk-0123456789"})
    places = {violation.subject for violation in check(evidence)}
    assert places == {"comments", "environment", str(tmp_path / "logs" / "operator.log")}


async def test_a_source_that_does_not_answer_is_named(worlds: Worlds) -> None:
    gone = Sources(INSTALLATION, "http://127.0.0.1:1/_sim")
    with pytest.raises(CollectError, match="_sim/journal does not answer"):
        await collect(gone, [])
    odd = Sources(INSTALLATION, f"{worlds.daytona.admin_url}/nowhere")
    with pytest.raises(CollectError, match="answered 404"):
        await collect(odd, [])
