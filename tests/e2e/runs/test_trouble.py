"""Trouble inside and around the sandbox of a run: the run goes on, or ends with its work saved."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from run_stage import RunStage
from run_witness import PUSH, fault, kill_operator
from sandbox_sight import home_of

WORK = ("write a.txt a", "tick 0.5 12 working", "say Done.")
Trouble = Callable[[RunStage, str], Awaitable[None]]


async def daemon_restarts(runs: RunStage, sandbox: str) -> None:
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/restart-daemon", {})


async def toolbox_goes_down(runs: RunStage, sandbox: str) -> None:
    down = {"fault": "toolbox_down", "kind": "toolbox.*", "sandbox": sandbox, "count": None}
    fault = await runs.stage.admin("POST", "faults", down)
    await asyncio.sleep(2)
    await runs.stage.admin("DELETE", f"faults/{fault['id']}")


async def somebody_stops_it(runs: RunStage, sandbox: str) -> None:
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/stop", {})


async def it_fails_recoverably(runs: RunStage, sandbox: str) -> None:
    state = {"state": "error", "reason": "disk", "recoverable": True}
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/state", state)


async def it_fails_for_good(runs: RunStage, sandbox: str) -> None:
    state = {"state": "error", "reason": "gone", "recoverable": False}
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/state", state)


async def it_fails_for_good_but_answers(runs: RunStage, sandbox: str) -> None:
    state = {"state": "error", "reason": "gone", "recoverable": False, "alive": True}
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/state", state)


async def it_fails_for_good_and_is_mute(runs: RunStage, sandbox: str) -> None:
    down = {"fault": "toolbox_down", "kind": "toolbox.*", "sandbox": sandbox, "count": None}
    await runs.stage.admin("POST", "faults", down)
    await it_fails_for_good_but_answers(runs, sandbox)


async def it_is_destroyed(runs: RunStage, sandbox: str) -> None:
    await runs.stage.admin("POST", f"sandboxes/{sandbox}/destroy", {})


async def story(runs: RunStage, name: str, trouble: Trouble) -> dict[str, Any]:
    """Let a run get into trouble while its agent works; return how it ended."""
    await runs.run_issue(*WORK, name=name)
    await runs.until_agent_runs(name)
    home = await home_of(runs, name)

    async def worked() -> bool:
        return any(home.rglob("a.txt"))

    await runs.stage.until(worked, f"the agent of {name} to have done something")
    sandbox = (await runs.stage.status(name))["sandbox"]["id"]
    await trouble(runs, sandbox)
    return await runs.until_finished(name, seconds=90)


@pytest.mark.timeout(240)
async def test_a_run_survives_trouble_with_its_sandbox_or_ends_with_its_work_saved(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    harmless = [daemon_restarts, toolbox_goes_down]
    deadly = [somebody_stops_it, it_fails_recoverably]
    lost = [it_fails_for_good, it_fails_for_good_and_is_mute, it_is_destroyed]
    replaced = [it_fails_for_good_but_answers, *lost]
    stories = [*harmless, *deadly, *replaced]
    names = [each.__name__.replace("_", "-") for each in stories]
    ends = await asyncio.gather(
        *(story(runs, name, each) for name, each in zip(names, stories, strict=True))
    )
    by_story = dict(zip(stories, ends, strict=True))
    for each in harmless:
        run = by_story[each]
        assert (run["outcome"], run.get("recreations", 0)) == ("Succeeded", 0), each
    refs = await runs.refs()
    for each in deadly:
        # The agent died with its sandbox; what it had done lies on the disk.
        run = by_story[each]
        assert (run["outcome"], run["reason"]) == ("Failed", "SupervisorLost"), each
        assert f"refs/heads/{run['savedWork']['ref']}" in refs, each
    for each in replaced:
        run, name = by_story[each], each.__name__.replace("_", "-")
        assert (run["outcome"], run["recreations"]) == ("Succeeded", 1), each
        saved = f"refs/heads/{run.get('savedWork', {}).get('ref')}"
        # What Daytona calls broken may still hold the work.
        assert (saved in refs) is (each not in lost), each
        assert ("WorkspaceLost" in await runs.warnings(name)) is (each in lost), each


async def test_work_of_a_broken_sandbox_is_saved_though_the_operator_dies_over_it(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    await runs.run_issue(*WORK)
    await runs.until_agent_runs()
    home = await home_of(runs, "one")

    async def worked() -> bool:
        return any(home.rglob("a.txt"))

    async def killed() -> bool:
        return not await runs.processes()

    await runs.stage.until(worked, "the agent to have done something")
    await fault(runs, "slow", PUSH, seconds=5)
    sandbox = (await runs.stage.status("one"))["sandbox"]["id"]
    await it_fails_for_good_but_answers(runs, sandbox)
    await runs.stage.until(killed, "the agent to be killed for its work")
    await kill_operator(runs)
    assert (await runs.stage.status("one"))["sandbox"]["id"] == sandbox
    await runs.start_operator()
    run = await runs.until_finished(seconds=60)
    assert (run["outcome"], run["recreations"]) == ("Succeeded", 1)
    saved = [each for each in await runs.refs() if "/wip/" in each]
    assert saved == [f"refs/heads/{run['savedWork']['ref']}"]
    assert "WorkspaceLost" not in await runs.warnings()


async def test_work_is_saved_also_if_somebody_stops_the_sandbox_meanwhile(runs: RunStage) -> None:
    await runs.start_operator()
    await runs.run_issue("write a.txt a", "tick 0.3 6 working", "exit 1")
    await runs.until_agent_runs()
    sandbox = (await runs.stage.status("one"))["sandbox"]["id"]
    slow = {"fault": "slow", "kind": "toolbox.files.*", "delay": 3, "sandbox": sandbox, "count": 1}
    await runs.stage.admin("POST", "faults", slow)
    await runs.until_run("Collecting")
    await somebody_stops_it(runs, sandbox)
    run = await runs.until_finished(seconds=60)
    assert (run["outcome"], run["exitCode"]) == ("Failed", 1)
    assert f"refs/heads/{run['savedWork']['ref']}" in await runs.refs()

    async def stopped() -> bool:
        return (await runs.stage.daytona_get(sandbox))["state"] == "stopped"

    await runs.stage.until(stopped, "the sandbox, started for the work alone, to be stopped")


async def cloned_again(runs: RunStage, name: str, trouble: Trouble) -> dict[str, Any]:
    """Let the sandbox of a run get into trouble while the repository is cloned."""
    number = await runs.open_issue("write a.txt a")
    place = f"claude-issue-{number}"
    slow = {"fault": "slow", "kind": "toolbox.git.clone", "delay": 3, "sandbox": place, "count": 1}
    await runs.stage.admin("POST", "faults", slow)
    await runs.stage.apply(name, number, run={"trigger": "1"})
    await runs.until_run("Preparing", name)
    sandbox = (await runs.stage.status(name))["sandbox"]["id"]

    async def cloning() -> bool:
        calls = await runs.stage.calls("toolbox.execute")
        return any(each["sandbox"] == sandbox for each in calls)

    await runs.stage.until(cloning, "the tools to be checked")
    await trouble(runs, sandbox)
    return await runs.until_finished(name, seconds=90)


@pytest.mark.timeout(240)
async def test_a_sandbox_that_stops_or_goes_while_it_is_prepared_costs_no_run(
    runs: RunStage,
) -> None:
    await runs.start_operator()
    stories = [somebody_stops_it, it_is_destroyed]
    names = [each.__name__.replace("_", "-") for each in stories]
    ends = await asyncio.gather(
        *(cloned_again(runs, name, each) for name, each in zip(names, stories, strict=True))
    )
    assert [(each["outcome"], each.get("reason")) for each in ends] == [("Succeeded", None)] * 2
    assert [each["recreations"] for each in ends] == [0, 1]
    for name in names:
        assert "WorkspaceLost" not in await runs.warnings(name), "no agent had worked yet"


async def test_a_run_costs_one_toolbox_call_a_tick_and_few_writes(
    runs: RunStage, capsys: pytest.CaptureFixture[str]
) -> None:
    await runs.start_operator()
    await runs.run_issue(*WORK)
    await runs.until_agent_runs()
    sandbox = (await runs.stage.status("one"))["sandbox"]["id"]
    before = await runs.stage.happenings()
    await asyncio.sleep(3)
    fresh = [each for each in await runs.stage.journal() if each["seq"] > before]
    calls = [each["kind"] for each in fresh if each.get("sandbox") == sandbox and "kind" in each]
    asked = [each for each in calls if each.startswith("toolbox.")]
    run = await runs.until_finished()
    assert run["outcome"] == "Succeeded"
    writes = await writes_of(runs, "one")
    with capsys.disabled():
        print(f"\n{len(asked)} toolbox calls in 10 ticks; {writes} writes for the run")
    assert set(asked) == {"toolbox.execute"}
    assert 2 <= len(asked) <= 11
    assert writes <= 12


async def writes_of(runs: RunStage, name: str) -> int:
    """Return how often the operator wrote to a resource from its creation to the run's end."""
    recorder = runs.stage.guard.recorder
    assert recorder is not None
    history = await asyncio.to_thread(recorder.history)
    own = [each.object for each in history if is_own(runs, each.object, name)]
    phases = [each.get("status", {}).get("run", {}).get("phase") for each in own]
    # The first one is the user's own.
    return phases.index("Finished")


def is_own(runs: RunStage, body: Mapping[str, Any], name: str) -> bool:
    place = body["metadata"]
    return (place["namespace"], place["name"]) == (runs.stage.namespace, name)
