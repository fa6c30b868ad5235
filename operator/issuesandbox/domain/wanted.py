"""Whether a resource wants its sandbox running, stopped or gone right now, and until when.

Looks at what is declared and persisted, never at Daytona: what is seen there, the decision
table sets against the answer. Pure and total.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from issuesandbox.api.conditions import ConditionStatus, ConditionType, find
from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec import DesiredState
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase, RunStatus
from issuesandbox.domain.cleanup import (
    CLEANUP,
    PUBLISH_DISABLED,
    CleanupPolicy,
    Finish,
    Stage,
    later,
    schedule,
)
from issuesandbox.domain.model import Memory, Revival, Want
from issuesandbox.domain.runs.health import Cure, cure_of
from issuesandbox.domain.states import AT_REST, Sight

# A run that ends so may leave an agent behind: only a stop of the sandbox surely ends it.
_UNSAFE = frozenset({Outcome.CANCELLED, Outcome.TIMED_OUT})
_STOPPING_STATES = frozenset({"stopping", "pausing"})


class IdleTimings(Protocol):
    """The durations that these rules need."""

    @property
    def idle_limit(self) -> timedelta:
        """How long a sandbox without a run may be idle before it is stopped."""

    @property
    def keep_alive_limit(self) -> timedelta:
        """How long keepAlive holds a sandbox that nobody uses."""

    @property
    def work_hold(self) -> timedelta:
        """How long a push or a rescue of work may hold a sandbox that is to end."""

    @property
    def rescue_hold(self) -> timedelta:
        """How long work is tried to be saved where nothing else has to end meanwhile."""


class Turn(StrEnum):
    """Whether there is something to run."""

    NONE = "nothing to run"
    WAITING = "a trigger waits to be admitted"
    ADMITTED = "a run is admitted and not finished"


@dataclass(frozen=True, slots=True)
class Lodging:
    """The sandbox as it is persisted."""

    state: str | None = None
    since: datetime | None = None
    last_activity: datetime | None = None
    stopped_by_us: bool = False
    """It was seen stopped when that was wanted, and has not been wanted running since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the answer rests on, except the time."""

    policy: CleanupPolicy
    deleting: bool = False
    stop: bool = False
    """desiredState is Stopped."""
    stopping: bool = False
    """A stop of the present run is being carried out, whatever desiredState says by now."""
    enforced: bool = True
    """A run that is out of time has its sandbox stopped for it."""
    paused: bool = False
    sandbox_only: bool = False
    turn: Turn = Turn.NONE
    keep_alive: bool = False
    finish: Finish | None = None
    mute: bool = False
    """The sandbox did not answer and is to be restarted."""
    doubted: bool = False
    """The agent's end was not seen, or something of it could not be killed."""
    settled: bool = False
    """The finished run is published, told and, if it was ended, seen not running any more."""
    deletion_began: bool = False
    hold_until: datetime | None = None
    """Till then a push or a rescue of work needs the sandbox as it is."""
    sandbox: Lodging | None = None
    """None if there is no sandbox and none can land any more."""

    @property
    def must_stop(self) -> bool:
        """Tell whether the run ended so that its sandbox has to be stopped for it."""
        return self.finish is not None and _ends_unsafe(self.finish.outcome, self.enforced)

    @property
    def settled_at(self) -> datetime | None:
        """Return the end of the last run if nothing else is to come of this resource."""
        open_ended = self.deleting or self.paused or self.sandbox_only or not self.settled
        if open_ended or self.turn is not Turn.NONE or self.finish is None:
            return None
        return self.finish.at


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted now, why, and when that changes; `until` None: not by time."""

    want: Want
    reason: str
    message: str
    until: datetime | None = None
    archive: bool = False
    """Once stopped, the sandbox is to be archived."""
    revival: Revival = Revival.ANY


_NEEDED = Wanted(Want.RUNNING, "RunAdmitted", "A run needs the sandbox.")
_TELLING = replace(
    _NEEDED, message="The last word of the run is not said yet.", revival=Revival.NONE
)
_MUTE = Wanted(
    Want.STOPPED, "Unresponsive", "The sandbox does not answer: it is stopped, then started again."
)
_REST = Wanted(Want.REST, "AtRest", "Nothing is wanted until the next trigger.")


def wanted(facts: Facts, timings: IdleTimings, now: datetime) -> Wanted:
    """Return what the resource wants of its sandbox."""
    answer = _answer(facts, timings, now)
    if facts.hold_until is None or now >= facts.hold_until:
        return answer
    text = "A push or a rescue of work needs the sandbox a moment longer."
    if facts.finish is not None and not (facts.stop or facts.stopping or facts.deleting):
        # Whoever stops it now does so before the work is saved that lies on its disk.
        until, same = facts.hold_until, Revival.SAME
        return Wanted(Want.RUNNING, "WorkAtStake", text, until, revival=same)
    ends = answer.want in (Want.STOPPED, Want.GONE)
    return Wanted(Want.REST, "WorkAtStake", text, facts.hold_until) if ends else answer


def _answer(facts: Facts, timings: IdleTimings, now: datetime) -> Wanted:
    if facts.deleting:
        return Wanted(Want.GONE, "ResourceDeleted", "The resource is being deleted.")
    if facts.deletion_began:
        return Wanted(Want.GONE, CLEANUP, "The cleanup of the sandbox has begun.")
    if facts.stop or facts.stopping:
        return _stopped(facts, timings, now)
    unsafe = facts.doubted or facts.must_stop
    if facts.finish is not None and unsafe and not facts.settled:
        text = f"The run ended {facts.finish.outcome}: nothing of it may go on."
        return Wanted(Want.STOPPED, f"Run{facts.finish.outcome}", text)
    if facts.sandbox_only:
        return Wanted(Want.RUNNING, "SandboxOnly", "The resource asks for a running sandbox.")
    return _for_runs(facts, timings, now)


def _stopped(facts: Facts, timings: IdleTimings, now: datetime) -> Wanted:
    answer = Wanted(Want.STOPPED, "StopRequested", "The sandbox is to be stopped, as asked.")
    finish = facts.finish
    ended = finish is not None and facts.settled and not facts.sandbox_only
    if not ended or facts.sandbox is None or facts.paused:
        return answer
    after = _cleaned_up(facts, facts.sandbox, timings, now)
    if after.want is Want.GONE:
        return after
    return replace(answer, until=after.until, archive=after.archive)


def _for_runs(facts: Facts, timings: IdleTimings, now: datetime) -> Wanted:
    sandbox = facts.sandbox
    if facts.turn is Turn.ADMITTED:
        return _MUTE if facts.mute and not facts.paused else _NEEDED
    if sandbox is None:
        return _REST
    alive_until = _alive_until(facts, sandbox, timings)
    if alive_until is not None and not sandbox.stopped_by_us and now < alive_until:
        text = "Kept alive for follow-ups as long as it is used."
        return Wanted(Want.RUNNING, "KeptAlive", text, alive_until, revival=Revival.NONE)
    if facts.paused:
        return _REST
    if facts.finish is not None and facts.turn is not Turn.WAITING and facts.settled:
        return _cleaned_up(facts, sandbox, timings, now)
    idle = _idle(facts, sandbox, timings, now)
    telling = facts.finish is not None and facts.turn is Turn.NONE and idle.until is not None
    return replace(_TELLING, until=idle.until) if telling else idle


def _cleaned_up(facts: Facts, sandbox: Lodging, timings: IdleTimings, now: datetime) -> Wanted:
    assert facts.finish is not None, "only a finished run is cleaned up after"
    finish = replace(facts.finish, alive_until=_alive_until(facts, sandbox, timings))
    due = schedule(facts.policy, finish, now)
    ended = f"The run ended {finish.outcome}; its sandbox is {due.stage}"
    if due.stage is Stage.DELETE:
        return Wanted(Want.GONE, CLEANUP, f"{ended}.", due.until)
    text = f"{ended} until {due.until:%Y-%m-%dT%H:%M:%SZ}." if due.until else f"{ended}."
    archive = due.stage is Stage.ARCHIVE
    # A person may start what we stopped, to look into it: from then on only idleness counts.
    done = sandbox.stopped_by_us and not (archive and sandbox.state == "stopped")
    left = due.stage is Stage.LEAVE or (finish.outcome is Outcome.TIMED_OUT and not facts.enforced)
    if not left and not done:
        return Wanted(Want.STOPPED, f"Run{finish.outcome}", text, due.until, archive)
    idle = _idle(facts, sandbox, timings, now)
    known = [each for each in (idle.until, due.until) if each is not None]
    return replace(idle, message=text, until=min(known, default=None))


def _idle(facts: Facts, sandbox: Lodging, timings: IdleTimings, now: datetime) -> Wanted:
    stop = Wanted(Want.STOPPED, "Idle", "Nobody uses the sandbox.")
    if sandbox.state in _STOPPING_STATES:
        return stop
    if sandbox.state != "started" or sandbox.since is None:
        return _REST
    signs = [sandbox.since, sandbox.last_activity, facts.finish.at if facts.finish else None]
    quiet_at = later(max(each for each in signs if each is not None), timings.idle_limit)
    return stop if quiet_at <= now else replace(_REST, until=quiet_at)


def _alive_until(facts: Facts, sandbox: Lodging, timings: IdleTimings) -> datetime | None:
    finish = facts.finish
    if finish is None or not facts.keep_alive or finish.outcome is not Outcome.SUCCEEDED:
        return None
    if sandbox.stopped_by_us:
        # Daytona counts its own stop as activity, so only our own times are left to go by.
        return max(later(finish.at, timings.keep_alive_limit), sandbox.since or finish.at)
    return later(max(finish.at, sandbox.last_activity or finish.at), timings.keep_alive_limit)


def stop_reason(before: str | None, wish: Wanted, sight: Sight) -> str | None:
    """Return what to persist as the reason of our stop; it also proves that the stop was seen."""
    if wish.want is Want.RUNNING and sight is Sight.RUNNING:
        return None
    if wish.want is Want.STOPPED and sight in AT_REST:
        return before or wish.reason
    return before


def facts_of(
    resource: IssueSandbox,
    memory: Memory,
    policy: CleanupPolicy,
    timings: IdleTimings,
    *,
    admitted: bool,
    last_activity: datetime | None = None,
) -> Facts:
    """Return what the answer rests on, for a resource as it is persisted."""
    spec, status, metadata = resource.spec, resource.status, resource.metadata
    run = status.run
    unfinished = run is not None and run.outcome is None
    return Facts(
        policy=policy,
        deleting=metadata.deletion_timestamp is not None,
        stop=spec.desired_state is DesiredState.STOPPED,
        stopping=unfinished and status.stop_requested_at is not None,
        paused=metadata.annotations.get(ANNOTATION_PAUSED) == "true",
        sandbox_only=spec.run is None,
        turn=_turn(resource, admitted=admitted),
        keep_alive=spec.run is not None and spec.run.keep_alive,
        finish=_finish(run),
        mute=cure_of(run, memory.attempt) is Cure.RESTART,
        doubted=_is_doubted(status),
        settled=run is not None and run.phase is RunPhase.FINISHED,
        deletion_began=memory.cleanup_began is not None,
        hold_until=_hold_until(resource, timings),
        sandbox=_lodging(resource, memory, last_activity),
    )


def is_unsafe(status: Status, *, enforced: bool = True) -> bool:
    """Tell whether the last run may have left an agent behind, whatever the policy says."""
    run = status.run
    return run is not None and (_ends_unsafe(run.outcome, enforced) or _is_doubted(status))


def _ends_unsafe(outcome: Outcome | None, enforced: bool) -> bool:
    return outcome in _UNSAFE and (enforced or outcome is not Outcome.TIMED_OUT)


def _is_doubted(status: Status) -> bool:
    completed = find(status.conditions, ConditionType.AGENT_COMPLETED)
    return completed is not None and completed.status is ConditionStatus.FALSE


def _turn(resource: IssueSandbox, *, admitted: bool) -> Turn:
    run = resource.status.run
    if run is not None and run.outcome is None:
        return Turn.ADMITTED
    if resource.spec.run is None or (run is not None and not asks_again(resource)):
        return Turn.NONE
    return Turn.ADMITTED if admitted else Turn.WAITING


def asks_again(resource: IssueSandbox) -> bool:
    """Tell whether a run is finished and another one was asked for since."""
    run, asked = resource.status.run, resource.spec.run
    if run is None or run.outcome is None or asked is None:
        return False
    return asked.trigger != run.trigger


def _finish(run: RunStatus | None) -> Finish | None:
    if run is None or run.outcome is None:
        return None
    unpublished = run.reason == PUBLISH_DISABLED
    return Finish(run.outcome, run.finished_at or run.started_at, unpublished=unpublished)


def time_to_save(resource: IssueSandbox, timings: IdleTimings) -> timedelta:
    """Return how long work may be saved after the end of its run.

    Only a moment where a run waits for another sandbox, or where this one is to stop or to go.
    """
    run, stop = resource.status.run, resource.spec.desired_state is DesiredState.STOPPED
    ending = stop or resource.metadata.deletion_timestamp is not None
    waits = run is not None and run.outcome is None
    short = waits or ending or is_unsafe(resource.status)
    return timings.work_hold if short else timings.rescue_hold


def _hold_until(resource: IssueSandbox, timings: IdleTimings) -> datetime | None:
    run = resource.status.run
    if run is None:
        return None
    if run.outcome is None:
        push = run.publish
        pending = push is not None and push.confirmed_at is None
        return later(push.at, timings.work_hold) if push is not None and pending else None
    if run.finished_at is None or run.phase in (RunPhase.FINALIZING, RunPhase.FINISHED):
        return None
    return later(run.finished_at, time_to_save(resource, timings))


def _lodging(
    resource: IssueSandbox, memory: Memory, last_activity: datetime | None
) -> Lodging | None:
    if memory.sandbox_id is None and memory.open_create is None:
        return None
    sandbox = resource.status.sandbox
    return Lodging(
        state=memory.state,
        since=memory.state_since,
        last_activity=last_activity,
        stopped_by_us=sandbox is not None and sandbox.stop_reason is not None,
    )
