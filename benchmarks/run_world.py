"""Where runs play: both simulators at their normal speed, an operator, and agents that take notes.

An agent is a few lines of shell that cost next to nothing. It notes its process id and when it
began and ended in files outside its sandbox, which this machine's simulator lets it reach.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cluster import BenchError, Cluster, encode, until
from issuesandbox.api.names import ANNOTATION_ANNOUNCED, FINALIZER
from issuesandbox.clock import SystemClock
from issuesandbox.domain.naming import sandbox_name
from programs import Program

NAMESPACE = "runs"
REPOSITORY = "octo/hello"
TOKEN = "bench-token"
_FILES = {"README.md": "# Hello\n", "src/app.py": "print('hello')\n"}
_CLOCK = SystemClock()

_NOTE = 'echo $$ >"$BENCH_NOTES.pid"; date +%s.%N >"$BENCH_NOTES.began"; '
WORKER = _NOTE + 'sleep 1; echo done >work.txt; echo Done.; date +%s.%N >"$BENCH_NOTES.ended"'
TALKER = _NOTE + "while :; do echo working; sleep 0.5; done"
SILENT = _NOTE + "exec sleep 600"
DEAF = f'trap "" TERM; {TALKER}'

Body = dict[str, Any]


@dataclass(frozen=True)
class RunWorld:
    """An operator with a Daytona and a GitHub, and the notes of the agents."""

    cluster: Cluster
    daytona: Program
    github: Program
    notes: Path

    async def open_issue(self) -> int:
        """Open an issue and return its number."""
        issue = {"title": "Make it better", "body": "It could be better.", "as": "octocat"}
        answer = await self._hub("POST", f"repos/{REPOSITORY}/issues", issue)
        return int(answer["number"])

    async def ask(self, number: int, agent: str, limits: dict[str, str] | None = None) -> float:
        """Ask for a run of an issue; return when."""
        command = {"profile": "custom", "command": ["sh", "-c", agent]}
        env = [{"name": name, "value": value} for name, value in self.env_of(number).items()]
        spec = {
            "issue": {"repository": REPOSITORY, "number": number},
            "run": {"agent": {**command, "env": env}, "limits": limits or {}},
        }
        body = {
            "apiVersion": "issuesandbox.dev/v1alpha1",
            "kind": "IssueSandbox",
            "metadata": {
                "name": name_of(number),
                "namespace": NAMESPACE,
                # As the webhook adapter makes them.
                "finalizers": [FINALIZER],
                "annotations": {ANNOTATION_ANNOUNCED: sandbox_name(number)},
            },
            "spec": spec,
        }
        began = now()
        await self.cluster.create(encode(body), NAMESPACE)
        return began

    def env_of(self, number: int) -> dict[str, str]:
        """Return the variable that tells an agent where its notes go."""
        return {"BENCH_NOTES": str(self.notes / str(number))}

    async def status(self, number: int) -> Body:
        """Return the status of an issue's resource."""
        found = await self.cluster.get(NAMESPACE, name_of(number)) or {}
        status: Body = found.get("status", {})
        return status

    async def until_finished(self, number: int, seconds: float = 120) -> Body:
        """Wait until a run is finished and return its status."""

        async def finished() -> Body | None:
            status = await self.status(number)
            return status if status.get("run", {}).get("phase") == "Finished" else None

        # Seldom: each look costs the API server what it then lacks for the run.
        status = await until(finished, f"run {number} to finish", seconds, poll=0.5)
        assert status is not None
        return status

    async def until_cleaned_up(self, number: int) -> None:
        """Wait until the sandbox of a run is deleted, and the comment tells so."""

        async def deleted() -> bool:
            status = await self.status(number)
            return bool(status.get("sandboxDeletion", {}).get("success"))

        await until(deleted, f"the sandbox of run {number} to be deleted", 60, poll=0.5)
        await asyncio.sleep(1)

    async def noted(self, number: int, what: str, seconds: float = 60) -> float:
        """Wait for a note of an agent and return it."""
        path = self.notes / f"{number}.{what}"

        async def there() -> str | None:
            return path.read_text().strip() if path.exists() else None

        return float(await until(there, f"the agent of {number} to note {what}", seconds) or 0)

    async def death(self, number: int, seconds: float = 60) -> float:
        """Wait until an agent's process has ended and return when that was."""
        pid = int(await self.noted(number, "pid"))
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            raise BenchError(f"agent {number} ended before anybody looked") from None
        loop.add_reader(process, ended.set)
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
            return now()
        except TimeoutError:
            raise BenchError(f"agent {number} still runs after {seconds:g} s") from None
        finally:
            loop.remove_reader(process)
            os.close(process)

    async def stop(self, number: int) -> float:
        """Ask for the end of a run; return when."""
        asked = now()
        await self.cluster.patch(
            NAMESPACE, name_of(number), encode({"spec": {"desiredState": "Stopped"}})
        )
        return asked

    async def pull_opened(self, number: int) -> float:
        """Return when GitHub had opened a pull request."""
        for each in await self._hub("GET", "journal?since=0"):
            for effect in each.get("effect") or ():
                if effect["what"] == "pull_request.opened" and effect["number"] == number:
                    return datetime.fromisoformat(each["done_at"]).timestamp()
        raise BenchError(f"pull request {number} was never opened")

    async def daytona_journal(self) -> list[Body]:
        """Return all that happened at Daytona."""
        async with self.cluster.http.get(f"{self.daytona.url}/_sim/journal") as answer:
            return [json.loads(line) for line in (await answer.text()).splitlines()]

    async def furnish(self) -> Body:
        """Give GitHub a repository with our App on it; return the App."""
        owner = REPOSITORY.partition("/")[0]
        await self._hub("POST", "repos", {"repository": REPOSITORY, "files": _FILES})
        await self._hub("POST", "installations", {"account": owner})
        app: Body = await self._hub("GET", "app")
        return app

    async def _hub(self, method: str, path: str, body: Body | None = None) -> Any:
        url = f"{self.github.url}/_sim/{path}"
        async with self.cluster.http.request(method, url, json=body) as answer:
            if answer.status >= 300:
                raise BenchError(f"{method} {path}: {answer.status} {await answer.text()}")
            return await answer.json()


@asynccontextmanager
async def running_world(cluster: Cluster, folder: Path) -> AsyncIterator[RunWorld]:
    """Run the simulators and an operator with production timings for the time of a block."""
    programs = cluster.programs
    notes = folder / "notes"
    notes.mkdir()
    daytona, github = programs.simulator(), programs.github(TOKEN)
    operator: Program | None = None
    try:
        await cluster.until_up(f"{daytona.url}/_sim/health")
        world = RunWorld(cluster, daytona, github, notes)
        await cluster.until_up(f"{github.url}/_sim/app")
        app = await world.furnish()
        operator = programs.operator(
            NAMESPACE,
            daytona.url,
            GITHUB_API_URL=github.url,
            GITHUB_APP_ID=str(app["id"]),
            GITHUB_APP_PRIVATE_KEY=app["private_key"],
        )
        await cluster.until_ready(operator)
        operator.toggle_probes()
        yield world
    finally:
        if operator is not None:
            await operator.child.stop(30)
        await github.child.stop()
        await daytona.child.stop()


def name_of(number: int) -> str:
    """Return the name of an issue's resource."""
    return f"run-{number}"


def now() -> float:
    """Return the time that all programs of this machine share, agents included."""
    return _CLOCK.now().timestamp()
