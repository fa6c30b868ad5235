"""The one comment on the issue: how it goes while it goes, and how it ended. Pure.

Everything comes from the resource and its status, so that any replica writes the same. Its
fingerprint leaves out what moves all the time, such as the minutes passed: they are refreshed
now and then, but are no news.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Phase, Status
from issuesandbox.api.status_run import Outcome, RunStatus
from issuesandbox.domain.markdown import code, neutral_line, quoted
from issuesandbox.domain.webhook.commands import STATUS_MARKER

_LONGEST_SUMMARY: Final = 8000
_LISTED_FILES: Final = 10
_RETRY: Final = "Comment `/retry` to try again."

# What somebody who reads the comment can do about it.
_NEXT_STEPS: Final = {
    "AgentUnauthorized": "The model refused the key: an administrator has to replace it.",
    "BranchMoved": "Merge or delete the commits that came in between, then comment `/retry`.",
    "CliMissing": "The sandbox lacks the agent's program: an administrator has to choose a "
    "snapshot that has it.",
    "GitMissing": "The sandbox lacks git: an administrator has to choose a snapshot that has it.",
    "InactivityTimeout": "The agent fell silent. " + _RETRY,
    "NotInstalled": "An administrator has to install the GitHub App on this repository.",
    "PackTooLarge": "Large files do not belong into a commit: ignore them, then comment `/retry`.",
    "PermissionNotGranted": "An administrator has to grant the GitHub App that permission.",
    "PullRequestFailed": "Open the pull request by hand from the branch above, or comment "
    "`/retry`.",
    "QuotaExceeded": "The sandbox quota is used up: free some, then comment `/retry`.",
}


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agent is doing right now, where somebody looked."""

    tool: str | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class CommentText:
    """The comment to write."""

    marker: str
    """Hidden in the text; by it the comment is found again."""
    body: str
    digest: str
    """The same as long as there is no news."""


def marker_of(uid: str) -> str:
    """Return the hidden text that tells the comment of a resource from all others."""
    return f"{STATUS_MARKER} {uid} -->"


def comment_text(
    resource: IssueSandbox, status: Status, now: datetime, activity: Activity | None = None
) -> CommentText:
    """Return what the comment should say."""
    marker = marker_of(resource.metadata.uid or "")
    news = [_headline(status), "\n".join(_facts(resource, status)), *_words(resource, status)]
    digest = hashlib.sha256("\n".join(news).encode()).hexdigest()
    run = status.run
    if run is not None and run.outcome is None:
        news[1] = "\n".join([news[1], *_moving(run, now, activity)])
    return CommentText(marker, "\n\n".join([marker, *news]), digest[:16])


def _headline(status: Status) -> str:
    run = status.run
    if run is None or run.outcome is None:
        return f"### {_progress(status.phase)}"
    if run.outcome is Outcome.SUCCEEDED:
        return f"### {_success(run)}"
    if run.outcome is Outcome.FAILED:
        return f"### Failed: {_failure(run)}"
    if run.outcome is Outcome.TIMED_OUT:
        return "### Timed out"
    return "### Stopped" + (", after the branch was pushed" if run.publish is not None else "")


def _success(run: RunStatus) -> str:
    if run.pull_request is not None:
        return f"Solved: see pull request [#{run.pull_request.number}]({run.pull_request.url})"
    if run.commit is None:
        return "Analysed: nothing had to be changed"
    return "Done: the changes are not in a pull request"


def _progress(phase: Phase | None) -> str:
    if phase is None or phase in (Phase.PENDING, Phase.QUEUED):
        return "Waiting for a sandbox"
    if phase is Phase.BOOTING:
        return "Starting a sandbox"
    if phase is Phase.STOPPING:
        return "Stopping"
    return f"Working on it: {phase.value.lower()}"


def _failure(run: RunStatus) -> str:
    if run.reason == "PullRequestFailed":
        return f"the changes are on branch {code(run.branch or '')}, but have no pull request"
    return code(run.reason or "Error")


def _facts(resource: IssueSandbox, status: Status) -> Iterator[str]:
    issue, run = resource.spec.issue, status.run
    title = neutral_line(issue.title or "", 120)
    yield f"- **Task:** #{issue.number}" + (f" {title}" if title else "")
    if run is not None:
        outcome = run.outcome.value if run.outcome is not None else run.phase.value
        reason = f" ({run.reason})" if run.reason else ""
        yield f"- **Status:** {outcome}{reason}"
        yield from _warning(run)
        yield from _run_facts(run)
    if status.summary is not None and status.summary.tests:
        yield f"- **Tests:** {neutral_line(status.summary.tests, 512)}"
    yield from _sandbox_facts(status)


def _run_facts(run: RunStatus) -> Iterator[str]:
    attempt = f", sandbox {run.attempt}" if (run.attempt or 0) > 1 else ""
    spent = f", took {_span(run.finished_at - run.started_at)}" if run.finished_at else ""
    yield f"- **Run:** {code(run.id)}{attempt}{spent}"
    totals = run.change_totals
    if totals is not None and totals.files:
        yield (
            f"- **Files:** {totals.created} created, {totals.modified} modified, "
            f"{totals.deleted} deleted ({totals.additions} lines added, {totals.deletions} removed)"
        )
    published = run.publish is not None and run.publish.confirmed_at is not None
    if published and run.branch and run.commit:
        yield f"- **Branch:** {code(run.branch)}, commit {code(run.commit[:12])}"
    if run.pull_request is not None:
        yield f"- **Pull request:** [#{run.pull_request.number}]({run.pull_request.url})"
    if run.saved_work is not None:
        kind = "branch" if run.saved_work.kind.value == "Branch" else "ConfigMap"
        yield f"- **Unpublished work:** saved in {kind} {code(run.saved_work.ref)}"
    if run.usage is not None and run.usage.cost_usd is not None:
        yield f"- **Cost:** {run.usage.cost_usd} US dollars by the agent's own account"


def _sandbox_facts(status: Status) -> Iterator[str]:
    name = status.sandbox.name if status.sandbox is not None else None
    shown = f" {code(name)}" if name else ""
    record = status.sandbox_deletion
    if record is None:
        if name:
            yield f"- **Sandbox:**{shown}"
    elif record.success:
        yield f"- **Sandbox:**{shown} deleted"
    elif record.skipped:
        yield f"- **Sandbox:**{shown} kept: {neutral_line(record.skip_reason or '', 256)}"
    elif record.error:
        yield f"- **Sandbox:**{shown} could not be deleted yet; it is tried again"
    else:
        yield f"- **Sandbox:**{shown} is being deleted"


def _warning(run: RunStatus) -> Iterator[str]:
    ends = run.deadlines
    end = run.warned_of if run.outcome is None else None
    if end is not None and ends is not None and end in (ends.agent, ends.run):
        yield f"- **Ends soon:** at {end:%H:%M:%S} UTC, by its limit"


def _moving(run: RunStatus, now: datetime, activity: Activity | None) -> Iterator[str]:
    yield f"- **Elapsed:** {_span(max(now - run.started_at, timedelta()))}"
    if activity is not None and activity.tool:
        turns = f", turn {activity.turns}" if activity.turns else ""
        yield f"- **Last tool:** {code(activity.tool[:60])}{turns}"


def _words(resource: IssueSandbox, status: Status) -> Iterator[str]:
    run, summary = status.run, status.summary
    over = run is not None and run.outcome is not None
    if run is not None and run.outcome not in (None, Outcome.SUCCEEDED) and run.message:
        yield quoted(run.message, 600)
    if over and summary is not None and summary.text:
        yield "#### Summary\n\n" + quoted(summary.text, _LONGEST_SUMMARY)
    if over and run is not None and run.changes:
        yield _files(run)
    yield _next_step(resource, run if over else None)


def _files(run: RunStatus) -> str:
    changes = run.changes or ()
    lines = [f"- {each.kind.value}: {code(each.path)}" for each in changes[:_LISTED_FILES]]
    total = max(len(changes), run.change_totals.files if run.change_totals is not None else 0)
    if total > len(lines):
        lines.append(f"- and {total - len(lines)} more")
    return "#### Files\n\n" + "\n".join(lines)


def _next_step(resource: IssueSandbox, run: RunStatus | None) -> str:
    metadata = resource.metadata
    if run is None:
        command = code(f"kubectl isb stop {metadata.name} -n {metadata.namespace or 'default'}")
        return f"Comment `/stop` to stop it, or run {command}."
    if run.outcome is Outcome.SUCCEEDED:
        return "Comment `/continue` with further instructions to go on from here."
    return _NEXT_STEPS.get(run.reason or "", _RETRY)


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    if seconds < 60:
        return "less than a second" if seconds < 1 else f"{seconds} s"
    hours, minutes = divmod(seconds // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
