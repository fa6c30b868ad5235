"""A busy world whose operators are killed again and again: people open issues and stop runs.

Says what it does as it does it, and counts how the runs ended; what must hold is the checker's.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import aiohttp

from issuesandbox.clock import SystemClock
from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.furnish import REPOSITORY
from issuesandbox.local.world.world import World

# The sandboxes of stopped runs are kept for a day, and hold their places.
SETTINGS = {
    "ISSUESANDBOX_MAX_SANDBOXES": "1000",
    "ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY": "1000",
    "ISSUESANDBOX_MAX_NEW_RUNS_PER_MINUTE": "1000",
}
_GAP_SECONDS = 3.0
# More at once would only make a small machine slow.
_AT_ONCE = 5
_END_SECONDS = 180.0
_LONGEST_WORK = 8
_SEED = 20

Say = Callable[[str], None]


class Soak:
    """One soak of one world."""

    def __init__(self, world: World, say: Say) -> None:
        self._world = world
        self._say = say
        self._chance = random.Random(_SEED)  # noqa: S311 - makes a test, guards nothing
        self._clock = SystemClock()
        self._opened = 0
        self._stopped = 0
        self._kills = 0

    async def run(self, seconds: float, every: float) -> None:
        """Go on for so long, then wait until everything has come to rest."""
        if not self._world.replicas:
            raise WorldError("a soak needs several replicas: use --replicas")
        end = self._clock.monotonic() + seconds
        async with aiohttp.ClientSession() as session:
            await asyncio.gather(self._people(session, end), self._kill(every, end))
            ends = await self._rest()
        shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(ends.items()))
        self._say(
            f"{self._opened} issues opened, {self._stopped} stops, {self._kills} kills of "
            f"{len(self._world.replicas)} replicas; runs: {shown}"
        )
        if not self._opened or sum(ends.values()) < self._opened:
            raise WorldError(f"{self._opened} issues were opened, and these runs ended: {shown}")

    async def exported(self) -> str:
        """Return the metrics of every replica and of the webhook adapter, one after the other."""
        texts = []
        async with aiohttp.ClientSession() as session:
            for url in (*self._world.operator_urls, self._world.webhook_url):
                async with session.get(f"{url}/metrics") as answer:
                    texts.append(await answer.text())
        return "\n".join(texts)

    async def _people(self, session: aiohttp.ClientSession, end: float) -> None:
        while self._clock.monotonic() < end:
            if len(await self._unfinished()) < _AT_ONCE:
                await self._open(session)
            running = await self._unfinished()
            if running and self._chance.random() < 0.4:
                await self._stop(self._chance.choice(running))
            await asyncio.sleep(self._chance.uniform(0.5, 1.5) * _GAP_SECONDS)

    async def _open(self, session: aiohttp.ClientSession) -> None:
        self._opened += 1
        work = self._chance.randint(1, _LONGEST_WORK)
        steps = f"tick 1 {work} Working.\nwrite work-{self._opened}.txt done\nsay Done."
        issue = {
            "title": f"Work number {self._opened}",
            "body": f"Please.\n\n```scenario\n{steps}\n```\n",
            "as": REPOSITORY.partition("/")[0],
        }
        url = f"{self._world.github_admin}/repos/{REPOSITORY}/issues"
        async with session.post(url, json=issue) as answer:
            answer.raise_for_status()

    async def _stop(self, resource: dict[str, Any]) -> None:
        name = resource["metadata"]["name"]
        patch = json.dumps({"spec": {"desiredState": "Stopped"}})
        await self._kubectl("patch", "isb", name, "--type=merge", "-p", patch)
        self._stopped += 1

    async def _kill(self, every: float, end: float) -> None:
        while self._clock.monotonic() + every < end:
            await asyncio.sleep(every)
            victim = self._chance.choice(self._world.replicas)
            if victim.returncode is None:
                self._kills += 1
                self._say(f"kill -9 {victim.name} (process {victim.pid})")
                os.kill(victim.pid, signal.SIGKILL)

    async def _rest(self) -> Counter[str]:
        """Wait until every run is finished and told; return how they ended."""
        try:
            async with asyncio.timeout(_END_SECONDS):
                while await self._unfinished() or len(await self._resources()) < self._opened:
                    await asyncio.sleep(1.0)
        except TimeoutError:
            names = [each["metadata"]["name"] for each in await self._unfinished()]
            raise WorldError(f"not finished {_END_SECONDS:.0f} s later: {names}") from None
        return Counter(_run(each).get("outcome", "never begun") for each in await self._resources())

    async def _unfinished(self) -> list[dict[str, Any]]:
        return [each for each in await self._resources() if not _is_over(each)]

    async def _resources(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(await self._kubectl("get", "isb", "-o", "json"))[
            "items"
        ]
        return items

    async def _kubectl(self, *arguments: str) -> str:
        done = await asyncio.to_thread(self._world.access.kubectl, *arguments)
        return done.stdout


def _run(resource: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = resource.get("status", {}).get("run", {})
    return run


def _is_over(resource: dict[str, Any]) -> bool:
    """Tell whether a run is finished, or was stopped before anything began."""
    unborn = resource["spec"].get("desiredState") == "Stopped" and not _run(resource)
    return unborn or _run(resource).get("phase") == "Finished"
