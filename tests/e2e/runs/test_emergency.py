"""The runbook's first command: every run is stopped now, also while everything is frozen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from run_stage import RunStage

NAMES = ("one", "two", "three")


def kubectl_isb(runs: RunStage, *words: str) -> None:
    plugin = Path(sys.executable).parent / "kubectl-isb"
    environment = {**os.environ, "KUBECONFIG": str(runs.stage.access.kubeconfig)}
    subprocess.run([plugin, *words], env=environment, check=True, capture_output=True)


async def test_one_command_stops_every_run_also_under_a_freeze(runs: RunStage) -> None:
    await runs.start_operator()
    for name in NAMES:
        await runs.run_issue("write a.txt a", "forever 1", name=name)
    for name in NAMES:
        await runs.until_agent_runs(name)
    home = runs.stage.namespace
    await asyncio.to_thread(kubectl_isb, runs, "freeze", "--operator-namespace", home)

    async def frozen() -> bool:
        condition = await runs.stage.condition("one", "Synced")
        return condition.get("reason") == "ReconcilePaused"

    await runs.stage.until(frozen, "the freeze", 15)
    await runs.stage.guard.freeze()
    assert await runs.processes(), "a freeze ends nothing by itself"
    asked = time.monotonic()
    # In the runbook for all namespaces; here are others' too.
    await asyncio.to_thread(kubectl_isb, runs, "stop", "--all", "-n", home)

    async def dead() -> bool:
        return not await runs.processes()

    await runs.stage.until(dead, "all agents to be dead", 10)
    for name in NAMES:
        await runs.stage.until(partial(_cancelled, runs, name), f"{name} to be over", 30)
    assert time.monotonic() - asked < 30
    # GitHub is told when the freeze is lifted.
    await runs.stage.guard.unfreeze()
    await asyncio.to_thread(kubectl_isb, runs, "unfreeze", "--operator-namespace", home)
    for name in NAMES:
        await runs.until_finished(name)
    assert list(await runs.refs()) == ["refs/heads/main"]


async def _cancelled(runs: RunStage, name: str) -> bool:
    status = await runs.stage.status(name)
    stopped = status["sandbox"].get("state") == "stopped"
    return stopped and status["run"].get("outcome") == "Cancelled"
