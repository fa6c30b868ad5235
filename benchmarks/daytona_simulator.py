"""Measures the Daytona simulator at 10,000 sandboxes; prints one JSON object.

Memory of the whole process, the time of a page of 200 as a caller sees it, and the processes that
sandboxes without work cost. What they must be is in goals.py.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

import aiohttp
import psutil

SANDBOXES = 10_000
PAGES = 50
# Five hundred pages, so that the slowest hundredth is five of them.
WALKS = 10
OWN = {"issuesandbox.dev/installation": "bench"}


async def measure() -> dict[str, float]:
    """Start a simulator of its own, fill it, and read from it."""
    simulator = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "issuesandbox.local.daytona.cli", "--api-key", "bench=bench"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert simulator.stdout is not None
    try:
        line = (await simulator.stdout.readline()).decode()
        base = line.strip().partition("DAYTONA_API_URL=")[2].removesuffix("/api")
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer bench"}) as session:
            await plant(session, base)
            pages = [await page_times(session, base) for _ in range(WALKS)]
        process = psutil.Process(simulator.pid)
        return {
            "sandboxes": SANDBOXES,
            "rss_mib": round(process.memory_info().rss / 2**20, 1),
            **page_figures([each * 1000 for times in pages for each in times]),
            "processes": len(process.children(recursive=True)),
        }
    finally:
        simulator.terminate()
        await simulator.wait()


async def plant(session: aiohttp.ClientSession, base: str) -> None:
    """Fill the simulator with sandboxes that carry the labels an operator would give them."""
    for number in range(0, SANDBOXES, 1000):
        body = {
            "organization": "bench",
            "name": f"claude-issue-{number // 1000}{{n}}",
            "count": 1000,
            "labels": OWN
            | {
                f"issuesandbox.dev/{name}": f"{name}-{number}"
                for name in ("namespace", "resource", "uid", "repository", "number")
            },
        }
        async with session.post(f"{base}/_sim/sandboxes", json=body) as response:
            response.raise_for_status()


def page_figures(milliseconds: list[float]) -> dict[str, float]:
    """Return the middle and the slowest hundredth of the pages."""
    hundredths = statistics.quantiles(milliseconds, n=100)
    return {"page_ms": round(hundredths[49], 2), "page_ms_p99": round(hundredths[98], 2)}


async def page_times(session: aiohttp.ClientSession, base: str) -> list[float]:
    """Walk through the list as the operator does, and return how long each page took."""
    times, cursor = [], None
    wanted = {"labels": json.dumps(OWN), "limit": "200", "sort": "createdAt", "order": "asc"}
    for _ in range(PAGES):
        query = dict(wanted)
        if cursor:
            query["cursor"] = cursor
        began = time.perf_counter()
        async with session.get(f"{base}/api/sandbox", params=query) as response:
            body = await response.read()
        times.append(time.perf_counter() - began)
        page = json.loads(body)
        assert len(page["items"]) == 200, response.status
        cursor = page["nextCursor"]
    return times


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
