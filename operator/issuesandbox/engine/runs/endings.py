"""The moves that end a run: stop, limits, lost sandboxes, saved work and the last word."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.status import Comment, Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import WORKSPACE_LOST, Ending
from issuesandbox.domain.runs.limits import overdue
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.runs.rescue import Patience
from issuesandbox.domain.situation import growing
from issuesandbox.engine.runs.errands import Found
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.mover import Mover, Progress
from issuesandbox.engine.runs.patience import FINAL
from issuesandbox.engine.runs.saving import PAUSED
from issuesandbox.engine.runs.steps import Rescued
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
        """Save what a run that ended badly left in its sandbox, for as long as that may take."""
        status, run = scene.resource.status, scene.run
        assert run is not None, "only a run that began leaves work"
        if run.parent is None or run.agent_started_at is None:
            return Progress(chapters.finalizing(self._as_heard(key, scene)), timedelta(0))
        # A deletion changes where work may go.
        tag = f"rescue {run.id} {scene.deleting}"
        unreachable = scene.sandbox_id is None and scene.still and not scene.returning
        if unreachable and not self._errands.has(key, tag):
            return self._lost(key, scene, status, "its sandbox does not run any more")
        sandbox_id = scene.sandbox_id or (status.sandbox and status.sandbox.id) or ""
        assignment = self._assignment(key, scene, sandbox_id)
        found = self._errands.ask(key, tag, lambda: self._steps.rescue(assignment))
        if found is None:
            return Progress(status, self._timings.settle_check)
        rescued = found.value or Rescued(failure=found.failure)
        if rescued.harvest is not None:
            status = chapters.harvested(status, rescued.harvest, scene.now)
        if rescued.failure is not None:
            return self._unsaved(key, scene, status, rescued.failure)
        if rescued.saved is not None:
            status = chapters.saved(status, rescued.saved)
        return Progress(chapters.finalizing(status), timedelta(0))

    def salvage(self, key: ResourceKey, scene: Scene) -> Progress | None:
        """Save what lies in a sandbox that is given up during its run, in one try; None: go on."""
        status, run = scene.resource.status, scene.run
        assert run is not None, "only a run that began leaves work"
        sandbox_id = (status.sandbox and status.sandbox.id) or ""
        assignment = self._assignment(key, scene, sandbox_id)
        tag = f"salvage {run.id} {run.attempt}"
        found = self._errands.ask(key, tag, lambda: self._steps.salvage(assignment))
        if found is None:
            return Progress(status, self._timings.settle_check)
        saved = found.value.saved if found.value is not None else None
        if saved is None:
            # Whatever it was, the run needs another sandbox.
            return None
        words = f"The work of run {run.id} in sandbox {sandbox_id} was saved in {saved.ref}."
        return Progress(chapters.saved(status, saved), None, EventNote("WorkSaved", words))

    def _unsaved(
        self, key: ResourceKey, scene: Scene, status: Status, failure: CallError
    ) -> Progress:
        """Come again to save work, or give it up."""
        if failure.code == SURVIVES:
            status = chapters.doubted(status, SURVIVES, str(failure), scene.now)
        patience = Patience.of(scene.resource, self._timings, scene.now)
        waits = failure.code == PAUSED and not scene.deleting
        # However late this replica came, it has tried once.
        if isinstance(failure, Invalid) or (scene.now >= patience.until and not waits):
            return self._lost(key, scene, status, str(failure))
        self._errands.drop(key)
        tried_for = scene.now - patience.began
        pause = growing(tried_for, self._timings.settle_check, self._timings.work_hold / 3)
        again = self._again(status, Found(failure=failure), pause)
        # In time for the patch that is the last resort.
        left = max(patience.branch_until - scene.now, self._timings.settle_check)
        return replace(again, next_check=min(again.next_check or left, left))

    def _lost(self, key: ResourceKey, scene: Scene, status: Status, why: str) -> Progress:
        """Write down and tell that work was not saved, where it was to be."""
        scene = replace(scene, resource=scene.resource.model_copy(update={"status": status}))
        status, run = self._as_heard(key, scene), scene.run
        assert run is not None, "only a run that began leaves work"
        if scene.recovery.save_work is SaveWork.OFF:
            return Progress(chapters.finalizing(status), timedelta(0))
        words = f"The work of run {run.id} was not saved: {why}. It goes with its sandbox."
        note = EventNote(WORKSPACE_LOST, words, warning=True)
        return Progress(chapters.lost(status, words, scene.now), timedelta(0), note)

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
