"""`make bench`: measures the operator against a baseline and its goals.

Writes `results.json` and docs/performance.md with its plots. With `--quick` everything is small
and nothing is written: for trying a change, not for judging it.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

import goals
import life
import live_runs
import load
import plots
import report
import run_times
import run_world
from cluster import BenchError, Cluster, running_cluster
from fleet import NAMESPACE, Etcd
from meters import OtherLoad
from stage import Stage

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
_NAMESPACES = (
    NAMESPACE,
    life.NAMESPACE,
    *life.TAKEOVERS,
    run_world.NAMESPACE,
    live_runs.NAMESPACE,
)
SCENARIOS = ("load", "burst", "life", "takeover", "runs", "live", "webhook", "simulator")


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    sizes: tuple[int, ...] = (1000, 3000, 10_000)
    rounds: int = 3
    steady_seconds: float = 10.0
    ticks: int = 3
    burst: int = 1000
    lives: int = 10
    harms: int = 6
    kills: int = 10
    runs: int = 10
    overdue: int = 3
    stops: int = 12
    live_runs: int = 200
    live_seconds: float = 20.0
    deliveries: int = 4000


QUICK = Plan(
    sizes=(300,),
    rounds=1,
    steady_seconds=3,
    ticks=1,
    burst=100,
    lives=2,
    harms=1,
    kills=1,
    runs=1,
    overdue=1,
    stops=2,
    live_runs=20,
    live_seconds=6,
    deliveries=800,
)


@dataclass(frozen=True)
class Times:
    """How long a round takes: the smaller fleets, which only show the growth, get half of it."""

    steady: float
    warm_up: float
    settle: bool

    @classmethod
    def of(cls, plan: Plan, *, largest: bool) -> Times:
        """Return the times of a round with the largest fleet, or with a smaller one."""
        share = 1.0 if largest else 0.5
        return cls(plan.steady_seconds * share, 2.0 * share, settle=largest)


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, one round, nothing written.")
@click.option("--only", type=click.Choice(SCENARIOS), multiple=True, help="Only these scenarios.")
@click.option("--json", "target", type=click.Path(path_type=Path), help="Measurements go there.")
def main(quick: bool, only: tuple[str, ...], target: Path | None) -> None:
    """Measure, print the table, and say in the exit code whether all goals are met."""
    wanted = only or SCENARIOS
    try:
        measured = uvloop.run(_measure(QUICK if quick else Plan(), wanted))
    except BenchError as error:
        raise click.ClickException(str(error)) from error
    rows = goals.rows(measured)
    report.show(rows)
    measured["table"] = [row.to_json() for row in rows]
    official = not quick and wanted == SCENARIOS
    if target or official:
        (target or RESULTS).write_text(json.dumps(measured, indent=1) + "\n")
    if official and not target:
        report.write(measured, rows)
        if not plots.draw(measured, report.DOCS):
            _say("the plots stay as they were: matplotlib is not installed")
    sys.exit(any(row.met is False for row in rows))


async def _measure(plan: Plan, wanted: Sequence[str]) -> dict[str, Any]:
    measured: dict[str, Any] = {"machine": _machine(), "plan": plan.__dict__}
    began, others = time.monotonic(), OtherLoad()
    with tempfile.TemporaryDirectory(prefix="issuesandbox-bench-") as folder:
        async with running_cluster(Path(folder), *_NAMESPACES) as cluster, _stage(cluster) as stage:
            if "life" in wanted:
                measured |= await _happy_life(cluster, plan)
            # Mostly waiting for limits, ticks and leases: it waits side by side. What is compared
            # with a script that knows no cluster comes first, while there is little in it.
            timed = asyncio.Event()
            for found in await asyncio.gather(
                _takeover(stage, plan, wanted, timed),
                _waiting(cluster, plan, wanted, Path(folder), timed),
            ):
                measured |= found
            if "burst" in wanted or "load" in wanted:
                measured |= await _load(stage, plan, wanted)
            if "live" in wanted:
                _say(f"{plan.live_runs} runs at once")
                counts = (plan.live_runs, plan.live_seconds)
                measured["live_runs"] = await live_runs.live_runs(stage, *counts)
        measured["machine"]["other_load_cores"] = others.cores()
    if "webhook" in wanted:
        _say("the webhook adapter")
        measured["webhook"] = _alone("webhook.py", "--count", str(plan.deliveries))
    if "simulator" in wanted:
        _say("the Daytona simulator itself")
        measured["daytona_simulator"] = _alone("daytona_simulator.py")
    measured["machine"]["load_average_after"] = os.getloadavg()[0]
    measured["seconds"] = time.monotonic() - began
    return measured


@asynccontextmanager
async def _stage(cluster: Cluster) -> AsyncIterator[Stage]:
    stub = cluster.programs.stub()
    try:
        await cluster.until_up(f"{stub.url}/_bench/log")
        yield Stage(cluster, stub, Etcd(cluster.http, cluster.etcd_address()))
    finally:
        await stub.child.stop()


async def _load(stage: Stage, plan: Plan, wanted: Sequence[str]) -> dict[str, Any]:
    sizes: dict[str, Any] = {}
    burst: dict[str, list[load.Figures]] = {"operator": [], "baseline": []}
    for size in plan.sizes if "load" in wanted else plan.sizes[:1]:
        await stage.grow_to(size)
        found = sizes[str(size)] = {"operator": _empty(), "baseline": _empty()}
        for turn in range(plan.rounds):
            _say(f"{size} resources, round {turn + 1} of {plan.rounds}")
            for name in ("baseline", "operator"):
                with_burst = burst[name] if size == plan.sizes[0] and "burst" in wanted else None
                times = Times.of(plan, largest=size == plan.sizes[-1])
                await _round(stage, name, times, found[name], (with_burst, plan.burst))
        _say(f"{size} resources, idle")
        found["operator"]["idle"] = await _idle(stage, plan, largest=size == plan.sizes[-1])
    return {"sizes": sizes, "burst": burst, "empty": stage.empty}


async def _baseline_by_hand(stage: Stage, times: Times) -> load.Figures:
    """Measure what nobody announced with a baseline that does so first, as the operator has to."""
    async with stage.baseline(announce=True) as program:
        await load.start(stage, program)
        return await load.steady(stage, times.steady / 2, times.warm_up, announced=False)


async def _round(
    stage: Stage,
    name: str,
    times: Times,
    found: dict[str, Any],
    burst: tuple[list[load.Figures] | None, int],
) -> None:
    if times.settle and name == "baseline":
        found["by_hand"].append(await _baseline_by_hand(stage, times))
    async with getattr(stage, name)() as program:
        found["start"].append(await load.start(stage, program, settle=times.settle))
        settled_at = time.monotonic() + load.TICK
        if name == "operator":
            program.toggle_probes()
        found["steady"].append(await load.steady(stage, times.steady, times.warm_up))
        if times.settle and name == "operator":
            await stage.until_quiet(program)
            by_hand = await load.steady(stage, times.steady / 2, times.warm_up, announced=False)
            found["by_hand"].append(by_hand)
        bursts, count = burst
        if bursts is not None:
            if name == "operator":
                # The first passes over the fleet are no part of what a burst costs.
                await asyncio.sleep(settled_at - time.monotonic())
            await stage.until_quiet(program)
            bursts.append(await load.burst(stage, program, count))


async def _idle(stage: Stage, plan: Plan, *, largest: bool) -> load.Figures:
    """Measure a fleet at rest: the largest one closely, the others for the growth."""
    async with stage.operator() as program:
        await stage.cluster.until_ready(program)
        program.toggle_probes()
        if not largest:
            return await load.idle(stage, program, ticks=1)
        # First, so that the time at rest has renewals in it: they come a minute after the start.
        delays = await load.tick_delays(stage, program, max(1, plan.ticks - 1))
        found = await load.idle(stage, program, plan.ticks, after_a_tick=True)
        return {**found, "tick_delays": delays}


async def _happy_life(cluster: Cluster, plan: Plan) -> dict[str, Any]:
    """Count the requests of lives; nobody else may send any meanwhile."""
    _say("happy life")
    async with life.living(cluster) as world:
        return {"happy_life": await life.happy_life(world, plan.lives)}


async def _takeover(
    stage: Stage, plan: Plan, wanted: Sequence[str], timed: asyncio.Event
) -> dict[str, Any]:
    if "takeover" not in wanted:
        return {}
    await timed.wait()
    _say("replicas killed")
    found = await life.takeover(stage, plan.kills)
    # The fleet's own sandboxes have to be the first.
    await stage.forget()
    return {"takeover": found}


async def _waiting(
    cluster: Cluster, plan: Plan, wanted: Sequence[str], folder: Path, timed: asyncio.Event
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "runs" in wanted:
        found |= await _runs(cluster, plan, folder, timed)
    timed.set()
    if "life" in wanted:
        _say("harm behind the operator's back")
        async with life.living(cluster) as world:
            found["behind_our_back"] = await life.behind_our_back(world, plan.harms)
    return found


async def _runs(cluster: Cluster, plan: Plan, folder: Path, timed: asyncio.Event) -> dict[str, Any]:
    async with run_world.running_world(cluster, folder) as world:
        # With nothing beside it: its times are short, and nobody else's writes may be counted.
        _say("from trigger to pull request")
        found = {"to_pull_request": await run_times.to_pull_request(world, plan.runs)}
        timed.set()
        _say("runs over their limits")
        found["limits"] = await run_times.limits(world, plan.overdue)
        _say("runs that are stopped")
        found["stops"] = await run_times.stops(world, plan.stops)
        return found


def _alone(program: str, *options: str) -> dict[str, Any]:
    """Run a benchmark that needs no cluster; it prints one JSON object."""
    run = subprocess.run(
        [sys.executable, "-P", str(HERE / program), *options],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise BenchError(f"{program} could not measure; see above")
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def _machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load_average_before": os.getloadavg()[0],
    }


def _empty() -> dict[str, Any]:
    return {"start": [], "steady": [], "by_hand": []}


def _say(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


if __name__ == "__main__":
    main()
