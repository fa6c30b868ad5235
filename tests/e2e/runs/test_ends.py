"""How runs are ended: by a stop, by their limits, and by what happens around them."""

from __future__ import annotations

import time

import pytest
from run_stage import QUICK, RunStage
from run_witness import kill_operator

MAIN_ONLY = ["refs/heads/main"]
# Claims to be done when it is too late.
LATE = r"""
echo a >a.txt
trap 'echo "{\"type\":\"result\",\"is_error\":false}"; exit 0' TERM
while :; do echo; sleep 0.2; done
"""


async def test_a_stop_kills_the_agent_and_publishes_nothing(runs: RunStage) -> None:
    # E2E-2, R49, R51, R54-R56, R124
    await runs.start_operator()
    await runs.run_issue("write a.txt a", "forever 1")
    await runs.until_agent_runs()
    assert await runs.processes()
    # A slow control plane delays the stop of the sandbox, not the end of the agent.
    for kind in ("sandbox.get", "sandbox.stop"):
        slow = {"fault": "slow", "kind": kind, "delay": 7.0, "count": 1}
        await runs.stage.admin("POST", "faults", slow)
    asked = time.monotonic()
    await runs.stage.patch("one", {"spec": {"desiredState": "Stopped"}})

    async def dead() -> bool:
        return not await runs.processes()

    await runs.stage.until(dead, "the agent to be dead", 5)
    run = await runs.until_finished(seconds=30)
    assert time.monotonic() - asked < 30
    assert (run["outcome"], run["reason"]) == ("Cancelled", "StopRequested")
    assert list(await runs.refs()) == MAIN_ONLY
    sandbox = (await runs.stage.status("one"))["sandbox"]
    assert sandbox["state"] == "stopped"
    # Running again runs nothing without a new trigger.
    await runs.stage.patch("one", {"spec": {"desiredState": "Running"}})
    await runs.trigger("2")
    again = await runs.until_agent_runs(trigger="2")
    assert again["id"] != run["id"]
    assert (await runs.stage.status("one"))["counters"]["runs"] == 2


@pytest.mark.parametrize("toolbox", ["answers", "down"])
async def test_a_stop_does_not_wait_for_a_rate_limit_on_questions(
    runs: RunStage, toolbox: str
) -> None:
    # R49, R54-R56
    await runs.start_operator()
    await runs.run_issue("write a.txt a", "forever 1")
    await runs.until_agent_runs()
    for kind in ("sandbox.get", "sandbox.list"):
        full = {"fault": "status", "kind": kind, "status": 429, "retry_after": 20}
        await runs.stage.admin("POST", "faults", full)
    if toolbox == "down":
        await runs.stage.admin("POST", "faults", {"fault": "toolbox_down", "kind": "toolbox.*"})
    asked = time.monotonic()
    await runs.stage.patch("one", {"spec": {"desiredState": "Stopped"}})

    async def dead() -> bool:
        return not await runs.processes()

    async def still() -> bool:
        return [each["state"] for each in await runs.stage.sandboxes()] == ["stopped"]

    await runs.stage.until(dead, "the agent to be dead", 5)
    await runs.stage.until(still, "the sandbox to be stopped", 15)
    # Nobody may look yet, so nobody believes it.
    assert time.monotonic() - asked < 20
    assert "outcome" not in (await runs.stage.status("one"))["run"]
    await runs.stage.admin("DELETE", "faults")
    run = await runs.until_finished(seconds=60)
    assert (run["outcome"], run["reason"]) == ("Cancelled", "StopRequested")
    assert list(await runs.refs()) == MAIN_ONLY


async def test_an_agent_over_its_limit_is_given_up_where_nobody_answers(runs: RunStage) -> None:
    # R71
    timings = runs.stage.timings(**{**QUICK, "agent_grace": "2s", "toolbox_timeout": "2s"})
    await runs.start_operator(ISSUESANDBOX_TIMINGS=timings)
    limits = {"inactivity": "5s", "agent": "5s"}
    await runs.run_issue("write a.txt a", "forever 1", run={"limits": limits})
    await runs.until_agent_runs()
    await runs.stage.fault(fault="toolbox_down", kind="toolbox.*", count=None)
    run = await runs.until_finished(seconds=60)
    assert (run["outcome"], run["reason"]) == ("TimedOut", "AgentTimeout")
    assert [each["state"] for each in await runs.stage.sandboxes()] == ["stopped"]
    assert not await runs.processes()


async def test_a_stop_while_the_sandbox_boots_uses_the_trigger_up(runs: RunStage) -> None:
    # R58
    await runs.stage.admin("PATCH", "settings", {"timings": {"creating": 3.0}})
    await runs.start_operator()
    await runs.run_issue("write a.txt a")

    async def ordered() -> bool:
        return bool(await runs.stage.sandboxes())

    await runs.stage.until(ordered, "the sandbox to be ordered")
    await runs.stage.patch("one", {"spec": {"desiredState": "Stopped"}})
    run = await runs.until_finished()
    assert run["outcome"] == "Cancelled"
    assert list(await runs.refs()) == MAIN_ONLY


async def test_a_silent_agent_is_ended(runs: RunStage) -> None:
    # E2E-6, R68, R128
    await runs.start_operator()
    limits = {"inactivity": "2s", "agent": "60s"}
    await runs.run_issue("write a.txt a", "stall 100", run={"limits": limits})
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("TimedOut", "InactivityTimeout")
    assert not await runs.processes()
    assert "pullRequest" not in run
    assert f"refs/heads/{run['savedWork']['ref']}" in await runs.refs()


async def test_an_agent_over_its_limit_is_ended_however_busy_it_is(runs: RunStage) -> None:
    # E2E-3, R71-R74, R76, R125
    await runs.start_operator()
    limits = {"inactivity": "3s", "agent": "10s"}
    await runs.run_issue("forever 0.2", name="busy", run={"limits": limits})
    agent = {"profile": "custom", "command": ["sh", "-c", LATE]}
    await runs.run_issue(name="late", run={"limits": limits, "agent": agent})
    for name in ("busy", "late"):
        run = await runs.until_finished(name)
        assert (run["outcome"], run["reason"]) == ("TimedOut", "AgentTimeout"), name
        assert "publish" not in run
        assert "pullRequest" not in run
        assert await warnings(runs, name) == ["DeadlineNear"], name
    assert not await runs.processes()
    saved = f"refs/heads/{run['savedWork']['ref']}"
    assert sorted(await runs.refs()) == [*MAIN_ONLY, saved]


async def test_a_slow_agent_that_keeps_talking_is_left_alone(runs: RunStage) -> None:
    # R70
    await runs.start_operator()
    limits = {"inactivity": "2s", "agent": "60s"}
    await runs.run_issue("tick 1 5 still here", "write a.txt a", run={"limits": limits})
    run = await runs.until_finished()
    assert run["outcome"] == "Succeeded"


async def test_deleting_the_resource_ends_the_run_and_the_sandbox(runs: RunStage) -> None:
    # R59
    await runs.start_operator()
    number = await runs.run_issue("forever 1")
    # A sandbox that is left behind is left without its agent.
    await runs.run_issue("forever 1", name="left", deletionPolicy="Orphan")
    for name in ("one", "left"):
        await runs.until_agent_runs(name)
    for name in ("one", "left"):
        await runs.stage.delete(name)
    await runs.stage.until_gone("left")

    async def dead() -> bool:
        # A look that was cut off may still be waiting there for news.
        return not await runs.processes()

    await runs.stage.until_gone("one")
    await runs.stage.until(dead, "both agents to be dead", 5)
    (sandbox,) = await runs.stage.sandboxes()
    assert sandbox["state"] == "started"
    assert list(await runs.refs()) == MAIN_ONLY
    comments = await runs.comments(number)
    assert len(comments) == 1
    assert "Stopped" in comments[0]["body"]


async def test_the_limits_hold_while_the_operator_is_away(runs: RunStage) -> None:
    # R75
    await runs.start_operator()
    silent, busy = ("write a.txt a", "stall 100"), ("write a.txt a", "forever 0.2")
    asked: dict[str, tuple[tuple[str, ...], dict[str, str], tuple[str, str]]] = {
        "inactivity": (
            silent,
            {"inactivity": "3s", "agent": "60s"},
            ("TimedOut", "InactivityTimeout"),
        ),
        "agent": (busy, {"inactivity": "3s", "agent": "4s"}, ("TimedOut", "AgentTimeout")),
        "run": (
            busy,
            {"inactivity": "3s", "agent": "9s", "run": "9s"},
            ("TimedOut", "RunTimeout"),
        ),
        # It is done while nobody looks.
        "done": (("write a.txt a", "tick 0.5 4 working"), {}, ("Succeeded", "")),
    }
    for name, (steps, limits, _) in asked.items():
        await runs.run_issue(*steps, name=name, run={"limits": limits})
    for name in asked:
        await runs.until_agent_runs(name)
    await kill_operator(runs)

    async def dead() -> bool:
        return not await runs.processes()

    await runs.stage.until(dead, "the supervisors to end the agents")
    await runs.start_operator()
    for name, (_, _, expected) in asked.items():
        run = await runs.until_finished(name)
        assert (run["outcome"], run.get("reason", "")) == expected, name


async def test_a_wrong_model_key_ends_the_run_at_once(runs: RunStage) -> None:
    await runs.start_operator()
    await runs.run_issue("api 401", "write a.txt a")
    run = await runs.until_finished()
    assert (run["outcome"], run["reason"]) == ("Failed", "AgentUnauthorized")


async def warnings(runs: RunStage, name: str) -> list[str]:
    """Return the Events that warned of the end of a run."""
    return [each for each in await runs.warnings(name) if each == "DeadlineNear"]
