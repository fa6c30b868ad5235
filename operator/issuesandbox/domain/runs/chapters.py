"""How each step of a run is written into the status. Pure: the old status in, the new one out.

An outcome is written once: whoever comes later finds it and leaves it alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from issuesandbox.api.conditions import Condition, ConditionStatus, ConditionType, upsert
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec_cleanup import CleanupFields, RecoveryFields
from issuesandbox.api.status import Comment, Status, Summary
from issuesandbox.api.status_run import (
    Change,
    ChangeTotals,
    Effective,
    EffectiveSandbox,
    Outcome,
    Parent,
    Publication,
    PullRequest,
    RunPhase,
    RunStatus,
    SavedWork,
    TokenUsage,
)
from issuesandbox.api.status_sandbox import Counters
from issuesandbox.domain.deletion_record import remembered
from issuesandbox.domain.runs.limits import RunLimits, deadlines
from issuesandbox.domain.usage import with_run

# The reason in a condition, and of an Event: there was work, and it is nowhere safe.
WORKSPACE_LOST = "WorkspaceLost"
_OF_A_RUN = (
    ConditionType.REPOSITORY_CLONED,
    ConditionType.AGENT_COMPLETED,
    ConditionType.CHANGES_COLLECTED,
    ConditionType.PUBLISHED,
    ConditionType.FINISHED,
)
# What is not reached by a run that ends in one of these phases.
_FAILING = {
    RunPhase.PREPARING: ConditionType.REPOSITORY_CLONED,
    RunPhase.PUBLISHING: ConditionType.PUBLISHED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, in the words of its status."""

    outcome: Outcome
    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Preparation:
    """What preparing found out."""

    parent: Parent
    branch: str
    session_id: str
    prompt_hash: str


@dataclass(frozen=True, slots=True)
class Harvest:
    """What collecting found."""

    commit: str | None = None
    """The commit made from the work; None if nothing changed."""
    changes: tuple[Change, ...] = ()
    totals: ChangeTotals | None = None
    """None if nothing could be collected."""
    summary: str | None = None
    tests: str | None = None
    usage: TokenUsage | None = None
    transcript: str | None = None


def begin(
    resource: IssueSandbox, run_id: str, attempt: int | None, limits: RunLimits, now: datetime
) -> Status:
    """Begin a run; the one before moves to the history."""
    status, asked = resource.status, resource.spec.run
    run = RunStatus(
        id=run_id,
        attempt=attempt,
        phase=RunPhase.PREPARING,
        trigger=asked.trigger if asked is not None else None,
        started_at=now,
        effective=Effective(limits=limits.recorded(), sandbox=_same_sandbox(status, attempt)),
    )
    run = run.model_copy(update={"deadlines": deadlines(run, limits)})
    counters = status.counters or Counters()
    kept = tuple(each for each in status.conditions if each.type not in _OF_A_RUN)
    return status.model_copy(
        update={
            "run": run,
            "history": remembered(status),
            "sandbox_deletion": None,
            "summary": None,
            "stop_requested_at": None,
            "conditions": kept,
            "counters": counters.model_copy(update={"runs": counters.runs + 1}),
        }
    )


def _same_sandbox(status: Status, attempt: int | None) -> EffectiveSandbox | None:
    """Return what the sandbox was asked for, if the run before had the same one."""
    before = status.run
    if before is None or before.effective is None or before.attempt != attempt:
        return None
    return before.effective.sandbox


def start_over(status: Status, attempt: int) -> Status:
    """Begin the run again from Preparing, in the sandbox that replaced the lost one."""
    run = _run(status)
    effective = (run.effective or Effective()).model_copy(update={"sandbox": None})
    return _changed(
        status,
        effective=effective,
        attempt=attempt,
        phase=RunPhase.PREPARING,
        recreations=run.recreations + 1,
        probe_misses=0,
        restarts=0,
        agent_started_at=None,
        session_id=None,
        exit_code=None,
    )


def prepared(status: Status, found: Preparation, now: datetime) -> Status:
    """Write down what the work is based on, before the agent starts."""
    status = _changed(
        status,
        phase=RunPhase.EXECUTING,
        parent=found.parent,
        branch=found.branch,
        session_id=found.session_id,
        prompt_hash=found.prompt_hash,
    )
    text = f"The repository is at {found.parent.commit[:12]}."
    return _noted(status, ConditionType.REPOSITORY_CLONED, ("Cloned", text), now)


def started(status: Status, at: datetime, limits: RunLimits) -> Status:
    """Write down that the agent was started; from now on nobody starts it again."""
    run = _run(status).model_copy(update={"agent_started_at": at, "last_output_at": at})
    return _changed(
        status, agent_started_at=at, last_output_at=at, deadlines=deadlines(run, limits)
    )


def limited(status: Status, limits: RunLimits) -> Status:
    """Let changed limits take effect at once, from the stored starts."""
    run = _run(status)
    effective = (run.effective or Effective()).model_copy(update={"limits": limits.recorded()})
    return _changed(status, effective=effective, deadlines=deadlines(run, limits))


def ruled(
    status: Status,
    cleanup: CleanupFields,
    recovery: RecoveryFields,
    asked: EffectiveSandbox | None = None,
) -> Status:
    """Write down what rules the sandbox, as long as there is a run or a sandbox to rule.

    What it was asked for stays as it is: an edit holds for the next one.
    """
    run, sandbox = status.run, status.sandbox
    if run is None or (run.outcome is not None and (sandbox is None or sandbox.id is None)):
        return status
    before = run.effective or Effective()
    sandbox_asked = before.sandbox or asked
    effective = before.model_copy(
        update={"cleanup": cleanup, "recovery": recovery, "sandbox": sandbox_asked}
    )
    return _changed(status, effective=effective) if effective != before else status


def agent_ended(
    status: Status,
    exit_code: int | None,
    verdict: str,
    now: datetime,
    session_id: str | None = None,
) -> Status:
    """Write down that the agent has ended by itself; its work is collected next."""
    # Some agents choose their session themselves.
    session_id = session_id or _run(status).session_id
    status = _changed(status, phase=RunPhase.COLLECTING, exit_code=exit_code, session_id=session_id)
    return _noted(status, ConditionType.AGENT_COMPLETED, ("Completed", verdict), now)


def doubted(status: Status, reason: str, words: str, now: datetime) -> Status:
    """Write down that the agent may still run: its sandbox is stopped, whatever the policy."""
    return _noted(
        status, ConditionType.AGENT_COMPLETED, (reason, words), now, ConditionStatus.FALSE
    )


def harvested(status: Status, harvest: Harvest, now: datetime) -> Status:
    """Write down what the agent left behind."""
    status = _changed(
        used(status, harvest),
        commit=harvest.commit,
        changes=harvest.changes or None,
        change_totals=harvest.totals,
        transcript=harvest.transcript,
    )
    summary = Summary(text=harvest.summary or None, tests=harvest.tests, changes=harvest.totals)
    status = status.model_copy(update={"summary": summary})
    if harvest.totals is None:
        return status
    text = f"{harvest.totals.files} files changed."
    return _noted(status, ConditionType.CHANGES_COLLECTED, ("Collected", text), now)


def used(status: Status, harvest: Harvest) -> Status:
    """Write down what the agent used up, and where its output is."""
    run = _run(status)
    if run.outcome is not None and run.usage is None and harvest.usage is not None:
        # The outcome was written before this was known, so it is added up now.
        status = status.model_copy(update={"usage": with_run(status.usage, harvest.usage)})
    transcript = harvest.transcript or run.transcript
    return _changed(status, usage=harvest.usage or run.usage, transcript=transcript)


def gated(status: Status, commit: str, old: str, now: datetime) -> Status:
    """Decide the push: written as the last step before it is sent."""
    publication = Publication(commit=commit, old=old, at=now)
    return _changed(status, phase=RunPhase.PUBLISHING, publish=publication)


def pushed(status: Status, now: datetime) -> Status:
    """Write down that the remote has the commit."""
    publication = _run(status).publish
    assert publication is not None, "only a decided push is confirmed"
    confirmed = publication.model_copy(update={"confirmed_at": publication.confirmed_at or now})
    return _changed(status, publish=confirmed)


def proposed(status: Status, pull: PullRequest, now: datetime) -> Status:
    """Write down the pull request."""
    status = _changed(status, pull_request=pull)
    return _noted(status, ConditionType.PUBLISHED, ("PullRequest", f"See {pull.url}."), now)


def delivered(status: Status, now: datetime) -> Status:
    """Write down that the work is where it belongs, on a host without pull requests."""
    text = f"Branch {_run(status).branch} has the work."
    return _noted(status, ConditionType.PUBLISHED, ("Pushed", text), now)


def saved(status: Status, work: SavedWork) -> Status:
    """Write down where unpublished work was saved."""
    return _changed(status, saved_work=work)


def ended(status: Status, ending: Ending, phase: RunPhase, now: datetime) -> Status:
    """Write the outcome, once."""
    run = _run(status)
    if run.outcome is not None:
        return status
    if run.usage is not None:
        status = status.model_copy(update={"usage": with_run(status.usage, run.usage)})
    if status.counters is not None:
        # The next run has attempts of its own.
        counters = status.counters.model_copy(update={"failures": 0})
        status = status.model_copy(update={"counters": counters})
    step = _FAILING.get(run.phase)
    if step is not None and ending.outcome is not Outcome.SUCCEEDED:
        words = ending.reason or ending.outcome.value, ending.message or "The run ended here."
        status = _noted(status, step, words, now, ConditionStatus.FALSE)
    return _changed(
        status,
        outcome=ending.outcome,
        reason=ending.reason,
        message=ending.message,
        finished_at=now,
        stop_requested_at=status.stop_requested_at,
        phase=phase,
    )


def lost(status: Status, words: str, now: datetime) -> Status:
    """Write down that work could not be saved; nothing more is done for it."""
    told = (WORKSPACE_LOST, words)
    status = _noted(status, ConditionType.CHANGES_COLLECTED, told, now, ConditionStatus.FALSE)
    return finalizing(status)


def finalizing(status: Status) -> Status:
    """Nothing more is done inside the sandbox for this run."""
    return _changed(status, phase=RunPhase.FINALIZING)


def finished(status: Status, comment: Comment | None, now: datetime) -> Status:
    """Close the run."""
    run = _run(status)
    assert run.outcome is not None, "only a run with an outcome is finished"
    status = _changed(status, phase=RunPhase.FINISHED)
    status = told(status, comment).model_copy(update={"stop_requested_at": None})
    words = (run.reason or run.outcome.value, run.message or f"The run ended {run.outcome.value}.")
    return _noted(status, ConditionType.FINISHED, words, now)


def told(status: Status, comment: Comment | None) -> Status:
    """Remember the comment on the issue."""
    return status if comment is None else status.model_copy(update={"comment": comment})


def alive(status: Status, at: datetime) -> Status:
    """Write down the agent's last sign of life."""
    return _changed(status, last_output_at=at)


def counted_clone(status: Status) -> Status:
    """Count one more try to prepare the workspace."""
    return _changed(status, clone_attempts=_run(status).clone_attempts + 1)


def missed_probe(status: Status) -> Status:
    """Count one more time that the sandbox did not answer."""
    return _changed(status, probe_misses=_run(status).probe_misses + 1)


def restarted(status: Status) -> Status:
    """Give the sandbox, which was stopped because it did not answer, another chance."""
    return _changed(status, probe_misses=0, restarts=_run(status).restarts + 1)


def warned(status: Status, end: datetime) -> Status:
    """Remember that people were warned of an end of the run."""
    return _changed(status, warned_of=end)


def retriggered(status: Status, trigger: str | None) -> Status:
    """Take note of a trigger that starts nothing."""
    return _changed(status, trigger=trigger)


def _run(status: Status) -> RunStatus:
    assert status.run is not None, "a chapter is written of a run that began"
    return status.run


def _changed(status: Status, **changes: Any) -> Status:
    return status.model_copy(update={"run": _run(status).model_copy(update=changes)})


def _noted(
    status: Status,
    kind: ConditionType,
    words: tuple[str, str],
    now: datetime,
    holds: ConditionStatus = ConditionStatus.TRUE,
) -> Status:
    condition = Condition(
        type=kind,
        status=holds,
        reason=words[0],
        message=words[1],
        last_transition_time=now,
        observed_generation=status.observed_generation,
    )
    return status.model_copy(update={"conditions": upsert(status.conditions, condition)})
