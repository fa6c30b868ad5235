"""Switches thrown while the operator runs: each takes effect within ten seconds."""

from __future__ import annotations

import asyncio
import json

from operator_stage import Stage
from plugin_process import Plugin


async def test_a_freeze_stops_everything_but_the_end_of_what_runs(
    stage: Stage, plugin: Plugin
) -> None:
    await stage.start_operator()
    await stage.apply("runs", 1)
    await stage.until_phase("runs", "Idle")
    home = ("--operator-namespace", stage.namespace)
    await asyncio.to_thread(plugin, "freeze", "--reason", "quota incident", *home)

    async def held() -> bool:
        return (await stage.condition("runs", "Synced")).get("reason") == "ReconcilePaused"

    await stage.until(held, "the freeze", seconds=10)
    await stage.guard.freeze()
    await stage.apply("new", 2)

    async def told() -> bool:
        return (await stage.condition("new", "Synced")).get("reason") == "ReconcilePaused"

    await stage.until(told, "the newcomer to be held", seconds=10)
    assert "sandbox" not in await stage.status("new")
    await stage.patch("runs", {"spec": {"desiredState": "Stopped"}})
    await stage.until_phase("runs", "Stopped")
    await stage.guard.unfreeze()
    await asyncio.to_thread(plugin, "unfreeze", *home)
    await stage.until_phase("new", "Idle", seconds=20)


async def test_a_limit_is_raised_while_others_wait(stage: Stage) -> None:
    await stage.start_operator(ISSUESANDBOX_MAX_SANDBOXES="1")
    await stage.apply("issue-1", 1)
    await stage.until_phase("issue-1", "Idle")
    await stage.apply("issue-2", 2)
    await stage.until_phase("issue-2", "Queued")
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "issuesandbox", "namespace": stage.namespace},
        "data": {"ISSUESANDBOX_MAX_SANDBOXES": "2"},
    }
    stage.access.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    await stage.until_phase("issue-2", "Idle", seconds=15)
