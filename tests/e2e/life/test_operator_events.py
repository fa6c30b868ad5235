"""State events bring a pass forward; without them the next tick does the same, only later."""

from __future__ import annotations

import time
from typing import Any

from operator_stage import Stage

# So long that nothing in these tests can have been noticed by a tick.
FAR = {"fleet_tick": "60s", "fleet_stale": "300s"}


async def idle(stage: Stage, **settings: str) -> str:
    """Start an operator and return the sandbox of a resource that has come to rest."""
    operator = await stage.start_operator(**settings)
    await stage.apply("one")
    status = await stage.until_phase("one", "Idle")
    assert "state events are off" not in operator.log.read_text()
    return str(status["sandbox"]["id"])


async def started_again(stage: Stage) -> bool:
    status = await stage.status("one")
    return bool(status["counters"].get("starts")) and status["phase"] == "Idle"


async def noticed(stage: Stage) -> bool:
    return bool(await stage.calls("sandbox.start"))


async def test_an_event_is_noticed_long_before_the_next_tick(stage: Stage) -> None:
    # R4
    sandbox = await idle(stage, ISSUESANDBOX_TIMINGS=stage.timings(**FAR))
    lists = len(await stage.calls("sandbox.list"))
    await stage.admin("POST", f"sandboxes/{sandbox}/stop", {})
    began = time.monotonic()
    await stage.until(lambda: noticed(stage), "the start", 10)
    print(f"noticed after {time.monotonic() - began:.2f} s")
    await stage.until(lambda: started_again(stage), "the sandbox to run again")
    assert len(await stage.calls("sandbox.list")) == lists, "no tick took part in this"
    assert len(await stage.calls("sandbox.create")) == 1


async def test_a_lost_event_is_made_up_for_by_the_tick(stage: Stage) -> None:
    sandbox = await idle(stage, ISSUESANDBOX_TIMINGS=stage.timings(fleet_tick="3s"))
    await stage.fault(fault="lost_event", kind="event")
    lists = len(await stage.calls("sandbox.list"))
    await stage.admin("POST", f"sandboxes/{sandbox}/stop", {})
    await stage.until(lambda: noticed(stage), "the start")
    assert len(await stage.calls("sandbox.list")) > lists
    await stage.clear_faults()
    await stage.until(lambda: started_again(stage), "the sandbox to run again")


async def test_without_the_feed_the_ticks_go_on(stage: Stage) -> None:
    sandbox = await idle(stage, ISSUESANDBOX_STATE_EVENTS="false")
    await stage.admin("POST", f"sandboxes/{sandbox}/stop", {})
    await stage.until(lambda: started_again(stage), "the sandbox to run again")


async def test_what_an_event_says_is_never_believed_without_a_look(stage: Stage) -> None:
    sandbox = await idle(stage, ISSUESANDBOX_TIMINGS=stage.timings(**FAR))
    await stage.fault(kind="sandbox.get", fault="status", status=503)
    gets = len(await stage.calls("sandbox.get"))
    await stage.admin("POST", f"sandboxes/{sandbox}/stop", {})

    async def asked() -> bool:
        return len(await stage.calls("sandbox.get")) > gets

    await stage.until(asked, "the look", 10)

    async def told() -> bool:
        return (await stage.condition("one", "Synced")).get("reason") == "DaytonaUnreachable"

    await stage.until(told, "the condition")
    assert await stage.calls("sandbox.start") == []
    await stage.clear_faults()
    await stage.until(lambda: started_again(stage), "the sandbox to run again")


async def test_a_flood_of_events_costs_a_few_calls(stage: Stage) -> None:
    sandbox = await idle(stage, ISSUESANDBOX_TIMINGS=stage.timings(**FAR))
    gets = len(await stage.calls("sandbox.get"))

    async def states(*names: str) -> None:
        for name in names:
            body: dict[str, Any] = {"state": name, "desired": "started"}
            await stage.admin("POST", f"sandboxes/{sandbox}/state", body)

    began = time.monotonic()
    for _ in range(150):
        await states("resizing", "started")
    seconds = time.monotonic() - began
    await stage.until_phase("one", "Idle")
    # Two passes a second by events, and those that a transition asks for itself.
    per_second = 2 + 10
    assert len(await stage.calls("sandbox.get")) - gets <= per_second * (seconds + 1)
    assert [each for each in await stage.journal() if each.get("effect") == "stopped"] == []
