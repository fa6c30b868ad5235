"""What GitHub saw of a run, and how a run is disturbed there."""

from __future__ import annotations

import os
import signal
from typing import Any

from run_stage import RunStage

PUSH = "smart-http/receive-pack"


async def fault(runs: RunStage, kind: str, operation: str, **more: Any) -> None:
    """Let the simulated GitHub fail."""
    await runs.hub("POST", "faults", {"kind": kind, "operation": operation, **more})


async def clear_faults(runs: RunStage) -> None:
    """Let the simulated GitHub work again."""
    await runs.hub("DELETE", "faults")


async def journal(runs: RunStage) -> list[dict[str, Any]]:
    """Return everything that GitHub was asked."""
    entries: list[dict[str, Any]] = await runs.hub("GET", "journal?since=0")
    return entries


async def pushes(runs: RunStage, branch: str) -> list[dict[str, Any]]:
    """Return every move of a branch over git."""
    ref = f"refs/heads/{branch}"
    moves = [each for each in await journal(runs) if each["type"] == "push"]
    return [each for each in moves if each["ref"] == ref and each["via"] == "git"]


async def opened(runs: RunStage) -> list[int]:
    """Return the number of every pull request that was opened, in that order."""
    asked = [each for each in await journal(runs) if each["type"] == "request"]
    effects = [effect for each in asked for effect in each["effect"]]
    return [each["number"] for each in effects if each["what"] == "pull_request.opened"]


async def until_gated(runs: RunStage, name: str) -> dict[str, Any]:
    """Wait until the push of a run is decided and return the run."""

    async def gated() -> Any:
        run = (await runs.stage.status(name)).get("run", {})
        return run if run.get("publish") else None

    run: dict[str, Any] = await runs.stage.until(gated, f"the push of {name} to be decided")
    return run


async def kill_operator(runs: RunStage) -> None:
    """End the newest operator as a power cut would."""
    victim = runs.stage.operators.pop()
    os.kill(victim.pid, signal.SIGKILL)
    await victim.wait()
