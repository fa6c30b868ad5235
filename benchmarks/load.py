"""The scenarios under load: start, steady creates, a burst, and a fleet that just is there."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cluster import until
from issuesandbox.domain.timings import Timings
from meters import percentile
from programs import Program
from stage import Stage

_RATE = 45.0
_AT_ONCE = 50
TICK = Timings().fleet_tick.total_seconds()
_TICK_LIMIT = 20.0
_SAMPLE_SECONDS = 0.02
_SCRAPES = 25
_FIRST_PASSES_OVER = 0.2

Figures = dict[str, Any]


async def start(stage: Stage, program: Program, *, settle: bool = True) -> Figures:
    """Measure a start with the whole fleet present, until the program has nothing left to do.

    Where only the growth matters, there is no need to wait for the last passes.
    """
    ((early, body),) = stage.next_bodies(1)
    await stage.create(body)
    if program.child.name == "operator":
        await stage.cluster.until_ready(program)
    else:
        await stage.served(early)
    ready_at, cpu_ready, held = time.monotonic(), program.cpu(), program.memory()
    ((late, body),) = stage.next_bodies(1)
    sent = await stage.create(body)
    served = await stage.served(late)
    if program.child.name == "operator" and settle:
        # The first passes of those who are settled are spread over a tick.
        await asyncio.sleep(TICK)
    # Renewals come from the start on, and the probes cost something themselves.
    cpu_quiet = await stage.until_quiet(program, share=_FIRST_PASSES_OVER)
    delays = program.delays_between(program.started_at, time.monotonic())
    return {
        "ready_s": ready_at - program.started_at,
        "cpu_ready_s": cpu_ready,
        "cpu_quiet_s": cpu_quiet,
        "first_served_s": await stage.served(early) - program.started_at,
        "new_served_ms": (served - sent) * 1000,
        "rss_mib": held.now,
        **_longest(delays),
    }


async def steady(
    stage: Stage, seconds: float, warm_up: float = 2.0, *, announced: bool = True
) -> Figures:
    """Create resources at a steady rate; measure from each request to its POST at Daytona."""
    await _create_steadily(stage, warm_up, announced=announced)
    sent = await _create_steadily(stage, seconds, announced=announced)
    return _latency(sent, await _all_served(stage, sent))


async def _create_steadily(stage: Stage, seconds: float, *, announced: bool) -> dict[str, float]:
    sent: dict[str, float] = {}

    async def create(name: str, body: bytes) -> None:
        sent[name] = await stage.create(body)

    bodies = stage.next_bodies(int(_RATE * seconds), announced=announced)
    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for turn, (name, body) in enumerate(bodies):
            await asyncio.sleep(began + turn / _RATE - time.monotonic())
            tasks.create_task(create(name, body))
    return sent


async def burst(stage: Stage, program: Program, count: int) -> Figures:
    """Create many resources as fast as the API server takes them."""
    sent: dict[str, float] = {}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def create(name: str, body: bytes) -> None:
        async with turns:
            sent[name] = await stage.create(body)

    bodies = stage.next_bodies(count)
    before = program.cpu()
    await asyncio.gather(*(create(name, body) for name, body in bodies))
    created = time.monotonic() - min(sent.values())
    served = await _all_served(stage, sent)
    used = await stage.until_quiet(program) - before
    return {
        **_latency(sent, served),
        "created_s": created,
        "last_post_s": max(served.values()) - min(sent.values()),
        "cpu_ms_per_resource": used / count * 1000,
    }


async def _all_served(stage: Stage, sent: dict[str, float]) -> dict[str, float]:
    async def served() -> dict[str, float] | None:
        creates = (await stage.seen()).creates
        return creates if creates.keys() >= sent.keys() else None

    creates = await until(served, f"{len(sent)} creates at Daytona", 120, poll=0.25)
    assert creates is not None
    return {name: creates[name] for name in sent}


def _latency(sent: dict[str, float], served: dict[str, float]) -> Figures:
    times = [(served[name] - at) * 1000 for name, at in sent.items()]
    return {
        "p50_ms": percentile(times, 50),
        "p99_ms": percentile(times, 99),
        "max_ms": max(times),
        "count": len(times),
    }


async def idle(
    stage: Stage, program: Program, ticks: int, *, after_a_tick: bool = False
) -> Figures:
    """Leave a settled fleet alone for some ticks, from one to another, and see what that costs."""
    await stage.until_quiet(program)
    if not after_a_tick:
        await _next_tick(stage)
    before, asked = await stage.cluster.requests(), (await stage.seen()).calls
    samples = [(time.monotonic(), program.cpu())]
    end = await _sample_ticks(stage, program, ticks, samples)
    requests = await stage.cluster.requests() - before
    seen = await stage.seen()
    held = program.memory()
    (began, cpu), (ended, last) = samples[0], samples[-1]
    return {
        "seconds": ended - began,
        "cpu_share": (last - cpu) / (ended - began),
        "tick_cpu_s": _tick_costs(samples, seen.pages, began, end),
        "rss_mib": held.now,
        "peak_mib": held.peak,
        "kubernetes": dict(_of_operators(requests)),
        "daytona": dict(seen.calls - asked),
        **await _scrapes(stage, program),
    }


async def _scrapes(stage: Stage, program: Program) -> Figures:
    """Read the metrics some times, as Prometheus would."""
    sizes, times = [], []
    for _ in range(_SCRAPES):
        began = time.monotonic()
        async with stage.cluster.http.get(f"{program.url}/metrics") as answer:
            sizes.append(len(await answer.read()) / 1000)
        times.append((time.monotonic() - began) * 1000)
        await asyncio.sleep(_SAMPLE_SECONDS)
    return {"metrics_kb": max(sizes), "metrics_ms": sorted(times)[len(times) // 2]}


async def tick_delays(stage: Stage, program: Program, ticks: int) -> Figures:
    """Measure for how long fleet ticks keep the loops from running; the probes must be off."""
    await _next_tick(stage)
    program.toggle_probes()
    began = time.monotonic()
    for _ in range(ticks):
        await _next_tick(stage)
    await asyncio.sleep(2)
    program.toggle_probes()
    return _longest(program.delays_between(began, time.monotonic()))


def _longest(delays: Sequence[tuple[float, float]]) -> Figures:
    return {
        "block_ms": 1000 * max((late for late, _ in delays), default=0.0),
        "block_own_cpu_ms": 1000 * max((min(both) for both in delays), default=0.0),
    }


async def _next_tick(stage: Stage) -> None:
    known = len((await stage.seen()).ticks)

    async def another() -> bool:
        return len((await stage.seen()).ticks) > known

    await until(another, "a fleet tick", _TICK_LIMIT, poll=0.25)
    await asyncio.sleep(2)


async def _sample_ticks(
    stage: Stage, program: Program, ticks: int, samples: list[tuple[float, float]]
) -> float:
    """Note the CPU used every few milliseconds until so many ticks are over."""
    sampling = asyncio.create_task(_sample(program, samples))
    for _ in range(ticks):
        await _next_tick(stage)
    sampling.cancel()
    return time.monotonic()


async def _sample(program: Program, samples: list[tuple[float, float]]) -> None:
    while True:
        await asyncio.sleep(_SAMPLE_SECONDS)
        samples.append((time.monotonic(), program.cpu()))


def _tick_costs(
    samples: Sequence[tuple[float, float]],
    pages: Sequence[tuple[float, bool]],
    began: float,
    ended: float,
) -> list[float]:
    """Return the CPU seconds of each tick, from its first page until shortly after its last."""
    starts = [at for at, first in pages if first and began <= at <= ended]
    costs = []
    for at, following in zip(starts, [*starts[1:], ended], strict=True):
        last = max(page for page, _ in pages if at <= page < following)
        # Soon after it, the renewals that go on all the time would be most of it.
        costs.append(_cpu_at(samples, last + 0.3) - _cpu_at(samples, at - 0.05))
    return costs


def _cpu_at(samples: Sequence[tuple[float, float]], moment: float) -> float:
    return max((cpu for at, cpu in samples if at <= moment), default=samples[0][1])


def _of_operators(requests: Counter[str]) -> Counter[str]:
    """Drop what only the API server asks itself, and what the benchmark asks."""
    ours = ("issuesandboxes", "events", "leases", "configmaps")
    return Counter(
        {name: count for name, count in requests.items() if name.split()[1].split("/")[0] in ours}
    )
