"""`kubectl isb` beside a running operator: what the verbs say really happens."""

from __future__ import annotations

import asyncio
import json

from operator_stage import Stage
from plugin_process import Plugin

from issuesandbox.local.daytona.config import DEFAULT_KEY


async def test_stop_run_and_uninstall_reach_the_sandbox(stage: Stage, plugin: Plugin) -> None:
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    await asyncio.to_thread(plugin, "stop", "one")
    await stage.until_phase("one", "Stopped")
    said = await asyncio.to_thread(plugin, "why", "one")
    assert "It is told to be stopped" in said
    done = await asyncio.to_thread(
        plugin, "uninstall", "-n", stage.namespace, "--yes", "--timeout", "60"
    )
    assert "1 resources are gone" in done
    assert "kubectl delete -f crds/" in done
    assert await stage.get("one") == {}


async def test_uninstall_without_an_operator_says_who_is_left(stage: Stage, plugin: Plugin) -> None:
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    await stage.operators[0].stop()
    said = await asyncio.to_thread(
        lambda: plugin("uninstall", "-n", stage.namespace, "--yes", "--timeout", "1", code=1)
    )
    assert f"{stage.namespace}/one" in said
    assert "Is the operator running?" in said
    await stage.start_operator()
    await stage.until_gone("one")


async def test_doctor_and_orphans_ask_daytona(stage: Stage, plugin: Plugin) -> None:
    await stage.start_operator()
    environment = {
        "DAYTONA_API_KEY": DEFAULT_KEY,
        "DAYTONA_API_URL": stage.simulator.url,
        "DAYTONA_SNAPSHOT": "no-such-snapshot",
        "ISSUESANDBOX_INSTALLATION": stage.namespace,
    }

    def examine(**changed: str) -> dict[str, dict[str, str]]:
        home = ("doctor", "--operator-namespace", stage.namespace, "-o", "json")
        shown = plugin.run(*home, **{**environment, **changed}).stdout
        return {row["check"]: row for row in json.loads(shown)}

    rows = await asyncio.to_thread(examine)
    assert rows["leases"]["verdict"] == "ok"
    assert rows["its rights"]["verdict"] == "ok"
    assert rows["Daytona key"]["verdict"] == "ok"
    assert rows["snapshot"]["verdict"] == "FAILED"
    wrong = await asyncio.to_thread(lambda: examine(DAYTONA_API_KEY="dtn_wrong"))
    assert wrong["Daytona key"]["what"] == "the key is refused"
    assert "dtn_wrong" not in json.dumps(wrong)
    said = await asyncio.to_thread(lambda: plugin("orphans", **environment))
    assert f"installation {stage.namespace}" in said
    unset = await asyncio.to_thread(lambda: plugin("orphans", code=1))
    assert "DAYTONA_API_KEY is not set" in unset


async def test_the_manual_test_is_verified_step_by_step(stage: Stage, plugin: Plugin) -> None:
    await stage.start_operator()
    await stage.apply("one")
    status = await stage.until_phase("one", "Idle")
    daytona = {"DAYTONA_API_KEY": DEFAULT_KEY, "DAYTONA_API_URL": stage.simulator.url}

    async def verify(step: int, code: int = 0) -> str:
        return await asyncio.to_thread(
            lambda: plugin("verify", str(step), "one", code=code, **daytona)
        )

    assert "claude-issue-1" in await verify(2)
    assert "0 starts" in await verify(3, code=1)
    await stage.admin("POST", f"sandboxes/{status['sandbox']['id']}/stop", {})
    await stage.until(lambda: _counted(stage, "starts"), "the start")
    await stage.until_phase("one", "Idle")
    await verify(3)
    assert "attempt 1" in await verify(4, code=1)
    await stage.admin("POST", "wipe", {})
    await stage.until(lambda: _counted(stage, "creates", 2), "the new sandbox")
    await stage.until_phase("one", "Idle")
    await verify(4)
    still = await verify(5, code=1)
    assert "it is Idle" in still
    assert status["sandbox"]["id"] not in still
    await stage.delete("one")
    await stage.until_gone("one")
    assert "FAILED" not in await verify(5)


async def _counted(stage: Stage, what: str, count: int = 1) -> bool:
    counters = (await stage.status("one")).get("counters", {})
    return int(counters.get(what, 0)) >= count
