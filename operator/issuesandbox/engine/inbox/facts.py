"""From GitHub's answers to the facts that events tell as well."""

from __future__ import annotations

from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.ports.github import CommentView, IssueView


def facts_of(issue: IssueView) -> IssueFacts:
    """Return an issue that was read, as if an event had told of it."""
    return IssueFacts(
        repository=issue.repository,
        number=issue.number,
        id=issue.id,
        title=issue.title,
        body=issue.body,
        author=_person(issue),
        updated_at=issue.updated_at,
        is_open=issue.state == "open",
        is_locked=issue.locked,
        labels=issue.labels,
        assignees=issue.assignees,
        url=issue.url,
        created_at=issue.created_at,
    )


def author_of(comment: CommentView) -> Person:
    """Return who wrote a comment."""
    return _person(comment)


def _person(said: IssueView | CommentView) -> Person:
    is_bot = said.author_is_bot or said.author.endswith("[bot]")
    return Person(said.author, is_bot, said.author_association)
