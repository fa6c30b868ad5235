"""Feature flags on live runs: each one off shows its old symptom, and switching loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

from run_stage import QUICK, RunStage
from test_mute_sandboxes import muted

from issuesandbox.clock import SystemClock
from issuesandbox.domain.flags import Flag, Flags

LIVE_RUNS = 20
STOP = {"spec": {"desiredState": "Stopped"}}


def busy(seconds: int) -> str:
    """Return a step of an agent that works, and prints, for so long."""
    return f"tick 0.5 {seconds * 2} Working."


async def sandbox_of(runs: RunStage, name: str) -> dict[str, Any]:
    sandbox = (await runs.stage.status(name))["sandbox"]["id"]
    return await runs.stage.daytona_get(sandbox)


async def agent_alive(runs: RunStage, name: str) -> bool:
    sandbox = (await runs.stage.status(name))["sandbox"]["id"]
    return bool((await runs.stage.admin("GET", "processes")).get(sandbox))


async def test_each_flag_off_shows_its_old_symptom_and_no_other(runs: RunStage) -> None:
    # R105, R107
    await runs.stage.admin("PATCH", "settings", {"timings": {"creating": 1.0}})
    timings = runs.stage.timings(**{**QUICK, "probe_timeout": "700ms"})
    first = await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    work = (busy(14), "write a.txt a")
    await runs.run_issue(*work, name="unheard", flags={"cancellationChecks": False})
    await runs.run_issue(*work, name="inherited", flags={"dbBackedStop": False})
    limits = {"inactivity": "4s", "agent": "60s"}
    silent = {"inactivityTimeout": False}
    await runs.run_issue(
        "wait 9", "write a.txt a", name="silent", run={"limits": limits}, flags=silent
    )
    unkilled = {"authoritativeTimeout": False}
    limits = {"agent": "4s", "inactivity": "4s"}
    await runs.run_issue("forever 1", name="unkilled", run={"limits": limits}, flags=unkilled)
    await muted(runs, "unprobed", flags={"healthProbe": False})
    await asyncio.gather(*(runs.until_agent_runs(name) for name in ("unheard", "inherited")))
    os.kill(first.pid, signal.SIGKILL)
    await first.wait()
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    await asyncio.gather(*(runs.stage.patch(name, STOP) for name in ("unheard", "inherited")))

    marked = await runs.until_finished("unkilled")
    assert (marked["outcome"], marked["reason"]) == ("TimedOut", "AgentTimeout")
    assert (await sandbox_of(runs, "unkilled"))["state"] == "started"
    assert await agent_alive(runs, "unkilled"), "a run out of time is marked, not ended"

    for name in ("unheard", "inherited"):
        assert await agent_alive(runs, name), f"the stop of {name} was heard"
        assert "stopRequestedAt" not in await runs.stage.status(name)
    ends = [await runs.until_finished(name, 60) for name in ("unheard", "inherited")]
    assert {each["outcome"] for each in ends} == {"Cancelled"}
    assert all("publish" not in each for each in ends), "the gate is no flag's business"

    assert (await runs.until_finished("silent"))["outcome"] == "Succeeded"
    unprobed = await runs.until_finished("unprobed")
    assert (unprobed["outcome"], unprobed["reason"]) == ("Failed", "PrepareFailed")
    assert (unprobed.get("restarts", 0), unprobed.get("recreations", 0)) == (0, 0)
    branches = [ref for ref in await runs.refs() if "claude-fix" in ref]
    assert len(branches) == 1, "only the silent one was published"
    await runs.stage.clear_faults()
    runs.stage.guard.bounds = True


async def switch(runs: RunStage, on: bool) -> float:
    """Store all flags on or off, tell the checker, and return the moment."""
    value = "true" if on else "false"
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "issuesandbox", "namespace": runs.stage.namespace},
        "data": {flag.value: value for flag in Flag},
    }
    runs.stage.guard.flags.append(Flags(dict.fromkeys(Flag, 100 if on else 0)))
    moment = SystemClock().monotonic()
    arguments = ("apply", "--server-side", "--force-conflicts", "-f", "-")
    await asyncio.to_thread(runs.stage.access.kubectl, *arguments, stdin=json.dumps(body))
    return moment


async def shown(runs: RunStage) -> dict[str, str]:
    """Return the settings that the operator goes by, as its own machine may ask."""
    async with runs.http.get(f"{runs.stage.probe_urls[-1]}/debug/state") as answer:
        state: dict[str, Any] = await answer.json()
        return dict(state["settings"]["inForce"])


async def until_in_force(runs: RunStage, on: bool, since: float) -> float:
    async def taken() -> bool:
        settings = await shown(runs)
        return {settings[flag.value] for flag in Flag} == {str(on).lower()}

    await runs.stage.until(taken, f"the flags to be {'on' if on else 'off'}", seconds=10)
    return SystemClock().monotonic() - since


async def test_flags_switched_during_live_runs_take_effect_soon_and_lose_no_run(
    runs: RunStage, tmp_path: Path
) -> None:  # R106
    await runs.start_operator()
    end = tmp_path / "end"
    script = f"while [ ! -e {end} ]; do echo working; sleep 0.5; done; echo done >done.txt"
    agent = {"profile": "custom", "command": ["sh", "-c", script]}
    limits = {"agent": "5m", "inactivity": "60s"}
    names = [f"run-{number}" for number in range(LIVE_RUNS)]
    for name in names:
        number = await runs.open_issue(title=name)
        run = {"trigger": "1", "agent": agent, "limits": limits}
        await runs.stage.apply(name, number, run=run)
    live = await asyncio.gather(*(runs.until_agent_runs(name) for name in names))

    off_after = await until_in_force(runs, False, await switch(runs, False))
    await runs.stage.patch(names[0], STOP)
    deaf_until = SystemClock().monotonic() + 3
    while SystemClock().monotonic() < deaf_until:
        assert "stopRequestedAt" not in await runs.stage.status(names[0])
        await asyncio.sleep(0.2)
    switched = await switch(runs, True)

    async def heard() -> bool:
        return not await agent_alive(runs, names[0])

    await runs.stage.until(heard, "the stop to be heard", seconds=15)
    on_after = SystemClock().monotonic() - switched
    print(f"off after {off_after:.1f} s; a stop that was not heard ended {on_after:.1f} s after on")
    assert (await runs.until_finished(names[0]))["outcome"] == "Cancelled"

    end.touch()
    ends = await asyncio.gather(*(runs.until_finished(name, 120) for name in names[1:]))
    odd = [each.get("message") for each in ends if each["outcome"] != "Succeeded"]
    assert odd == []
    assert [each["id"] for each in ends] == [each["id"] for each in live[1:]]
    assert off_after < 10
    assert on_after < 10, "from the switch to the end of the agent, the kill included"
