"""The moves that bring a run forward: begin, prepare, execute, collect, publish."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

from issuesandbox.api.spec import DesiredState
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase
from issuesandbox.domain.cleanup import PUBLISH_DISABLED
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.chapters import WORKSPACE_LOST, Ending, Harvest
from issuesandbox.domain.runs.moves import Scene
from issuesandbox.domain.runs.origin import Origin, origin
from issuesandbox.domain.runs.rescue import is_saved
from issuesandbox.domain.situation import growing
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.errands import UNEXPECTED, Found
from issuesandbox.engine.runs.following import SURVIVES
from issuesandbox.engine.runs.mover import Mover, Progress
from issuesandbox.engine.runs.probing import MUTE
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import EventNote, ResourceKey

logger = logging.getLogger(__name__)

_MAX_CLONES = 4


class Onward(Mover):
    """Each move asks for one errand, and writes down what that found."""

    def begin(self, key: ResourceKey, scene: Scene) -> Progress:
        """Begin a run."""
        self.drop(key)
        resource, run_id = scene.resource, uuid4().hex[:12]
        status = chapters.begin(resource, run_id, scene.attempt, self._limits(resource), scene.now)
        self._switches.began(key.uid, run_id)
        begun = replace(scene, resource=resource.model_copy(update={"status": status}))
        self._steps.approach(self._assignment(key, begun, scene.sandbox_id or ""))
        came_by = origin(resource.status, scene.attempt)
        _log_lookup(key, scene, run_id, came_by)
        words = f"Run {run_id} begins; its sandbox {scene.sandbox_id} was {came_by}."
        return Progress(status, timedelta(0), EventNote("RunBegun", words))

    def start_over(self, key: ResourceKey, scene: Scene) -> Progress:
        """Begin the run again in a new sandbox."""
        self.drop(key)
        run = scene.run
        assert run is not None, "only a run that began can begin again"
        status = chapters.start_over(scene.resource.status, scene.attempt)
        _log_lookup(key, scene, run.id, Origin.RECREATED)
        if run.agent_started_at is None or is_saved(run):
            return Progress(status, timedelta(0))
        words = f"The sandbox of run {run.id} was lost with its work; the run begins again."
        return Progress(status, timedelta(0), EventNote(WORKSPACE_LOST, words, warning=True))

    def try_again(self, key: ResourceKey, scene: Scene) -> Progress:
        """Have the sandbox started that was stopped because it did not answer."""
        self._errands.drop(key)
        note = EventNote("Restarting", "The sandbox did not answer; it is started again.")
        return Progress(chapters.restarted(scene.resource.status), timedelta(0), note)

    def skip(self, _key: ResourceKey, scene: Scene) -> Progress:
        """Take note of a trigger that is ignored."""
        asked = scene.resource.spec.run
        trigger = asked.trigger if asked is not None else None
        return Progress(chapters.retriggered(scene.resource.status, trigger), timedelta(0))

    def prepare(self, key: ResourceKey, scene: Scene) -> Progress:
        """Prepare the workspace."""
        assignment = self._assignment(key, scene, scene.sandbox_id or "")
        run = assignment.run
        tries = run.clone_attempts, run.probe_misses, run.restarts
        tag = f"prepare {run.id} {run.attempt} {tries}"
        found = self._errands.ask(key, tag, lambda: self._steps.prepare(assignment))
        if found is None:
            return self.waiting(assignment.status, scene)
        if isinstance(found.value, Ending):
            return self._over(assignment.status, found.value, RunPhase.FINALIZING, scene.now)
        if found.value is not None:
            status = chapters.prepared(assignment.status, found.value, scene.now)
            return Progress(status, timedelta(0), EventNote("Cloned", "The workspace is ready."))
        if found.failure is not None and found.failure.code == MUTE:
            return self._again(chapters.missed_probe(assignment.status), found)
        if run.clone_attempts + 1 >= _MAX_CLONES:
            ending = Ending(Outcome.FAILED, "PrepareFailed", str(found.failure))
            return self._over(assignment.status, ending, RunPhase.FINALIZING, scene.now)
        pause = self._timings.settle_check * 4**run.clone_attempts
        return self._again(chapters.counted_clone(assignment.status), found, pause)

    def execute(self, key: ResourceKey, scene: Scene) -> Progress:
        """Follow the agent until it ends."""
        assignment = self._assignment(key, scene, scene.sandbox_id or "")
        status, run = assignment.status, assignment.run
        # Changed limits must reach the supervisor, so whoever follows begins anew with them.
        tag = f"follow {run.id} {run.attempt} {assignment.limits} {assignment.flags}"
        found = self._errands.ask(key, tag, lambda: self._steps.follow(assignment))
        signs = self._steps.signs(key)
        if signs is not None and run.agent_started_at is None:
            status = chapters.started(status, signs.started_at, assignment.limits)
        elif signs is not None and run.last_output_at is not None:
            late = signs.last_output_at - run.last_output_at >= timedelta(minutes=1)
            ended = found is not None and found.value is not None
            if late or ended:
                status = chapters.alive(status, signs.last_output_at)
        if found is None:
            return self.waiting(status, scene)
        if found.value is None:
            self._errands.drop(key)
            return self._again(status, found)
        end = found.value
        status = chapters.agent_ended(status, end.exit_code, end.words, scene.now, end.session_id)
        if not end.sure and end.ending is not None:
            reason = end.ending.reason or SURVIVES
            status = chapters.doubted(status, reason, end.words, scene.now)
        if end.ending is not None:
            return self._over(status, end.ending, RunPhase.COLLECTING, scene.now)
        assignment = replace(assignment, status=status)
        note = EventNote("AgentCompleted", end.words)
        done = end.collected
        # Whether anything is published may have been edited since. A run that by its flags hears no
        # stop, or goes by no limit, while its agent runs, must do so again before the gate.
        heeds = scene.enforced and not scene.deaf
        if done is not None and heeds and done.generation == scene.resource.metadata.generation:
            return replace(self._gathered(assignment, done.found, scene), earlier=note)
        # Collecting tells nobody anything, so it need not wait until that is written down.
        self._collected(key, assignment)
        return Progress(status, timedelta(0), note)

    def collect(self, key: ResourceKey, scene: Scene) -> Progress:
        """Collect what the agent left, and decide the push."""
        assignment = self._assignment(key, scene, scene.sandbox_id or "")
        found = self._collected(key, assignment)
        if found is None:
            return self.waiting(assignment.status, scene)
        if found.value is None:
            self._errands.drop(key)
            return self._again(assignment.status, found)
        return self._gathered(assignment, found.value, scene)

    def _gathered(self, assignment: Assignment, found: Harvest | Ending, scene: Scene) -> Progress:
        if isinstance(found, Ending):
            status, ending = assignment.status, found
            if ending.reason == SURVIVES:
                status = chapters.doubted(status, SURVIVES, ending.message or "", scene.now)
            return self._over(status, ending, RunPhase.COLLECTING, scene.now)
        now = scene.now
        status = chapters.harvested(assignment.status, found, now)
        if found.commit is None:
            ending = Ending(Outcome.SUCCEEDED, "NoChanges", "The agent changed nothing.")
            return self._over(status, ending, RunPhase.FINALIZING, now)
        if not assignment.publishes:
            ending = Ending(Outcome.SUCCEEDED, PUBLISH_DISABLED, "The work stays in the sandbox.")
            return self._over(status, ending, RunPhase.FINALIZING, now)
        status = chapters.gated(status, found.commit, assignment.old_tip, now)
        return Progress(status, timedelta(0), EventNote("Publishing", "The push was decided."))

    def _collected(
        self, key: ResourceKey, assignment: Assignment
    ) -> Found[Harvest | Ending] | None:
        tag = f"collect {assignment.run.id}"
        return self._errands.ask(key, tag, lambda: self._steps.collect(assignment))

    def publish(self, key: ResourceKey, scene: Scene) -> Progress:
        """Finish the push that was decided, and open the pull request."""
        sandbox = scene.resource.status.sandbox
        sandbox_id = scene.sandbox_id or (sandbox and sandbox.id) or ""
        assignment = self._assignment(key, scene, sandbox_id)
        tag = f"publish {assignment.run.id}"
        found = self._errands.ask(key, tag, lambda: self._steps.publish(assignment))
        if found is None:
            return Progress(assignment.status, self._timings.settle_check)
        status, push, now = assignment.status, assignment.run.publish, scene.now
        assert push is not None, "only a decided push is sent"
        if found.value is None:
            self._errands.drop(key)
            # Whoever pushes knows when to give up; only an error of our own would go on for ever.
            ours = found.failure is not None and found.failure.code == UNEXPECTED
            if not ours or now - push.at < self._timings.work_hold:
                return self._again(status, found)
            ending = Ending(Outcome.FAILED, "PublishFailed", str(found.failure))
            return self._over(status, ending, _after_no_push(scene), now)
        result = found.value
        if result.pushed:
            status = chapters.pushed(status, now)
        if result.ending is None:
            self._errands.drop(key)
            return self._unproposed(status, result.setback, scene)
        if result.saved is not None:
            status = chapters.saved(status, result.saved)
        if result.pull is not None:
            status = chapters.proposed(status, result.pull, now)
        elif result.ending.outcome is Outcome.SUCCEEDED:
            status = chapters.delivered(status, now)
        safe = result.pushed or result.saved is not None
        phase = RunPhase.FINALIZING if safe else _after_no_push(scene)
        return self._over(status, result.ending, phase, now)

    def _unproposed(self, status: Status, setback: CallError | None, scene: Scene) -> Progress:
        """Come again for the pull request; the branch is pushed and needs no sandbox any more."""
        run, now, shortest = status.run, scene.now, self._timings.settle_check
        assert run is not None, "only a run is published"
        assert run.publish is not None, "only a decided push is proposed"
        confirmed = run.publish.confirmed_at or now
        pause = growing(now - confirmed, shortest, self._timings.unknown_check)
        asked = setback.retry_after if setback is not None else None
        pause = max(pause, timedelta(seconds=asked or 0))
        if run.deadlines is not None and run.deadlines.run is not None:
            # The last try is made at the end of the run.
            pause = min(pause, max(run.deadlines.run - now, shortest))
        if scene.run is not None and scene.run.publish == run.publish:
            return Progress(status, pause)
        words = f"Branch {run.branch} is pushed, but there is no pull request yet: {setback}"
        return Progress(status, pause, EventNote("PullRequestDelayed", words, warning=True))


def _after_no_push(scene: Scene) -> RunPhase:
    """Return what follows a push that failed: the work is saved, but not after a stop."""
    stopped = scene.resource.spec.desired_state is DesiredState.STOPPED
    return RunPhase.FINALIZING if stopped else RunPhase.COLLECTING


def _log_lookup(key: ResourceKey, scene: Scene, run_id: str, came_by: Origin) -> None:
    """Say which sandbox was looked up for a run, and how the run came by it."""
    issue, sandbox = scene.resource.spec.issue, scene.resource.status.sandbox
    about = {
        "uid": key.uid,
        "resource": str(key),
        "issue": f"{issue.repository}#{issue.number}",
        "run": run_id,
        "attempt": scene.attempt,
    }
    logger.info("lookup", extra={**about, "sandbox": sandbox.name if sandbox else None})
    logger.info(came_by.value, extra={**about, "sandbox": scene.sandbox_id})
