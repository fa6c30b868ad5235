"""What the issue is told of its run: one comment, kept up to date."""

from __future__ import annotations

from issuesandbox.api.status import Comment
from issuesandbox.domain.comment import Activity, CommentText, comment_text
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.telling import Teller


class Reporter:
    """Tells issues how their runs go; silent where there are no credentials for GitHub."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        timings, github = outside.timings, outside.github
        gap, refresh = timings.comment_gap.total_seconds(), timings.comment_refresh.total_seconds()
        self._teller = Teller(github, outside.clock, gap=gap, refresh=refresh) if github else None

    async def tell(self, assignment: Assignment, activity: Activity | None) -> Comment | None:
        """Write the one comment on the issue."""
        if self._teller is None:
            return None
        self._outside.check_charge(assignment)
        number, known = assignment.resource.spec.issue.number, assignment.status.comment
        text = self._text(assignment, activity)
        return await self._teller.tell(assignment.repository, number, text, known)

    def digest(self, assignment: Assignment) -> str:
        """Return the fingerprint of what the comment should say; empty where nobody writes one."""
        return "" if self._teller is None else self._text(assignment).digest

    def _text(self, assignment: Assignment, activity: Activity | None = None) -> CommentText:
        now = self._outside.clock.now()
        return comment_text(assignment.resource, assignment.status, now, activity)
