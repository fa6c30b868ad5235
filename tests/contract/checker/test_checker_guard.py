"""The guard around a test: judges at the end, and only what the test did not excuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from checker_api_server import ApiServer
from checker_history import INSTALLATION, labels

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.checker.guard import BrokenInvariantsError, guarded
from issuesandbox.local.daytona.config import ApiKey, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator

ISSUE = {"repository": "acme/shop", "number": 7}


@pytest_asyncio.fixture
async def daytona() -> AsyncIterator[Simulator]:
    config = SimulatorConfig(keys=(ApiKey("key", "org", "operator"),), speed=100)
    async with Simulator(config) as simulator:
        yield simulator


@pytest.fixture
def sources(daytona: Simulator) -> Sources:
    return Sources(INSTALLATION, daytona.admin_url, secrets={"key": "sk-0123456789"})


async def create(daytona: Simulator, uid: str = "uid-a") -> str:
    headers = {"Authorization": "Bearer key"}
    body = {"name": f"sandbox-of-{uid}", "labels": labels(uid=uid)}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{daytona.url}/sandbox", json=body) as response,
    ):
        return str((await response.json())["id"])


async def test_a_clean_block_passes(
    api: ApiServer, kubeconfig: Path, daytona: Simulator, sources: Sources
) -> None:
    async with guarded(sources, kubeconfig):
        api.write("a", "ADDED", issue=ISSUE)
        await create(daytona)


async def test_a_broken_promise_is_raised_and_can_be_excused(
    api: ApiServer, kubeconfig: Path, daytona: Simulator, sources: Sources
) -> None:
    with pytest.raises(BrokenInvariantsError, match=r"no-orphan: sandbox .* no resource"):
        async with guarded(sources, kubeconfig):
            await create(daytona, "nobody")
    async with guarded(sources, kubeconfig) as guard:
        guard.lapse("no-orphan")
    async with guarded(sources, kubeconfig) as guard:
        guard.at_rest = False


async def test_a_failed_block_tells_its_own_error(
    api: ApiServer, kubeconfig: Path, daytona: Simulator, sources: Sources
) -> None:
    await create(daytona, "nobody")
    with pytest.raises(KeyError):
        async with guarded(sources, kubeconfig):
            raise KeyError


async def test_texts_of_the_test_and_of_the_cluster_are_searched(
    api: ApiServer, kubeconfig: Path, daytona: Simulator, sources: Sources
) -> None:
    api.write("a", "ADDED", told=False, issue=ISSUE, note="sk-0123456789")
    with pytest.raises(BrokenInvariantsError) as raised:
        async with guarded(sources, kubeconfig) as guard:
            guard.texts["environment"] = "KEY=sk-0123456789"
    places = {violation.subject for violation in raised.value.violations}
    assert places == {"environment", "resources", "ConfigMaps", "Events"}


async def test_a_freeze_counts_from_where_the_journal_was(
    api: ApiServer, kubeconfig: Path, daytona: Simulator, sources: Sources
) -> None:
    async with guarded(sources, kubeconfig) as guard:
        api.write("a", "ADDED", issue=ISSUE)
        await guard.freeze()
        await create(daytona)
        await guard.unfreeze()
        [span] = guard.frozen
    assert span.end is not None
    assert span.start.daytona == 0
    assert (span.end.daytona or 0) > 0
