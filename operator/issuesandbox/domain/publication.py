"""The names and texts under which work is published. Pure; sends nothing.

Titles and summaries are other people's words: they are made harmless before they go into text
that GitHub acts on. What people wrote into a pull request themselves is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.spec_cleanup import SaveWork
from issuesandbox.api.spec_run import Publish
from issuesandbox.api.status import Status
from issuesandbox.api.status_run import ChangeTotals
from issuesandbox.domain.markdown import code, neutral_line, quoted

_BRANCHES: Final = 20
_LONGEST_SUBJECT: Final = 72
_LONGEST_TITLE: Final = 200
_LONGEST_SUMMARY: Final = 8000
_BEGIN: Final = "<!-- issuesandbox:begin -->"
_END: Final = "<!-- issuesandbox:end -->"


@dataclass(frozen=True, slots=True)
class PullOrder:
    """A pull request to open."""

    head: str
    base: str
    title: str
    body: str
    draft: bool = False


def branch_names(number: int) -> Iterator[str]:
    """Return the branches for an issue's work, best first; one without an open PR is taken."""
    stem = f"claude-fix-issue-{number}"
    yield stem
    for index in range(2, _BRANCHES + 1):
        yield f"{stem}-{index}"


def wip_branch(number: int, run_id: str) -> str:
    """Return the branch where work is saved that was not published."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", run_id)[:64].strip("-")
    return f"wip/issue-{number}-{safe}"


def way_to_save(asked: SaveWork, *, publishes: bool, deleting: bool) -> SaveWork:
    """Return how unpublished work is saved.

    Where nothing may be published, no branch is made either; a ConfigMap goes with its resource.
    """
    if asked is SaveWork.OFF:
        return asked
    kind = asked if publishes else SaveWork.PATCH
    if kind is SaveWork.PATCH and deleting:
        return SaveWork.BRANCH if publishes else SaveWork.OFF
    return kind


def commit_message(number: int, title: str, run_id: str) -> str:
    """Return the message of a run's commit."""
    subject = _titled(number, title, _LONGEST_SUBJECT)
    return f"{subject}\n\nCloses #{number}\n\nRun: {' '.join(run_id.split())}\n"


def pull_order(resource: IssueSandbox, status: Status, base: str) -> PullOrder:
    """Return the pull request for the work of a run."""
    issue, run, summary = resource.spec.issue, status.run, status.summary
    asked = resource.spec.run.publish if resource.spec.run is not None else None
    parts = [
        f"Closes #{issue.number}",
        quoted(summary.text, _LONGEST_SUMMARY) if summary is not None and summary.text else None,
        _counts(run.change_totals) if run is not None and run.change_totals is not None else None,
        f"Tests: {neutral_line(summary.tests, 512)}" if summary and summary.tests else None,
        f"Made by run {code(run.id)} for #{issue.number}." if run is not None else None,
    ]
    text = "\n\n".join(part for part in parts if part)
    return PullOrder(
        head=(run.branch if run is not None else None) or next(branch_names(issue.number)),
        base=base,
        title=_titled(issue.number, issue.title or "", _LONGEST_TITLE),
        body=f"{_BEGIN}\n{text}\n{_END}",
        draft=(asked or Publish()).draft,
    )


def revised(order: PullOrder, title: str, body: str) -> PullOrder:
    """Return the texts for a pull request that is there already.

    Its title stays, and so does what people wrote outside our part of the text; where they
    took our part away, the text is theirs.
    """
    before, begin, rest = body.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    text = f"{before}{order.body}{after}" if begin and end else body or order.body
    return replace(order, title=title or order.title, body=text)


def _titled(number: int, title: str, limit: int) -> str:
    stem = f"Fix #{number}"
    line = neutral_line(title, limit - len(stem) - 2)
    return f"{stem}: {line}" if line else stem


def _counts(totals: ChangeTotals) -> str:
    return (
        f"{totals.files} files changed ({totals.created} created, {totals.modified} modified, "
        f"{totals.deleted} deleted), {totals.additions} lines added, {totals.deletions} removed."
    )
