"""The stage for runs, judged by the checker like every other."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from court import Court
from operator_stage import Stage
from run_stage import FILES, MODEL_KEY, PERSON, REPOSITORY, RunStage

from issuesandbox.local.agent.shim import install_claude
from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.daytona.config import DEFAULT_KEY, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.github.server import GitHubConfig, GitHubSimulator
from issuesandbox.local.processes import Child, Leash


@pytest.fixture(scope="session")
def app_key() -> str:
    """A private key for the App; making one takes a moment."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
def agent_on_path(installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripted agent, where sandboxes look for programs."""
    install_claude(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest_asyncio.fixture
async def runs(
    court: Court,
    control_plane: Access,
    namespace: str,
    app_key: str,
    agent_on_path: None,
    tmp_path: Path,
) -> AsyncIterator[RunStage]:
    """A world with an agent and a GitHub; at its end every promise is checked."""
    async with AsyncExitStack() as stack:
        daytona = await stack.enter_async_context(Simulator(SimulatorConfig(rate_limits=None)))
        github = await stack.enter_async_context(
            GitHubSimulator(GitHubConfig(app_private_key=app_key, tokens={PERSON: "octocat"}))
        )
        logs = tmp_path / "logs"
        logs.mkdir()
        leash = Leash.attach(tmp_path)
        stack.push_async_callback(leash.release)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        sources = Sources(
            installation=namespace,
            daytona_admin=daytona.admin_url,
            github=github.url,
            namespaces=frozenset({namespace}),
            logs=(logs,),
            secrets={
                "Daytona key": DEFAULT_KEY,
                "administrator's token": control_plane.token,
                "model key": MODEL_KEY,
                "a line of the App's key": app_key.splitlines()[1],
            },
        )
        stage = Stage(control_plane, namespace, daytona, tmp_path, leash, http)
        stage.grant_rights(namespace)
        stack.push_async_callback(_stop, stage.operators)
        stage.guard = await stack.enter_async_context(
            court.judged(sources, control_plane.kubeconfig)
        )
        staged = RunStage(stage, github, http)
        await _furnish(staged)
        yield staged


async def _furnish(runs: RunStage) -> None:
    await runs.hub("POST", "repos", {"repository": REPOSITORY, "files": FILES})
    await runs.hub("POST", "installations", {"account": REPOSITORY.partition("/")[0]})
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "issuesandbox-agent"},
        "stringData": {"ANTHROPIC_API_KEY": MODEL_KEY},
    }
    await runs.stage.api("POST", f"/api/v1/namespaces/{runs.stage.namespace}/secrets", secret)


async def _stop(operators: list[Child]) -> None:
    for child in operators:
        if child.returncode is None:
            assert await child.stop() == 0, f"unclean end: {child.last_lines(20)}"
