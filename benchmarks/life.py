"""The scenarios about one life: its cost in requests, and how long harm goes unnoticed.

They play against the Daytona simulator with production timings; its journal is the record.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cluster import Cluster, encode, until
from fleet import body_of
from issuesandbox.clock import SystemClock
from issuesandbox.domain.timings import Timings
from programs import Program
from stage import Stage

NAMESPACE = "life"
# Where replicas are killed: taking over is mostly waiting, so it is done in both at once.
TAKEOVERS = ("takeover-one", "takeover-two")
_TICK = Timings().fleet_tick.total_seconds()
_CLOCK = SystemClock()
# Asked once per tick or minute for all resources together, however many there are.
_SHARED = ("sandbox.list", "organization.list")
_WRITES = ("PATCH", "PUT", "POST", "APPLY")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Life:
    """An operator, the simulator, and a namespace that both know."""

    cluster: Cluster
    simulator: Program

    async def create(self, numbers: range) -> list[str]:
        """Create resources and wait until each has a running sandbox; return their names."""
        bodies = [body_of(number, namespace=NAMESPACE) for number in numbers]
        for body in bodies:
            await self.cluster.create(encode(body), NAMESPACE)
        names = [body["metadata"]["name"] for body in bodies]
        await asyncio.gather(*(self._until_ready_since(name, 0.0) for name in names))
        return names

    async def delete(self, names: list[str]) -> None:
        """Delete resources and wait until they are gone."""
        await asyncio.gather(*(self.cluster.delete(NAMESPACE, name) for name in names))
        await asyncio.gather(*(self._until_gone(name) for name in names))

    async def sandbox_of(self, name: str) -> str:
        """Return the id of a resource's sandbox."""
        resource = await self.cluster.get(NAMESPACE, name) or {}
        return str(resource["status"]["sandbox"]["id"])

    async def harm(self, name: str, how: str, delay: float) -> tuple[float, float]:
        """Do something behind the operator's back; return seconds until noticed and until well."""
        await asyncio.sleep(delay)
        sandbox = await self.sandbox_of(name)
        began = _CLOCK.now().timestamp()
        url = f"{self.simulator.url}/_sim/sandboxes/{sandbox}/{how}"
        async with self.cluster.http.post(url) as answer:
            answer.raise_for_status()
        well = await self._until_ready_since(name, began)
        looks = [
            each["at"]
            for each in await self.journal()
            if each.get("kind") == "sandbox.get"
            and each["at"] > began
            and each["path"].endswith((sandbox, f"claude-issue-{int(name[-7:])}"))
        ]
        return looks[0] - began, well - began

    async def journal(self) -> list[dict[str, Any]]:
        """Return all that happened at the simulator."""
        async with self.cluster.http.get(f"{self.simulator.url}/_sim/journal") as answer:
            return [json.loads(line) for line in (await answer.text()).splitlines()]

    async def _until_ready_since(self, name: str, moment: float) -> float:
        async def ready() -> bool:
            resource = await self.cluster.get(NAMESPACE, name) or {}
            conditions = resource.get("status", {}).get("conditions", [])
            return any(
                each["type"] == "Ready"
                and each["status"] == "True"
                and datetime.fromisoformat(each["lastTransitionTime"]).timestamp() > moment
                for each in conditions
            )

        await until(ready, f"{name} to be ready", 120, poll=0.1)
        return _CLOCK.now().timestamp()

    async def _until_gone(self, name: str) -> None:
        async def gone() -> bool:
            return await self.cluster.get(NAMESPACE, name) is None

        await until(gone, f"{name} to be gone", 240, poll=0.25)


@asynccontextmanager
async def living(cluster: Cluster) -> AsyncIterator[Life]:
    """Run the simulator and an operator with production timings for the time of a block."""
    simulator = cluster.programs.simulator()
    await cluster.until_up(f"{simulator.url}/_sim/health")
    operator = cluster.programs.operator(NAMESPACE, simulator.url)
    try:
        await cluster.until_ready(operator)
        operator.toggle_probes()
        yield Life(cluster, simulator)
    finally:
        await operator.child.stop(30)
        await simulator.child.stop()


async def happy_life(life: Life, count: int) -> Figures:
    """Count the writes and calls of lives from creation to deletion, nothing going wrong."""
    before, start = await life.cluster.requests(), len(await life.journal())
    await life.delete(await life.create(range(1, count + 1)))
    requests = await life.cluster.requests() - before
    journal = (await life.journal())[start:]
    asked = [each["kind"] for each in journal if each["type"] == "request"]
    calls = [kind for kind in asked if kind not in _SHARED]
    writes = {
        name: each / count
        for name, each in requests.items()
        if name.startswith(_WRITES) and name.split()[1].startswith("issuesandboxes")
    }
    # The creation itself is the user's own.
    writes["POST issuesandboxes"] -= 1
    events = requests["POST events"]
    return {
        "writes": sum(writes.values()),
        "calls": len(calls) / count,
        "events": events / count,
        "shared_calls": {kind: asked.count(kind) for kind in _SHARED},
        "writes_by_kind": {name: each for name, each in writes.items() if each},
        "calls_by_kind": {kind: calls.count(kind) / count for kind in sorted(set(calls))},
    }


async def behind_our_back(life: Life, count: int) -> Figures:
    """Stop and destroy sandboxes at random moments; measure until noticed and usable again."""
    source = random.Random(3)
    names = await life.create(range(1001, 1001 + 2 * count))
    # A sandbox is known to be missing only once the fleet view has shown it.
    await asyncio.sleep(1.2 * _TICK)
    halves = (("stop", names[:count]), ("destroy", names[count:]))
    figures: Figures = {}
    found = await asyncio.gather(
        *(
            asyncio.gather(*(life.harm(name, how, source.uniform(0, _TICK)) for name in group))
            for how, group in halves
        )
    )
    for (how, _), times in zip(halves, found, strict=True):
        figures[how] = {
            "noticed_s": [noticed for noticed, _ in times],
            "usable_s": [well for _, well in times],
        }
    return figures


async def takeover(stage: Stage, kills: int) -> Figures:
    """Kill the acting replica again and again; measure until another one serves."""
    shares = [range(kills)[index :: len(TAKEOVERS)] for index in range(len(TAKEOVERS))]
    each = zip(TAKEOVERS, shares, strict=True)
    times = await asyncio.gather(*(_takeovers(stage, home, len(share)) for home, share in each))
    return {"served_s": [*itertools.chain.from_iterable(times)]}


async def _takeovers(stage: Stage, home: str, kills: int) -> list[float]:
    times: list[float] = []
    acting = await _replica(stage, home)
    for _ in range(kills):
        standby = await _replica(stage, home)
        killed = time.monotonic()
        acting.child.process.send_signal(signal.SIGKILL)
        ((name, body),) = stage.next_bodies(1, home)
        await stage.create(body, home)
        times.append(await stage.served(name, seconds=60) - killed)
        await acting.child.wait()
        acting = standby
    await acting.child.stop(30)
    return times


async def _replica(stage: Stage, home: str) -> Program:
    program = stage.cluster.programs.operator(home, stage.stub.url, home=home)
    await stage.cluster.until_ready(program)
    program.toggle_probes()
    return program
