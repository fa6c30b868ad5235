"""Each state that Daytona can show, met by those who want their sandbox stopped or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from operator_stage import Stage

from issuesandbox.domain.states import Sight, sight_of_state

BUSY = ("pending-build", "building-snapshot", "pulling-snapshot", "creating", "unknown")
BUSY += ("starting", "restoring", "stopping", "resizing")
RESTING = ("stopped", "paused", "archived")
BROKEN = ("error", "error-recoverable", "build-failed")
ALL = (*BUSY, *RESTING, *BROKEN, "started", "destroying")
# What was told to end elsewhere; all others were on their way to run.
_WISH = {"stopping": "stopped", "stopped": "stopped", "paused": "paused", "archived": "archived"}


async def all_stopped(stage: Stage) -> dict[str, str]:
    """Return the sandboxes of resources that want them stopped, one for each state."""
    instant = dict.fromkeys(("creating", "starting", "stopping", "destroying"), 0.01)
    await stage.admin("PATCH", "settings", {"timings": instant})
    await stage.start_operator()
    await asyncio.gather(*(stage.apply(name, number) for number, name in enumerate(ALL, 1)))
    for name in ALL:
        await stage.until_phase(name, "Idle")
    await asyncio.gather(
        *(stage.patch(name, {"spec": {"desiredState": "Stopped"}}) for name in ALL)
    )
    ids = {}
    for name in ALL:
        ids[name] = str((await stage.until_phase(name, "Stopped"))["sandbox"]["id"])
    return ids


def state_of(name: str) -> str:
    return name.removesuffix("-recoverable").replace("-", "_")


async def put(stage: Stage, sandbox: str, name: str) -> None:
    """Put a sandbox into the state that its resource is named after."""
    placed: dict[str, Any] = {"state": state_of(name), "recoverable": name.endswith("-recoverable")}
    if name in BUSY or name in RESTING:
        placed["desired"] = _WISH.get(name, "started")
    await stage.admin("POST", f"sandboxes/{sandbox}/state", placed)


async def until_seen(stage: Stage, states: Mapping[str, str]) -> None:
    async def seen() -> bool:
        shown = {name: (await stage.status(name))["sandbox"].get("state") for name in states}
        return shown == states

    await stage.until(seen, "the states to be seen")


async def sent(stage: Stage, verb: str, since: int) -> list[str]:
    """Return the sandboxes for which this was asked since then, by whomever."""
    calls = await stage.calls(f"sandbox.{verb}")
    return [each["sandbox"] for each in calls if each["seq"] > since]


async def test_of_those_that_are_wanted_stopped_only_what_runs_is_stopped(stage: Stage) -> None:
    # R6, R7, R8
    ids = await all_stopped(stage)
    began = await stage.happenings()
    for name, sandbox in ids.items():
        if name != "started":
            await put(stage, sandbox, name)
    # Daytona tells of one that it knows nothing of yet as of one that is being created.
    shown = {name: state_of(name) for name in ALL if name != "started"} | {"unknown": "creating"}
    await until_seen(stage, shown)
    await put(stage, ids["started"], "started")

    async def stopped_again() -> bool:
        return ids["started"] in await sent(stage, "stop", began)

    await stage.until(stopped_again, "what runs to be stopped")
    # Whatever comes to run in the end is stopped, and until then nothing was asked of it.
    changes = ("create", "start", "stop", "recover", "delete", "archive")
    asked = {verb: set(await sent(stage, verb, began)) for verb in changes}
    nothing: dict[str, set[str]] = {verb: set() for verb in changes}
    assert asked == {**nothing, "stop": {ids["started"]}}
    for name in BUSY:
        await put(stage, ids[name], "started")
    for name in BUSY:
        await stage.until_phase(name, "Stopped")
    asked = {verb: set(await sent(stage, verb, began)) for verb in changes}
    assert asked == {**nothing, "stop": {ids[name] for name in (*BUSY, "started")}}


async def test_of_those_that_are_deleted_each_is_deleted_as_it_is(stage: Stage) -> None:
    # R7, R8
    ids = await all_stopped(stage)
    began = await stage.happenings()
    for name, sandbox in ids.items():
        await put(stage, sandbox, name)
    await asyncio.gather(*(stage.delete(name) for name in ALL))
    ending = {name for name in ALL if sight_of_state(name) is Sight.DESTROYING}
    assert ending == {"destroying"}

    async def all_asked() -> bool:
        asked = set(await sent(stage, "delete", began))
        return asked == {ids[name] for name in ALL if name not in ending}

    await stage.until(all_asked, "each to be deleted")
    # Daytona refuses what is on its way; once that is over, they go.
    for each in await stage.sandboxes():
        await put(stage, each["id"], "started")
    await stage.admin("POST", f"sandboxes/{ids['destroying']}/destroy")
    for name in ALL:
        await stage.until_gone(name)
    assert await stage.sandboxes() == []
    assert not await sent(stage, "create", began)
    assert not await sent(stage, "start", began)
