"""What a run needs next: one readable list of rules, pure and total.

A run moves `Preparing → Executing → Collecting → Publishing → Finalizing → Finished`; where it
is, the status says, so any replica goes on from there. Knows nothing of how a move is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from issuesandbox.api.conditions import ConditionType, find
from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.spec_run import OnNewTrigger
from issuesandbox.api.status_run import EffectiveSandbox, RunPhase, RunStatus
from issuesandbox.domain.cleanup import CleanupPolicy
from issuesandbox.domain.defaults import RecoveryPolicy
from issuesandbox.domain.flags import ALL_ON, FlagSet
from issuesandbox.domain.runs.health import Cure, cure_of
from issuesandbox.domain.runs.limits import overdue
from issuesandbox.domain.runs.rescue import is_going_on, is_saved
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.wanted import Turn, is_unsafe


class Move(StrEnum):
    """What is to be done for a run."""

    NONE = "nothing"
    BEGIN = "begin a run"
    REFUSE = "end a run that cannot have a sandbox"
    WITHDRAW = "end a run that was stopped before it began"
    SKIP = "take note of a trigger that is ignored"
    NOTE_STOP = "take note of the stop"
    KILL = "kill the agent"
    CANCEL = "write that the run was cancelled"
    TIME_OUT = "write that the run is over its limit"
    TRY_AGAIN = "use the sandbox that was restarted"
    START_OVER = "begin again in the new sandbox"
    GIVE_UP = "end a run that lost too many sandboxes"
    PREPARE = "prepare the workspace"
    EXECUTE = "follow the agent"
    COLLECT = "collect the work"
    PUBLISH = "push and open the pull request"
    RESCUE = "save the work"
    TELL = "tell the issue how it ended, and finish"
    RETELL = "tell the issue what became of the sandbox"


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything the next move is decided on."""

    resource: IssueSandbox
    turn: Turn
    now: datetime
    sandbox_id: SandboxId | None = None
    """The sandbox, if it is seen running and ours to use."""
    attempt: int = 0
    still: bool = False
    """It is proven that nothing in the sandbox runs any more."""
    returning: bool = False
    """It does not run, but is being brought back."""
    doomed: bool = False
    """It is there, but is about to be given up."""
    dead_end: str | None = None
    """Why there will be no sandbox, where that is final."""
    debounce: timedelta = timedelta(0)
    """How old a run must be before a new trigger replaces it."""
    flags: FlagSet = ALL_ON
    deaf: bool = False
    """The run hears no stop: a feature flag is off."""
    policy: CleanupPolicy = field(default_factory=CleanupPolicy)
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)
    asked: EffectiveSandbox | None = None
    """What the sandbox was asked for; None where it was made from an older spec."""

    @property
    def run(self) -> RunStatus | None:
        """Return the present run, or the last one."""
        return self.resource.status.run

    @property
    def deleting(self) -> bool:
        """Tell whether the resource is being deleted."""
        return self.resource.metadata.deletion_timestamp is not None

    @property
    def enforced(self) -> bool:
        """Tell whether a run that is out of time is ended, not only marked."""
        return self.flags.authoritative_timeout

    @property
    def paused(self) -> bool:
        """Tell whether somebody asked for nothing to be changed."""
        return self.resource.metadata.annotations.get(ANNOTATION_PAUSED) == "true"

    @property
    def stop_asked(self) -> bool:
        """Tell whether the spec asks for an end."""
        return self.deleting or self.resource.spec.desired_state is DesiredState.STOPPED

    @property
    def has_new_trigger(self) -> bool:
        """Tell whether the spec names another trigger than the present run's."""
        asked, run = self.resource.spec.run, self.run
        return asked is not None and run is not None and asked.trigger != run.trigger

    @property
    def replaced_at(self) -> datetime | None:
        """Return from when on the present run is to give way to a new trigger."""
        run = self.run
        if run is None or not self.has_new_trigger or _policy(self) is not OnNewTrigger.REPLACE:
            return None
        return run.started_at + self.debounce


def next_move(scene: Scene) -> Move:
    """Return what the run needs next."""
    run = scene.run
    if run is not None and run.outcome is None:
        return _during(scene, run)
    if run is not None and run.phase is not RunPhase.FINISHED:
        return _afterwards(scene, run)
    return _between(scene)


def _during(scene: Scene, run: RunStatus) -> Move:
    if run.publish is not None:
        # The point of no return is behind: whatever was asked since, the push is finished.
        return Move.PUBLISH
    if is_ending(scene):
        if scene.resource.status.stop_requested_at is None:
            return Move.NOTE_STOP
        return Move.CANCEL if scene.still else Move.KILL
    if overdue(run, scene.now, enforced=scene.enforced) is not None:
        return Move.TIME_OUT
    return Move.NONE if scene.paused else _onwards(scene, run)


def _onwards(scene: Scene, run: RunStatus) -> Move:
    if scene.has_new_trigger and _policy(scene) is OnNewTrigger.IGNORE:
        return Move.SKIP
    if cure_of(run, scene.attempt) is Cure.RESTART and scene.still:
        return Move.TRY_AGAIN
    if scene.sandbox_id is None:
        return Move.GIVE_UP if scene.dead_end is not None else Move.NONE
    if run.attempt != scene.attempt:
        attempts = run.recreations + 1
        return Move.START_OVER if attempts < scene.recovery.max_attempts else Move.GIVE_UP
    return {
        RunPhase.PREPARING: Move.PREPARE,
        RunPhase.EXECUTING: Move.EXECUTE,
        RunPhase.COLLECTING: Move.COLLECT,
    }.get(run.phase, Move.NONE)


def is_ending(scene: Scene) -> bool:
    """Tell whether the present run is to be cancelled."""
    if scene.deaf:
        return False
    if scene.stop_asked or scene.resource.status.stop_requested_at is not None:
        return True
    replaced_at = scene.replaced_at
    return replaced_at is not None and replaced_at <= scene.now and not scene.paused


def is_to_be_salvaged(scene: Scene) -> bool:
    """Tell whether a sandbox that is given up holds work of a run that goes on, or gives up."""
    run = scene.run
    if run is None or not scene.doomed or not is_going_on(run) or is_ending(scene):
        return False
    began = run.parent is not None and run.agent_started_at is not None
    return began and run.attempt == scene.attempt and not is_saved(run)


def _policy(scene: Scene) -> OnNewTrigger:
    asked = scene.resource.spec.run
    return asked.on_new_trigger if asked is not None else OnNewTrigger.QUEUE


def _afterwards(scene: Scene, run: RunStatus) -> Move:
    if run.phase is not RunPhase.FINALIZING:
        if not scene.paused or scene.deleting:
            return Move.RESCUE
        # The work waits for the end of the pause; what runs in the sandbox does not.
        return Move.NONE if scene.still else Move.KILL
    if is_unsafe(scene.resource.status, enforced=scene.enforced) and not scene.still:
        return Move.KILL if scene.sandbox_id is not None else Move.NONE
    return Move.NONE if scene.paused else Move.TELL


def _between(scene: Scene) -> Move:
    if scene.deleting or scene.paused:
        return Move.NONE
    if scene.turn is Turn.NONE:
        return Move.RETELL if scene.run is not None else Move.NONE
    if scene.stop_asked:
        return Move.WITHDRAW if _had_begun(scene) else Move.NONE
    ready = scene.turn is Turn.ADMITTED and scene.sandbox_id is not None
    if scene.dead_end is not None:
        return Move.REFUSE
    return Move.BEGIN if ready else Move.NONE


def _had_begun(scene: Scene) -> bool:
    """Tell whether something was on its way for the trigger: a sandbox, or a place in the queue."""
    status = scene.resource.status
    queued = find(status.conditions, ConditionType.ADMITTED) is not None
    return status.sandbox is not None or status.intent is not None or queued
