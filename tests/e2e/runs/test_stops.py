"""A stop at many instants of a run: nothing is pushed that was not decided before, all is dead.

Thirty instants, spread over every window of a run; `ISSUESANDBOX_STOPS` sets another number.
That no push is decided by a write that is younger than the stop, the checker proves from the
resourceVersions. The test prints the times it measured.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from run_stage import QUICK, RunStage
from run_witness import PUSH, fault, opened, pushes

SEED = 7_041
STOPS = int(os.environ.get("ISSUESANDBOX_STOPS", "30"))
SIDE_BY_SIDE = 8
PATIENCE = 240.0
# Up to how many seconds after the beginning of a window the stop comes.
SPREAD = {"Queued": 0.0, "Preparing": 0.6, "Executing": 1.5}
SANDBOXES = 4
WINDOWS = (
    "Queued",
    "Creating",
    "Booting",
    "Preparing",
    "Executing",
    "Collecting",
    "Publishing",
    "Finished",
)
# What is destroyed was stopped before, or its processes are seen.
NOT_RUNNING = frozenset({None, "stopped", "archived", "destroying", "destroyed", "hidden"})
# Of the agent and of the sandbox, in seconds.
DEAD_WITHIN, STILL_WITHIN = 5.0, 30.0


@dataclass
class Sight:
    """What Daytona showed at one moment."""

    at: float
    states: dict[str, str]
    busy: set[str]


@dataclass
class Watcher:
    """Looks at every sandbox all the time."""

    runs: RunStage
    sights: list[Sight] = field(default_factory=list)

    async def look(self) -> None:
        while True:
            at = time.monotonic()
            rows = await self.runs.stage.admin("GET", "sandboxes")
            processes = await self.runs.stage.admin("GET", "processes")
            busy = {sandbox for sandbox, pids in processes.items() if pids}
            self.sights.append(Sight(at, {each["id"]: each["state"] for each in rows}, busy))
            await asyncio.sleep(0.1)

    def dead_after(self, sandbox: str | None, asked: float) -> float:
        """Return how long after `asked` nothing ran in a sandbox any more."""
        last = [each.at for each in self.sights if sandbox in each.busy]
        return max(0.0, max(last, default=asked) - asked)

    def still_after(self, sandbox: str | None, asked: float) -> float:
        """Return how long after `asked` a sandbox was last seen in any state that may run."""
        last = [each.at for each in self.sights if self._may_run(each, sandbox)]
        return max(0.0, max(last, default=asked) - asked)

    def _may_run(self, sight: Sight, sandbox: str | None) -> bool:
        return sandbox is not None and sight.states.get(sandbox) not in NOT_RUNNING


@dataclass
class Stop:
    """One stop: when it came, and how the run ended."""

    window: str
    seen: str
    asked: float
    number: int
    sandbox: str | None
    run: dict[str, Any]


@asynccontextmanager
async def watched(runs: RunStage) -> AsyncIterator[Watcher]:
    watcher = Watcher(runs)
    task = asyncio.create_task(watcher.look())
    try:
        yield watcher
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _is_in(window: str, status: dict[str, Any], body: dict[str, Any]) -> bool:
    run, sandbox = status.get("run", {}), status.get("sandbox", {})
    if window == "Queued":
        return status.get("phase") == "Queued" or bool(sandbox)
    if window == "Creating":
        announced = "issuesandbox.dev/first-create" in body["metadata"].get("annotations", {})
        return announced or bool(sandbox)
    if window == "Booting":
        return bool(sandbox.get("id"))
    return run.get("phase") == window or run.get("phase") == "Finished"


async def stop_in(runs: RunStage, name: str, window: str, chance: random.Random) -> Stop:
    """Ask for a run, and for its end at some instant of a window."""
    number = await runs.run_issue(
        "write a.txt a", "tick 0.2 4 working", "bash sleep 0.3", "say Done.", name=name
    )

    async def there() -> bool:
        body = await runs.stage.get(name)
        return _is_in(window, body.get("status", {}), body)

    await runs.stage.until(there, f"{name} to be in window {window}", PATIENCE)
    await asyncio.sleep(chance.uniform(0, SPREAD.get(window, 0.25)))
    seen = (await runs.stage.phase(name)) or "Pending"
    asked = time.monotonic()
    await runs.stage.patch(name, {"spec": {"desiredState": "Stopped"}})

    async def over() -> bool:
        status = await runs.stage.status(name)
        unborn = "run" not in status and status.get("phase") == "Stopped"
        return unborn or status.get("run", {}).get("phase") == "Finished"

    await runs.stage.until(over, f"{name} to be over", PATIENCE)
    status = await runs.stage.status(name)
    sandbox = status.get("sandbox", {}).get("id")
    return Stop(window, seen, asked, number, sandbox, status.get("run", {}))


async def check(runs: RunStage, stop: Stop) -> str:
    """Check what became of a run that was stopped; return that in a word."""
    run, pulls = stop.run, await opened(runs)
    branch = run.get("branch") or f"claude-fix-issue-{stop.number}"
    sent = await pushes(runs, branch)
    if run and run["outcome"] == "Succeeded":
        assert len(sent) == 1
        assert run["pullRequest"]["number"] in pulls
        return "Succeeded"
    if run.get("reason") == "TooLateToStop":
        assert run["publish"]["commit"] == sent[0]["new"]
        assert len(sent) == 1
        assert "pullRequest" not in run
        return "TooLateToStop"
    assert (run.get("outcome", "Cancelled"), run.get("reason", "StopRequested")) == (
        "Cancelled",
        "StopRequested",
    )
    assert "publish" not in run
    assert sent == []
    return "Cancelled"


def shown(what: str, seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p50, p95 = (ordered[min(len(ordered) - 1, int(len(ordered) * part))] for part in (0.5, 0.95))
    return f"{what}: p50 {p50:.2f} s, p95 {p95:.2f} s, max {ordered[-1]:.2f} s"


@pytest.mark.timeout(3600)
async def test_a_stop_at_any_instant_ends_all_and_publishes_nothing_more(
    runs: RunStage, capsys: pytest.CaptureFixture[str]
) -> None:
    # R49, R51, R54-R58, R124
    chance = random.Random(SEED)
    # Otherwise nobody would see that something is being collected.
    timings = runs.stage.timings(**QUICK, quick_collection="1ms")
    settings = {"ISSUESANDBOX_MAX_SANDBOXES": str(SANDBOXES), "ISSUESANDBOX_TIMINGS": timings}
    await runs.start_operator(**settings)
    # So that a stop can come while the push is on its way.
    await fault(runs, "slow", PUSH, seconds=0.5, count=None)
    await runs.stage.admin("PATCH", "settings", {"timings": {"creating": 0.8}})
    windows = [WINDOWS[index % len(WINDOWS)] for index in range(STOPS)]
    chance.shuffle(windows)
    places = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(index: int, window: str) -> Stop:
        async with places:
            own = random.Random(SEED + index)
            stop = await stop_in(runs, f"run-{index}", window, own)
            # Stopped sandboxes are kept, so make room for the next.
            await asyncio.sleep(0.3)
            await runs.stage.delete(f"run-{index}")
            return stop

    async with watched(runs) as watcher:
        stops = await asyncio.gather(*(one(*each) for each in enumerate(windows)))
    ends = Counter([await check(runs, each) for each in stops])
    dead = [watcher.dead_after(each.sandbox, each.asked) for each in stops]
    still = [watcher.still_after(each.sandbox, each.asked) for each in stops]
    phases = Counter(each.seen for each in stops)
    with capsys.disabled():
        print(f"\n{STOPS} stops: {dict(ends)}, came in {dict(phases)}")
        print(shown("nothing runs in the sandbox", dead))
        print(shown("the sandbox is not running", still))
    assert max(dead) < DEAD_WITHIN
    assert max(still) < STILL_WITHIN
    assert len(phases) >= 5, "the stops came in too few windows"
    assert {"Cancelled", "Succeeded"} <= set(ends)
