"""The moves that end a run: stop, limits, lost sandboxes, saved work and the last word."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from issuesandbox.api.status import Comment, Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import Ending
from issuesandbox.domain.runs.limits import overdue
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.mover import Mover, Progress
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.ports.errors import CallError, Invalid
from issuesandbox.ports.resources import EventNote, ResourceKey


class Endings(Mover):
    """The outcome is written first and once; then the agent is killed and the rest follows."""

    def refuse(self, _key: ResourceKey, scene: Scene) -> Progress:
        """End a run that cannot have a sandbox, before it begins."""
        ending = Ending(Outcome.FAILED, "SandboxUnavailable", scene.dead_end)
        return self._stillborn(scene, ending)

    def withdraw(self, _key: ResourceKey, scene: Scene) -> Progress:
        """End a run that was stopped before it began."""
        ending = Ending(Outcome.CANCELLED, "StopRequested", "Stopped before the run began.")
        return self._stillborn(scene, ending)

    def _stillborn(self, scene: Scene, ending: Ending) -> Progress:
        resource, now = scene.resource, scene.now
        limits = self._limits(resource)
        status = chapters.begin(resource, uuid4().hex[:12], None, limits, now)
        return self._over(status, ending, RunPhase.FINALIZING, now)

    def note_stop(self, key: ResourceKey, scene: Scene) -> Progress:
        """Take note of the stop, and kill at once."""
        progress = self.kill(key, scene)
        status = progress.status.model_copy(update={"stop_requested_at": scene.now})
        return Progress(status, timedelta(0), EventNote("StopRequested", "The run is to end."))

    def kill(self, key: ResourceKey, scene: Scene) -> Progress:
        """Kill the agent while the pass asks Daytona to stop the sandbox: whichever is faster."""
        run = scene.run
        assert run is not None, "only a run that began can be killed"
        # The agent may run though that is not written down yet.
        never_started = run.phase is RunPhase.PREPARING
        if scene.resource.status.sandbox is None or never_started:
            self._errands.drop(key)
        else:
            assignment = self._assignment(key, scene, scene.resource.status.sandbox.id or "")
            tag = f"kill {run.id}"
            found = self._errands.ask(key, tag, lambda: self._steps.kill(assignment))
            if found is not None and found.failure is not None:
                # The next pass tries again, until nothing runs there any more.
                self._errands.drop(key)
            elif found is not None and run.outcome is not None:
                return Progress(scene.resource.status)
        return Progress(scene.resource.status, self._timings.settle_check)

    def cancel(self, key: ResourceKey, scene: Scene) -> Progress:
        """Write that the run was cancelled: nothing of it runs any more."""
        status = self._as_heard(key, scene)
        self.drop(key)
        reason, words = "StopRequested", "Stopped as asked; nothing was published."
        if scene.deleting:
            reason, words = "ResourceDeleted", "The resource was deleted during the run."
        elif not scene.stop_asked and scene.has_new_trigger:
            reason, words = "Replaced", "A new trigger replaced the run."
        ending = Ending(Outcome.CANCELLED, reason, words)
        return self._over(status, ending, RunPhase.FINALIZING, scene.now)

    def _as_heard(self, key: ResourceKey, scene: Scene) -> Status:
        """Return the status with what is known of an agent that cannot be asked any more."""
        assignment = self._assignment(key, scene, "")
        heard = self._steps.heard(assignment)
        return chapters.used(assignment.status, heard) if heard is not None else assignment.status

    def time_out(self, key: ResourceKey, scene: Scene) -> Progress:
        """Write that the run is over its limit; the kill and the stop follow."""
        self._errands.drop(key)
        run = scene.run
        assert run is not None, "only a run that began can be over its limit"
        limits = self._limits(scene.resource)
        reason = overdue(run, scene.now, enforced=scene.enforced) or "RunTimeout"
        what, limit = ("run", limits.run) if reason == "RunTimeout" else ("agent", limits.agent)
        words = f"The {what} took longer than {limit}; nothing published."
        ending = Ending(Outcome.TIMED_OUT, reason, words)
        # Saving the work would kill the agent first.
        at_stake = run.agent_started_at is not None and scene.enforced
        phase = RunPhase.COLLECTING if at_stake else RunPhase.FINALIZING
        return self._over(scene.resource.status, ending, phase, scene.now)

    def give_up(self, key: ResourceKey, scene: Scene) -> Progress:
        """End a run whose sandboxes are lost."""
        status = self._as_heard(key, scene)
        self.drop(key)
        words = scene.dead_end or "Too many sandboxes were lost during the run."
        ending = Ending(Outcome.FAILED, "SandboxLost", words)
        return self._over(status, ending, RunPhase.FINALIZING, scene.now)

    def rescue(self, key: ResourceKey, scene: Scene) -> Progress:
        """Save what a run that ended badly left in its sandbox, for a moment only."""
        status, run = scene.resource.status, scene.run
        assert run is not None, "only a run that began leaves work"
        at_stake = run.parent is not None and run.agent_started_at is not None
        over = scene.now - (run.finished_at or scene.now) >= self._timings.work_hold
        unreachable = scene.sandbox_id is None and scene.still and not scene.returning
        if unreachable or not at_stake:
            return Progress(chapters.finalizing(self._as_heard(key, scene)), timedelta(0))
        sandbox_id = scene.sandbox_id or (status.sandbox and status.sandbox.id) or ""
        assignment = self._assignment(key, scene, sandbox_id)
        tag = f"rescue {run.id}"
        found = self._errands.ask(key, tag, lambda: self._steps.rescue(assignment))
        if found is None:
            return Progress(status, self._timings.settle_check)
        if found.failure is not None and not isinstance(found.failure, Invalid):
            self._errands.drop(key)
            # However late this replica came, it has tried once.
            given_up = Progress(chapters.finalizing(self._as_heard(key, scene)), timedelta(0))
            return given_up if over else self._again(status, found)
        if found.value is not None:
            status = chapters.harvested(status, found.value.harvest, scene.now)
            if found.value.saved is not None:
                status = chapters.saved(status, found.value.saved)
        elif found.failure is not None and found.failure.code == SURVIVES:
            status = chapters.doubted(status, SURVIVES, str(found.failure), scene.now)
        return Progress(chapters.finalizing(status), timedelta(0))

    def tell(self, key: ResourceKey, scene: Scene) -> Progress:
        """Tell the issue how the run ended, and finish it."""
        assignment = self._assignment(key, scene, "")
        run, now = assignment.run, scene.now
        found = self._errands.ask(key, f"tell {run.id}", lambda: self._steps.tell(assignment))
        if found is None:
            return self.waiting(assignment.status, scene)
        patience = self._timings.tell_limit
        if found.failure is not None and now - (run.finished_at or now) < patience:
            self._errands.drop(key)
            # GitHub may refuse for a moment, but does not change its mind every second.
            pause = patience / 4 if isinstance(found.failure, FINAL) else timedelta(0)
            return self._again(assignment.status, found, pause)
        self.drop(key)
        outcome = run.outcome.value if run.outcome is not None else ""
        note = EventNote("Finished", f"The run ended {outcome}.")
        return Progress(chapters.finished(assignment.status, found.value, now), timedelta(0), note)

    async def close(self, key: ResourceKey, scene: Scene) -> Status:
        """End the run of a resource that goes for good; GitHub must not hold it up."""
        run = scene.run
        unfinished = run is not None and run.outcome is None
        status = self.cancel(key, scene).status if unfinished else scene.resource.status
        resource = scene.resource.model_copy(update={"status": status})
        assignment = self._assignment(key, replace(scene, resource=resource), "")
        comment: Comment | None = None
        with suppress(CallError, TimeoutError):
            async with asyncio.timeout(self._timings.probe_timeout.total_seconds()):
                comment = await self._steps.tell(assignment)
        return chapters.finished(status, comment, scene.now)

    def has_killed(self, key: ResourceKey, scene: Scene) -> bool:
        """Tell whether nothing of the run is left, as its own supervisor says."""
        run = scene.run
        known = self._errands.known(key, f"kill {run.id}") if run is not None else None
        return known is not None and known.failure is None

    def has_told(self, key: ResourceKey, scene: Scene) -> bool:
        """Tell whether the comment says what there is to say."""
        assignment = self._assignment(key, scene, "")
        known, wanted = assignment.status.comment, self._steps.digest(assignment)
        return not wanted or (known is not None and known.digest == wanted)

    def retell(self, key: ResourceKey, scene: Scene) -> Progress:
        """Tell the issue what became of the sandbox."""
        assignment = self._assignment(key, scene, "")
        if self.has_told(key, scene) or _is_under_way(assignment.status):
            return Progress(assignment.status)
        tag = f"retell {assignment.run.id} {self._steps.digest(assignment)}"
        found = self._errands.ask(key, tag, lambda: self._steps.tell(assignment))
        if found is None:
            return self.waiting(assignment.status, scene)
        if found.failure is not None:
            if assignment.status.comment is None and isinstance(found.failure, FINAL):
                return Progress(
                    assignment.status
                )  # no comment is wanted there: what was found stays
            self._errands.drop(key)
            wait = found.failure.retry_after
            later = timedelta(seconds=wait) if wait else self._timings.refused_check
            return Progress(assignment.status, later)
        return Progress(chapters.told(assignment.status, found.value))


def _is_under_way(status: Status) -> bool:
    """Tell whether the sandbox is being deleted: how that ended is told, not that it began."""
    record = status.sandbox_deletion
    return record is not None and not (record.success or record.skipped or record.error)
