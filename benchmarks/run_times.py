"""The scenarios about single runs: from trigger to pull request, limits, and stops.

They play against both simulators with production timings. Agents note themselves when they began
and ended, and the kernel tells when their process is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster import BenchError
from issuesandbox.local.daytona.config import DEFAULT_KEY
from run_world import DEAF, REPOSITORY, SILENT, TALKER, TOKEN, WORKER, RunWorld, now

_WRITES = ("PATCH", "PUT", "POST", "APPLY")
_OVER = ("stopped", "archived", "destroying", "destroyed")
_LIMIT = 6.0
# With it a run has the time to get ready, but not much more.
_RUN_LIMIT = 20.0

Figures = dict[str, Any]


async def to_pull_request(world: RunWorld, count: int) -> Figures:
    """Let the operator and a plain script take turns; count what the operator writes."""
    figures: Figures = {"operator": [], "script": []}
    asked: list[int] = []
    async with _script(world) as script:
        # The first of each pays for connections and caches.
        await _by_script(world, script)
        await world.until_cleaned_up((await _by_operator(world))["number"])
        before = await world.cluster.requests()
        for _ in range(count):
            figures["script"].append(await _by_script(world, script))
            figures["operator"].append(await _by_operator(world))
            asked.append(figures["operator"][-1].pop("number"))
        # Only then everything is written: the sandboxes are deleted and proven to be gone.
        await asyncio.gather(*(world.until_cleaned_up(number) for number in asked))
        requests = await world.cluster.requests() - before
    ours = {
        name: each / count
        for name, each in requests.items()
        if name.startswith(_WRITES) and name.split()[1].startswith("issuesandboxes")
    }
    # The creation itself is the user's own.
    ours["POST issuesandboxes"] -= 1
    written = {name: each for name, each in ours.items() if each}
    return {**figures, "writes": sum(written.values()), "writes_by_kind": written}


async def _by_operator(world: RunWorld) -> Figures:
    number = await world.open_issue()
    asked = await world.ask(number, WORKER)
    run = (await world.until_finished(number))["run"]
    if run.get("outcome") != "Succeeded":
        raise BenchError(f"run {number} ended {run.get('outcome')}: {run.get('message')}")
    times = await _times(world, number, asked, run["pullRequest"]["number"])
    return {**times, "number": number}


async def _by_script(world: RunWorld, script: asyncio.subprocess.Process) -> Figures:
    assert script.stdin is not None
    assert script.stdout is not None
    number = await world.open_issue()
    job = {"repository": REPOSITORY, "number": number, "env": world.env_of(number)}
    script.stdin.write(json.dumps({**job, "command": WORKER}).encode() + b"\n")
    line = await script.stdout.readline()
    if not line:
        raise BenchError("the script ended")
    told = json.loads(line)
    return await _times(world, number, told["began"], told["pull"])


async def _times(world: RunWorld, number: int, asked: float, pull: int) -> Figures:
    opened = await world.pull_opened(pull)
    agent = [await world.noted(number, what) for what in ("began", "ended")]
    return {
        "whole_s": opened - asked,
        "agent_s": agent[1] - agent[0],
        "own_s": opened - asked - (agent[1] - agent[0]),
        "to_agent_s": agent[0] - asked,
        "from_agent_s": opened - agent[1],
    }


@asynccontextmanager
async def _script(world: RunWorld) -> AsyncIterator[asyncio.subprocess.Process]:
    program = Path(__file__).parent / "run_script.py"
    environment = {
        "PATH": os.environ["PATH"],
        "DAYTONA_API_KEY": DEFAULT_KEY,
        "DAYTONA_API_URL": f"{world.daytona.url}/api",
        "GITHUB_API_URL": world.github.url,
        "GITHUB_TOKEN": TOKEN,
    }
    script = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(program)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
    )
    try:
        yield script
    finally:
        assert script.stdin is not None
        script.stdin.close()
        await script.wait()


async def limits(world: RunWorld, count: int) -> Figures:
    """Let agents run into each of their limits; measure how much longer they live."""
    found: Figures = {}
    for name, agents in (("polite", (TALKER, SILENT)), ("deaf", (DEAF,))):
        kinds = (_over_agent_limit, _over_inactivity, _over_run_limit)
        talker, silent = agents[0], agents[-1]
        late = await asyncio.gather(
            *(
                each(world, silent if each is _over_inactivity else talker)
                for each in (kinds if name == "polite" else kinds[:1])
                for _ in range(count)
            )
        )
        found[name] = late
    return found


async def _over_agent_limit(world: RunWorld, agent: str) -> float:
    number = await world.open_issue()
    await world.ask(number, agent, {"agent": f"{_LIMIT:g}s", "inactivity": "3s"})
    ended = await world.death(number)
    return ended - await world.noted(number, "began") - _LIMIT


async def _over_inactivity(world: RunWorld, agent: str) -> float:
    number = await world.open_issue()
    await world.ask(number, agent, {"inactivity": f"{_LIMIT:g}s"})
    ended = await world.death(number)
    return ended - await world.noted(number, "began") - _LIMIT


async def _over_run_limit(world: RunWorld, agent: str) -> float:
    number = await world.open_issue()
    limit = f"{_RUN_LIMIT:g}s"
    await world.ask(number, agent, {"run": limit, "agent": limit, "inactivity": limit})
    ended = await world.death(number)
    run = (await world.status(number))["run"]
    return ended - datetime.fromisoformat(run["deadlines"]["run"]).timestamp()


async def stops(world: RunWorld, count: int) -> Figures:
    """Stop agents that run, at different moments of a tick; half of them ignore SIGTERM."""
    chance = random.Random(5)
    agents = [TALKER if turn % 2 else DEAF for turn in range(count)]
    times = await asyncio.gather(*(_stopped(world, each, chance.uniform(0, 2)) for each in agents))
    return {"dead_s": [dead for dead, _ in times], "still_s": [still for _, still in times]}


async def _stopped(world: RunWorld, agent: str, delay: float) -> tuple[float, float]:
    number = await world.open_issue()
    await world.ask(number, agent)
    await world.noted(number, "began")
    await asyncio.sleep(2 + delay)
    death = asyncio.create_task(world.death(number))
    asked = await world.stop(number)
    dead = await death
    run = (await world.until_finished(number))["run"]
    if run.get("outcome") != "Cancelled":
        raise BenchError(f"run {number} was stopped and ended {run.get('outcome')}")
    sandbox = (await world.status(number))["sandbox"]["id"]
    still = [
        each["at"]
        for each in await world.daytona_journal()
        if each["type"] == "state" and each["sandbox"] == sandbox and each["to"] in _OVER
    ]
    return dead - asked, (still[0] if still else now()) - asked
