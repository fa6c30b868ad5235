"""What the tests of the toolbox act on."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

from issuesandbox import inside
from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.daytona.toolbox import DaytonaToolbox
from issuesandbox.api.spec_agent import Agent
from issuesandbox.domain.agents.profiles import launch
from issuesandbox.domain.agents.stream import StreamReader
from issuesandbox.domain.prompt import IssueFacts, issue_text, sentence
from issuesandbox.domain.supervision import (
    SUPERVISOR,
    Limits,
    Pulse,
    RunPaths,
    RunState,
    parse_pulse,
    poll_command,
    start_command,
    supervisor_sent,
)
from issuesandbox.local.daytona.server import Simulator

KEY = "key-of-the-operator"
MODEL_KEY = "sk-ant-scripted-000000000000"
SESSION = "6d0a2c7e-0000-4000-8000-0123456789ab"
AMPLE = Limits(inactivity=60, agent=60, run=60)


@dataclass(frozen=True)
class Stage:
    """A simulator, its administrator, and one started sandbox."""

    simulator: Simulator
    admin: aiohttp.ClientSession
    sandboxes: DaytonaSandboxes
    toolbox: DaytonaToolbox
    id: str

    async def fault(self, **fault: Any) -> None:
        """Let calls fail."""
        async with self.admin.post(f"{self.simulator.admin_url}/faults", json=fault) as answer:
            assert answer.status == 201

    async def act(self, what: str) -> None:
        """Do something to the sandbox behind everybody's back."""
        url = f"{self.simulator.admin_url}/sandboxes/{self.id}/{what}"
        async with self.admin.post(url, json={}) as answer:
            assert answer.status < 300

    async def processes(self) -> list[int]:
        """Return the ids of all processes in the sandbox."""
        async with self.admin.get(f"{self.simulator.admin_url}/processes") as answer:
            found = await answer.json()
        return list(found.get(self.id, []))

    async def calls(self, kind: str) -> int:
        """Return how many calls of a kind the simulator answered."""
        async with self.admin.get(f"{self.simulator.admin_url}/journal") as answer:
            text = await answer.text()
        return text.count(f'"kind":"{kind}"') + text.count(f'"kind": "{kind}"')

    async def pulse(self, command: str, env: dict[str, str] | None = None) -> Pulse:
        """Run a line of the supervisor."""
        done = await self.toolbox.execute(self.id, command, seconds=20, env=env)
        return parse_pulse(done.output)

    async def begin(
        self,
        scenario: str,
        *,
        session: str = SESSION,
        limits: Limits = AMPLE,
        agent: Agent | None = None,
        env: dict[str, str] | None = None,
    ) -> RunPaths:
        """Upload all that a run needs and start the scripted agent."""
        # Sandboxes of one machine see each other's processes: only the id keeps runs apart.
        paths = RunPaths(await self.toolbox.home(self.id), f"run-{uuid.uuid4().hex[:12]}")
        made = launch(
            agent or Agent(),
            paths=paths,
            session_id=session,
            resume=False,
            limits=limits,
            secrets={"ANTHROPIC_API_KEY": MODEL_KEY, **(env or {})},
        )
        issue = IssueFacts(number=7, title="A task", body=f"```scenario\n{scenario}\n```")
        await self.toolbox.upload(
            self.id,
            {
                paths.supervisor: inside.script(SUPERVISOR),
                paths.prompt: sentence(paths).encode(),
                paths.issue: issue_text(issue).encode(),
                f"{paths.work}/README.md": b"hello\n",
                **made.files,
            },
        )
        command = start_command(paths, limits, made.argv, made.stdin_path)
        begun = await self.pulse(command, {**made.env, **supervisor_sent()})
        assert begun.fresh, begun
        return paths

    async def follow(self, paths: RunPaths, reader: StreamReader, within: float = 30.0) -> Pulse:
        """Poll as the operator does until the run is over and all is read."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            pulse = await self.pulse(poll_command(paths, reader.offset, 2, 1 << 20))
            reader.feed(pulse.chunk, pulse.chunk_offset if pulse.chunk else None)
            if pulse.state in (RunState.LOST, RunState.ABSENT):
                return pulse
            if pulse.state is RunState.ENDED and reader.offset >= pulse.size:
                return pulse
        raise AssertionError(f"not over within {within} s: {pulse}")


async def eventually(look: Callable[[], Awaitable[Any]], within: float = 10.0) -> Any:
    """Poll until a condition holds, and return what it gave."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        value = await look()
        if value:
            return value
        await asyncio.sleep(0.05)
    raise AssertionError(f"not true within {within} s")
