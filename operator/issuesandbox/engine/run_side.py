"""What a pass does for the run of its resource; nothing at all where nobody drives runs."""

from __future__ import annotations

from dataclasses import replace

from issuesandbox.api.status import Status
from issuesandbox.api.status_run import RunPhase
from issuesandbox.clock import Clock
from issuesandbox.domain.model import Plan
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.engine.books import Books
from issuesandbox.engine.reading import Reading
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.mover import Progress
from issuesandbox.engine.runs.scenes import is_doomed, scene_of
from issuesandbox.ports.resources import ResourceKey


class RunSide:
    """Translates between a pass and the driver of runs."""

    def __init__(self, driver: RunDriver | None, books: Books, clock: Clock) -> None:
        self._driver = driver
        self._books = books
        self._clock = clock

    def leave(self, key: ResourceKey) -> None:
        """Leave the run alone: its resource is gone, or another replica acts for it."""
        self._books.stops.forget(key)
        if self._driver is not None:
            self._driver.drop(key)

    def hurry(self, key: ResourceKey, reading: Reading) -> None:
        """Have the agent of a run that is to end killed: a slow Daytona must not delay that."""
        if self._driver is not None and reading.resource.status.run is not None:
            self._driver.hurry(key, self._unseen(reading))

    def has_told(self, key: ResourceKey, reading: Reading) -> bool:
        """Tell whether the issue was told the last word of the run."""
        return self._driver is None or self._driver.has_told(key, self._unseen(reading))

    def may_be_left(self, key: ResourceKey, reading: Reading, plan: Plan) -> bool:
        """Tell whether no sandbox is left behind with an agent that nobody ends any more."""
        desired = reading.desired
        if self._driver is None or not (desired.deleting and desired.leave_behind):
            return True
        scene = scene_of(reading, plan, self._clock.now())
        return desired.forced or scene.still or self._driver.may_be_left(key, scene)

    def salvage(self, key: ResourceKey, reading: Reading, plan: Plan) -> Progress | None:
        """Have the work saved that lies in a sandbox which is given up; None: go on."""
        if self._driver is None or not is_doomed(plan):
            return None
        return self._driver.salvage(key, scene_of(reading, plan, self._clock.now()))

    async def close(self, key: ResourceKey, reading: Reading, plan: Plan) -> Status | None:
        """Give the run of a resource that goes its last word; None if it was given before."""
        run = reading.resource.status.run
        if self._driver is None or run is None or run.phase is RunPhase.FINISHED:
            return None
        return await self._driver.close(key, scene_of(reading, plan, self._clock.now()))

    def advance(
        self, key: ResourceKey, reading: Reading, plan: Plan, created: SandboxView | None
    ) -> Progress | None:
        """Make the next move of the run, if there is one."""
        resource = reading.resource
        if self._driver is None or (resource.spec.run is None and resource.status.run is None):
            return None
        return self._driver.advance(key, scene_of(reading, plan, self._clock.now(), created))

    def look_ahead(self, key: ResourceKey, reading: Reading, written: Status, plan: Plan) -> bool:
        """Begin what comes next in the run, now that what it rests on is written down.

        Tell whether somebody is on the way.
        """
        sandbox = written.sandbox
        if self._driver is None or sandbox is None or not (plan.ready and plan.synced):
            return False
        scene = scene_of(reading, plan, self._clock.now())
        return self._driver.look_ahead(
            key,
            replace(
                scene,
                resource=reading.resource.model_copy(update={"status": written}),
                sandbox_id=SandboxId(sandbox.id) if sandbox.id is not None else None,
                attempt=sandbox.attempt or scene.attempt,
            ),
        )

    def scout(self, key: ResourceKey, reading: Reading) -> None:
        """Have found out what the next run needs to know, while its sandbox is brought up."""
        if self._driver is not None and reading.resource.spec.run is not None:
            self._driver.scout(key, self._unseen(reading))

    def _unseen(self, reading: Reading) -> Scene:
        """Return the scene before anybody looked at the sandbox."""
        now, turn = self._clock.now(), reading.facts.turn
        return Scene(reading.resource, turn, now, flags=reading.flags, deaf=reading.deaf)
