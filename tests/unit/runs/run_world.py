"""A world for whole runs in one process: the real driver and crew, over a real shell and git.

Operators come and go, each with a memory of its own.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.fakes.clock import FakeTime
from tests.fakes.kube import FakeKube
from tests.unit.runs.run_ports import Cluster, FolderToolbox, Hub, HubClient, shell
from tests.unit.runs.run_wire import Wire

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.status_run import RunPhase
from issuesandbox.clock import SystemClock
from issuesandbox.domain.defaults import RecoveryPolicy
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.wanted import Turn, is_unsafe
from issuesandbox.engine.merge import merge_patch
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.crew import Crew
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.following import Follower
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.ports.errors import Conflict, Unavailable
from issuesandbox.ports.resources import EventNote, ResourceKey

REPOSITORY = "octo/hello"
TIMINGS = Timings(
    run_tick=timedelta(milliseconds=100),
    settle_check=timedelta(milliseconds=20),
    comment_delay=timedelta(0),
    comment_gap=timedelta(milliseconds=50),
)
# A sandbox that is to stop is seen stopped this many passes later.
_PASSES_TO_STOP = 3


@dataclass
class World:
    """One resource, its sandbox, and the hub; operators come and go."""

    kube: FakeKube
    hub: Hub
    home: Path
    key: ResourceKey
    timings: Timings = TIMINGS
    events: list[EventNote] = field(default_factory=list)
    """What the passes told."""

    @classmethod
    async def build(cls, folder: Path, **spec: Any) -> World:
        """Make a world with one issue that asks for a run."""
        bare, seed, home = folder / "hub.git", folder / "seed", folder / "home"
        home.mkdir(parents=True)
        await shell("git", "init", "-q", "--bare", "-b", "main", str(bare))
        await shell("git", "init", "-q", "-b", "main", str(seed))
        (seed / "README.md").write_text("hello\n")
        await shell("git", "add", ".", cwd=seed)
        await shell("git", "commit", "-q", "-m", "first", cwd=seed)
        await shell("git", "push", "-q", str(bare), "main", cwd=seed)
        kube = FakeKube(FakeTime())
        issue: dict[str, Any] = {"repository": REPOSITORY, "number": 7}
        issue |= {"title": "Do", "body": "It", "labels": []}
        agent = {"profile": "custom", "command": ["sh", "-c", "echo once >>log.txt; sleep 0.2"]}
        run = {"trigger": "1", "agent": agent, **spec.pop("run", {})}
        body = kube.create("team", "one", {"issue": issue, "run": run, **spec})
        key = ResourceKey("team", "one", body["metadata"]["uid"])
        return cls(kube, Hub(bare), home, key)

    @property
    def run(self) -> dict[str, Any]:
        """Return the run as it is written down."""
        body = self.kube.read(self.key)
        run: dict[str, Any] = body.get("status", {}).get("run", {})
        return run

    def stop(self) -> None:
        """Ask for the end, as a user does."""
        self.kube.edit(self.key.namespace, self.key.name, {"spec": {"desiredState": "Stopped"}})

    def place(self) -> None:
        """Write down the sandbox, as the pass does that made it."""
        sandbox = {"id": "sb", "attempt": 1}
        self.kube.edit(self.key.namespace, self.key.name, {"status": {"sandbox": sandbox}})

    def trigger(self, value: str) -> None:
        """Ask for another run."""
        asked = {"spec": {"run": {"trigger": value}}}
        self.kube.edit(self.key.namespace, self.key.name, asked)

    def pause(self, value: str | None = "true") -> None:
        """Ask for nothing to be changed, or with None for the end of that."""
        paused = {"metadata": {"annotations": {ANNOTATION_PAUSED: value}}}
        self.kube.edit(self.key.namespace, self.key.name, paused)

    def is_over(self) -> bool:
        """Tell whether nothing is to come any more."""
        body = self.kube.read(self.key)
        unborn = body["spec"].get("desiredState") == "Stopped" and not self.run
        newest = self.run.get("trigger") == body["spec"]["run"]["trigger"]
        return unborn or (newest and self.run.get("phase") == "Finished")

    async def live(self, wire: Wire) -> None:
        """Let an operator work until the run is finished, or until it dies."""
        operator = asyncio.create_task(Operator(self, wire).work())
        death = asyncio.create_task(wire.death.wait())
        try:
            await asyncio.wait({operator, death}, return_when=asyncio.FIRST_COMPLETED)
            if operator.done():
                operator.result()
        finally:
            for task in (operator, death):
                task.cancel()
            await asyncio.gather(operator, death, return_exceptions=True)
            await wire.settle()


def stranger(world: World) -> tuple[Follower, Assignment]:
    """Another replica, which knows of the run only what is persisted."""
    nothing: Any = None
    outside = Outside(
        toolbox=FolderToolbox(world.home, Wire()),
        github=None,
        remote=nothing,
        ledgers=nothing,
        resources=nothing,
        clock=SystemClock(),
        timings=TIMINGS,
        namespace="ours",
    )
    resource = IssueSandbox.model_validate(world.kube.read(world.key))
    return Follower(outside), Assignment(world.key, resource, resource.status, "sb", RunLimits())


class Operator:
    """The part of an operator that drives runs, with a memory of its own."""

    def __init__(self, world: World, wire: Wire) -> None:
        self._world = world
        self._news = asyncio.Event()
        self._cluster = Cluster(world.kube, wire)
        self._clock = SystemClock()
        hub = HubClient(world.hub, wire)
        outside = Outside(
            toolbox=FolderToolbox(world.home, wire),
            github=hub,
            remote=hub,
            ledgers=self._cluster,
            resources=self._cluster,
            clock=self._clock,
            timings=world.timings,
            namespace="ours",
            wake=lambda _: self._news.set(),
        )
        crew = Crew(outside, lambda _: None)
        self._driver = RunDriver(crew, lambda _: self._news.set(), world.timings, RunLimits())
        self._stopping = 0

    async def work(self) -> None:
        """Make passes until the run is finished."""
        try:
            while not self._world.is_over():
                self._news.clear()
                wait = await self._pass()
                try:
                    async with asyncio.timeout(wait):
                        await self._news.wait()
                except TimeoutError:
                    continue
        finally:
            self._driver.drop(self._world.key)

    async def _pass(self) -> float:
        body = self._world.kube.read(self._world.key)
        resource = IssueSandbox.model_validate(body)
        progress = self._driver.advance(self._world.key, self._scene(resource))
        changes = merge_patch(resource.status.to_json(), progress.status.to_json())
        if changes:
            version = resource.metadata.resource_version or ""
            try:
                await self._cluster.patch_status(self._world.key, version, changes)
            except (Conflict, Unavailable):
                return 0.05
        self._world.events.extend(progress.told)
        wait = progress.next_check
        return min(1.0, wait.total_seconds()) if wait is not None else 1.0

    def _scene(self, resource: IssueSandbox) -> Scene:
        run, now = resource.status.run, self._clock.now()
        pushing = run is not None and run.publish is not None and run.outcome is None
        stopped = resource.spec.desired_state is DesiredState.STOPPED and not pushing
        # A run that was ended is finished only when its sandbox is seen stopped.
        ended = run is not None and run.phase is RunPhase.FINALIZING
        stopped = stopped or (ended and is_unsafe(resource.status))
        self._stopping += stopped
        if self._stopping > _PASSES_TO_STOP:
            return Scene(resource, Turn.ADMITTED, now, attempt=1, still=True)
        recovery = RecoveryPolicy().under(resource.spec.recovery)
        sandbox = SandboxId("sb")
        return Scene(resource, Turn.ADMITTED, now, sandbox_id=sandbox, attempt=1, recovery=recovery)
