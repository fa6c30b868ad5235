"""What people see of a run while it goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from run_stage import RunStage


def isb(runs: RunStage, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the plugin as the administrator."""
    program = Path(sys.executable).parent / "kubectl-isb"
    environment = {**os.environ, "KUBECONFIG": str(runs.stage.access.kubeconfig)}
    return subprocess.run(
        [program, *arguments, "-n", runs.stage.namespace],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_the_output_of_a_running_agent_can_be_read(runs: RunStage) -> None:
    await runs.start_operator(
        ISSUESANDBOX_TIMINGS=runs.stage.timings(run_tick="300ms", live_log_gap="300ms")
    )
    number = await runs.run_issue("say Looking around.", "forever 1")
    await runs.until_agent_runs()

    async def said() -> bool:
        done = await asyncio.to_thread(isb, runs, "logs", "one")
        return done.returncode == 0 and "Looking around." in done.stdout

    await runs.stage.until(said, "the agent's words")

    async def told() -> bool:
        comments = await runs.comments(number)
        return len(comments) == 1 and "Working on it" in comments[0]["body"]

    await runs.stage.until(told, "the comment to say that it is worked on")
    stopped = await asyncio.to_thread(isb, runs, "stop", "one")
    assert stopped.returncode == 0, stopped.stderr
    run = await runs.until_finished()
    assert run["outcome"] == "Cancelled"
    followed = await asyncio.to_thread(isb, runs, "logs", "-f", "one")
    assert followed.returncode == 0, "following a run that is over ends at once"
    assert len(await runs.comments(number)) == 1
