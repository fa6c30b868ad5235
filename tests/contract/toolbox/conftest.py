"""The toolbox adapter in front of a simulated sandbox with real processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from toolbox_stage import KEY, Stage

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.daytona.toolbox import DaytonaToolbox
from issuesandbox.domain.timings import Timings
from issuesandbox.local.agent.shim import install_claude
from issuesandbox.local.daytona.config import ApiKey, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.ports.sandboxes import SandboxOrder


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """A started sandbox that has the scripted agent on its PATH."""
    install_claude(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    timings = Timings(read_timeout=timedelta(seconds=2), change_timeout=timedelta(seconds=10))
    config = SimulatorConfig(keys=(ApiKey(KEY, "org", "operator"),), speed=20)
    async with Simulator(config) as simulator, aiohttp.ClientSession() as admin:
        sandboxes = DaytonaSandboxes(simulator.url, KEY, timings)
        toolbox = DaytonaToolbox(simulator.url, KEY, timings)
        try:
            made = await sandboxes.create(SandboxOrder(name="claude-issue-1", labels={}))
            yield Stage(simulator, admin, sandboxes, toolbox, made.id)
        finally:
            await toolbox.close()
            await sandboxes.close()
