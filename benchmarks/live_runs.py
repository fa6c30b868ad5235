"""The scenario of many runs at once: what it costs to follow two hundred agents.

They play against the Daytona stub, whose sandboxes only talk; everything else is as in production.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from cluster import encode, until
from fleet import body_of
from issuesandbox.domain.timings import Timings
from meters import percentile
from stage import Stage

NAMESPACE = "live"
_FIRST = 2_000_000
_SECRET = "clone"
_TICK = Timings().run_tick.total_seconds()
# Long enough for the first looks at all of them to be over.
_SETTLE_SECONDS = 3 * _TICK

Figures = dict[str, Any]


async def live_runs(stage: Stage, count: int, seconds: float) -> Figures:
    """Let agents run, and see what following them costs."""
    cluster = stage.cluster
    secret = ("create", "secret", "generic", _SECRET, "--from-literal=read-password=bench")
    cluster.access.kubectl(*secret, "--namespace", NAMESPACE)
    program = cluster.programs.operator(NAMESPACE, stage.stub.url)
    try:
        await cluster.until_ready(program)
        program.toggle_probes()
        for number in range(_FIRST, _FIRST + count):
            await cluster.create(encode(_body(number)), NAMESPACE)

        async def followed() -> bool:
            return int((await _talk(stage))["running"]) >= count

        await until(followed, f"{count} agents to run", 180, poll=0.5)
        await asyncio.sleep(_SETTLE_SECONDS)
        before = await cluster.requests()
        await _talk(stage, "DELETE")
        cpu, began = program.cpu(), time.monotonic()
        await asyncio.sleep(seconds)
        cpu, spent = program.cpu() - cpu, time.monotonic() - began
        talk = await _talk(stage)
        requests = await cluster.requests() - before
        held = program.memory()
    finally:
        await program.child.stop(30)
    calls, lags = Counter(talk["calls"]), [1000 * each for each in talk["lags"]]
    return {
        "runs": count,
        "seconds": spent,
        "cpu_share": cpu / spent,
        "rss_mib": held.now,
        "toolbox_calls": dict(calls),
        "calls_per_run_and_tick": sum(calls.values()) / count / (spent / _TICK),
        "lag_p50_ms": percentile(lags, 50),
        "lag_p99_ms": percentile(lags, 99),
        "lines": len(lags),
        "kubernetes": {name: each for name, each in requests.items() if _is_ours(name)},
    }


def _body(number: int) -> dict[str, Any]:
    """Return a resource whose agent runs for long; its repository is nobody's GitHub."""
    body = body_of(number, namespace=NAMESPACE)
    limits = {"inactivity": "30m", "agent": "1h"}
    body["spec"]["run"] = {"publish": {"enabled": False}, "limits": limits}
    body["spec"]["repository"] = {
        "cloneURL": "https://git.example.com/octo/hello.git",
        "credentialsSecretRef": {"name": _SECRET},
    }
    return body


def _is_ours(request: str) -> bool:
    return request.split()[1].split("/", maxsplit=1)[0] in (
        "issuesandboxes",
        "configmaps",
        "events",
        "secrets",
    )


async def _talk(stage: Stage, method: str = "GET") -> dict[str, Any]:
    url = f"{stage.stub.url}/_bench/talk"
    async with stage.cluster.http.request(method, url) as answer:
        answer.raise_for_status()
        found: dict[str, Any] = await answer.json(content_type=None)
        return found
