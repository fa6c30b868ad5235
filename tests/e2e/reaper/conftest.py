"""The stage of each test: a simulated Daytona, a namespace of its own, the checker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest_asyncio
from court import Court
from reaper_stage import Stage

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.domain.timings import Timings
from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.daytona.config import DEFAULT_KEY, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator


@pytest_asyncio.fixture
async def stage(
    court: Court, control_plane: Access, crd: None, namespace: str
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(Simulator(SimulatorConfig(rate_limits=None)))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        sandboxes = DaytonaSandboxes(simulator.url, DEFAULT_KEY, Timings())
        stack.push_async_callback(sandboxes.close)
        stage = Stage(control_plane, namespace, simulator, http, sandboxes)
        stack.push_async_callback(stage.requests.close)
        sources = Sources(
            installation=stage.installation,
            daytona_admin=simulator.admin_url,
            namespaces=frozenset({namespace}),
            secrets={"Daytona key": DEFAULT_KEY, "administrator's token": control_plane.token},
        )
        stage.guard = await stack.enter_async_context(
            court.judged(sources, control_plane.kubeconfig)
        )
        # Orphans are what these tests are about; many of them are to be left alive.
        stage.guard.at_rest = False
        yield stage
