"""GitHub as the operator and the webhook adapter need it.

Repositories are `owner/name`. Failures are the seven kinds of `ports.errors`; a rate limit is
`Throttled` with the seconds to wait. Tokens never appear in texts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from issuesandbox.domain import publication

PullOrder = publication.PullOrder


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """A short-lived credential for git over HTTP and for the API."""

    value: str = field(repr=False)
    username: str = "x-access-token"
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RepositoryView:
    """A repository, reduced to what a run needs."""

    full_name: str
    default_branch: str
    clone_url: str
    private: bool = False


@dataclass(frozen=True, slots=True)
class IssueView:
    """An issue as it is now."""

    repository: str
    number: int
    id: int
    title: str
    body: str
    author: str
    author_association: str
    state: str
    updated_at: datetime
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    locked: bool = False
    is_pull_request: bool = False
    author_is_bot: bool = False
    url: str = ""
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PullView:
    """A pull request."""

    number: int
    url: str
    state: str
    """`open`, `closed` or `merged`."""
    head: str
    """Branch it comes from."""
    head_commit: str
    base: str
    body: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class CommentView:
    """A comment on an issue or pull request."""

    id: int
    body: str
    author: str
    url: str = ""
    number: int = 0
    """Number of the issue or pull request it is on."""
    author_association: str = "NONE"
    author_is_bot: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Permission(StrEnum):
    """What a person may do in a repository, weakest first."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    def at_least(self, other: Permission) -> bool:
        """Tell whether this is as much as `other`, or more."""
        ranks = list(Permission)
        return ranks.index(self) >= ranks.index(other)


class Reaction(StrEnum):
    """A small sign under an issue or a comment, by GitHub's name for it."""

    EYES = "eyes"
    ROCKET = "rocket"
    CONFUSED = "confused"


@dataclass(frozen=True, slots=True)
class IssueEvent:
    """Something that happened to an issue, such as `reopened`."""

    id: int
    event: str
    actor: str
    created_at: datetime
    subject: str = ""
    """The label or the assignee that was put on or taken off."""


@dataclass(frozen=True, slots=True)
class EditView:
    """The last change of an issue's body."""

    at: datetime
    editor: str
    """`ghost` if the account is gone."""
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """One try of GitHub's to deliver an event to the App's webhook."""

    id: int
    guid: str
    """The same for every try of one event."""
    event: str
    delivered_at: datetime
    status_code: int
    """What was answered; 0 if nobody did."""
    action: str | None = None


class GitHub(Protocol):
    """What a run asks of GitHub."""

    async def repository(self, repository: str) -> RepositoryView:
        """Return the repository; `NotFound` also if it is private and not ours to see."""
        ...

    async def issue(self, repository: str, number: int) -> IssueView:
        """Return the issue; `NotFound` also if it was deleted or transferred."""
        ...

    async def branch_tip(self, repository: str, branch: str) -> str | None:
        """Return the commit a branch points to, or None if there is no such branch."""
        ...

    async def read_token(self, repository: str) -> Token | None:
        """Return a token that can read the repository and nothing else; None if there is none."""
        ...

    async def write_token(self, repository: str) -> Token:
        """Return a token that can push to this repository."""
        ...

    async def open_pull(self, repository: str, branch: str) -> PullView | None:
        """Return the open pull request that comes from a branch of the repository itself."""
        ...

    async def create_pull(self, repository: str, order: PullOrder) -> PullView:
        """Open a pull request; if one is open from that branch already, return that one."""
        ...

    async def update_pull(self, repository: str, number: int, *, title: str, body: str) -> PullView:
        """Change the texts of a pull request."""
        ...

    async def comments(self, repository: str, number: int, marker: str) -> Sequence[CommentView]:
        """Return our own comments that contain the marker, lowest id first."""
        ...

    async def create_comment(self, repository: str, number: int, body: str) -> CommentView:
        """Post a comment."""
        ...

    async def update_comment(self, repository: str, comment_id: int, body: str) -> CommentView:
        """Change the text of a comment; `NotFound` if somebody deleted it."""
        ...

    async def delete_comment(self, repository: str, comment_id: int) -> None:
        """Delete a comment; one that is gone already is no error."""
        ...


class Forge(Protocol):
    """What the webhook adapter asks of GitHub beside `GitHub`."""

    async def own_login(self) -> str:
        """Return the login under which we act; what it does must never trigger anything."""
        ...

    def installed(self, repository: str, installation: int) -> None:
        """Hear from an event which installation of our App a repository belongs to."""
        ...

    async def permission(self, repository: str, login: str) -> Permission:
        """Return what a person may do in the repository; a stranger may do nothing."""
        ...

    async def react_to_comment(self, repository: str, comment_id: int, reaction: Reaction) -> None:
        """Put our reaction under a comment; once, however often it is asked."""
        ...

    async def issue_events(self, repository: str, number: int) -> Sequence[IssueEvent]:
        """Return what happened to an issue, oldest first."""
        ...

    async def last_edit(self, repository: str, number: int) -> EditView | None:
        """Return who changed an issue's body last and when; None: it is as it was opened."""
        ...

    def repositories(self) -> AsyncIterator[RepositoryView]:
        """Return every repository that our credentials reach."""
        ...

    def issues_since(self, repository: str, since: datetime) -> AsyncIterator[IssueView]:
        """Return issues and pull requests changed at or after `since`, oldest first."""
        ...

    def comments_since(self, repository: str, since: datetime) -> AsyncIterator[CommentView]:
        """Return comments changed at or after `since`, oldest first."""
        ...

    def failed_deliveries(self, since: datetime) -> AsyncIterator[Delivery]:
        """Return failed tries since then, newest first, one per event; none without an App.

        A later try may have succeeded: sending an event again is always harmless.
        """
        ...

    async def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to send a delivery once more."""
        ...
