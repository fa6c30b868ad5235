"""A simulated GitHub with an App, its people and one repository, and room for adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from adapter_process import SECRET, Adapters
from court import Court
from webhook_stage import REPOSITORY, JumpingClock, WebhookStage

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator
from issuesandbox.local.github.tokens import new_private_key


@pytest.fixture(scope="session")
def app_key() -> str:
    return new_private_key()


@pytest_asyncio.fixture
async def hook_stage(
    court: Court, control_plane: Access, crd: None, namespace: str, app_key: str, tmp_path: Path
) -> AsyncIterator[WebhookStage]:
    async with AsyncExitStack() as stack:
        config = GitHubConfig(app_private_key=app_key, tokens={"ghp_root": "root"})
        clock = JumpingClock()
        github = await stack.enter_async_context(GitHubSimulator(config, clock))
        (tmp_path / "logs").mkdir()
        http = await stack.enter_async_context(aiohttp.ClientSession())
        adapters = Adapters(control_plane, namespace, github, tmp_path)
        adapters.install()
        stack.push_async_callback(adapters.stop)
        sources = Sources(
            installation=namespace,
            github=github.url,
            namespaces=frozenset({namespace}),
            logs=(tmp_path / "logs",),
            secrets={
                "webhook's secret": SECRET,
                "administrator's token": control_plane.token,
                "a line of the App's key": app_key.splitlines()[1],
            },
        )
        guard = await stack.enter_async_context(court.judged(sources, control_plane.kubeconfig))
        # The operator writes it, and none takes part.
        guard.lapse("one-comment")
        stage = WebhookStage(clock, adapters, http, guard)
        files = {"README.md": "hello\n"}
        await stage.sim("POST", "repos", {"repository": REPOSITORY, "files": files})
        for login, permission, association in (
            ("owner", "admin", "OWNER"),
            ("member", "write", "MEMBER"),
            ("stranger", "read", "NONE"),
        ):
            person = {"permission": permission, "association": association}
            await stage.sim("PUT", f"users/{login}", person)
        await stage.sim("POST", "installations", {"account": "acme"})
        yield stage
        guard.metrics += [f"{url}/metrics" for url in adapters.urls]
    logs = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert "Traceback" not in logs, logs[-3000:]
    assert "PRIVATE KEY" not in logs
