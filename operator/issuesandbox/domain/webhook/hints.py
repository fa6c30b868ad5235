"""What a delivery hints at. GitHub's state is the truth; a hint only says where it changed."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from issuesandbox.domain.webhook.issue import IssueFacts, Person
from issuesandbox.domain.webhook.stamps import Stamp


class Happening(StrEnum):
    """What happened to an issue, in GitHub's words."""

    OPENED = "opened"
    EDITED = "edited"
    REOPENED = "reopened"
    LABELED = "labeled"
    UNLABELED = "unlabeled"
    ASSIGNED = "assigned"
    CLOSED = "closed"
    DELETED = "deleted"
    TRANSFERRED = "transferred"


class IssueHint(Struct, frozen=True):
    """Something happened to an issue."""

    happening: Happening
    issue: IssueFacts
    sender: Person
    subject: str = ""
    """The label or the assignee that it is about."""
    at: datetime | None = None
    """When it happened, where that is known better than from the issue."""
    event: Stamp | None = None
    """Time and id of the entry in the issue's history; deliveries do not tell it."""
    installation: int = 0
    """The installation of the App that delivered it; 0: none, or nobody said."""

    @property
    def repository(self) -> str:
        """Return the repository that it happened in."""
        return self.issue.repository


class CommentHint(Struct, frozen=True):
    """Somebody said something under an issue or a pull request."""

    issue: IssueFacts
    comment_id: int
    author: Person
    body: str
    at: datetime
    before: str | None = None
    """What it said before it was edited; None: it is new."""
    on_pull: bool = False
    """`issue` is a pull request: commands go to the resource that it came from."""
    is_found: bool = False
    """Found later: `issue` is as it is now and not as it was at that moment."""
    installation: int = 0

    @property
    def repository(self) -> str:
        """Return the repository that it happened in."""
        return self.issue.repository


class PullHint(Struct, frozen=True):
    """A pull request was merged or closed."""

    repository: str
    number: int
    merged: bool
    at: datetime
    sender: Person


class GoneHint(Struct, frozen=True):
    """An issue was found to be deleted or transferred; no delivery tells it this way."""

    repository: str
    number: int
    at: datetime


class AccessHint(Struct, frozen=True):
    """The App was installed somewhere, or its repositories changed."""


class Ignored(Struct, frozen=True):
    """Nothing to do, and why."""

    reason: str


Hint = IssueHint | CommentHint | PullHint | GoneHint | AccessHint
