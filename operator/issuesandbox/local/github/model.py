"""What the simulated GitHub holds, as plain values.

Every value is immutable and knows nothing of HTTP, storage or how it is shown. Global ids and
numbers are different types, because mixing them up is the classic mistake of GitHub clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

GlobalId = NewType("GlobalId", int)
ZERO_SHA = "0" * 40


class AccountKind(StrEnum):
    """What stands behind a login."""

    USER = "User"
    ORGANIZATION = "Organization"
    BOT = "Bot"


class Permission(StrEnum):
    """What an account may do in a repository, weakest first."""

    NONE = "none"
    READ = "read"
    TRIAGE = "triage"
    WRITE = "write"
    MAINTAIN = "maintain"
    ADMIN = "admin"

    def covers(self, needed: Permission) -> bool:
        """Tell whether this permission includes the needed one."""
        order = list(Permission)
        return order.index(self) >= order.index(needed)


class Association(StrEnum):
    """How the author of something relates to the repository."""

    COLLABORATOR = "COLLABORATOR"
    CONTRIBUTOR = "CONTRIBUTOR"
    FIRST_TIMER = "FIRST_TIMER"
    FIRST_TIME_CONTRIBUTOR = "FIRST_TIME_CONTRIBUTOR"
    MANNEQUIN = "MANNEQUIN"
    MEMBER = "MEMBER"
    NONE = "NONE"
    OWNER = "OWNER"


class State(StrEnum):
    """Whether an issue or pull request is open."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A person, a bot or an organisation; permission and association hold in every repository."""

    id: GlobalId
    login: str
    kind: AccountKind
    created_at: datetime
    site_admin: bool = False
    permission: Permission = Permission.NONE
    association: Association | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What one account is in one repository; it beats what the account is everywhere."""

    permission: Permission
    association: Association | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository; its git data lie in a bare folder named by its id."""

    id: GlobalId
    owner_id: GlobalId
    name: str
    private: bool
    default_branch: str
    created_at: datetime
    updated_at: datetime
    pushed_at: datetime
    description: str | None = None
    last_number: int = 0
    protected: tuple[str, ...] = ()
    members: Mapping[GlobalId, Member] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A label that a repository offers."""

    id: GlobalId
    repository_id: GlobalId
    name: str
    color: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where a transferred issue lives now."""

    repository_id: GlobalId
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """An issue, or the conversation of a pull request: both share one row of numbers."""

    id: GlobalId
    repository_id: GlobalId
    number: int
    title: str
    body: str | None
    author_id: GlobalId
    created_at: datetime
    updated_at: datetime
    via_app: bool = False
    state: State = State.OPEN
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: GlobalId | None = None
    label_ids: tuple[GlobalId, ...] = ()
    assignee_ids: tuple[GlobalId, ...] = ()
    locked: bool = False
    lock_reason: str | None = None
    pull_id: GlobalId | None = None
    edited_at: datetime | None = None
    editor_id: GlobalId | None = None
    deleted: bool = False
    moved_to: Moved | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """The git side of a pull request; its conversation is the issue with the same number."""

    id: GlobalId
    repository_id: GlobalId
    issue_id: GlobalId
    head: str
    head_sha: str
    base: str
    base_sha: str
    draft: bool = False
    maintainer_can_modify: bool = False
    merged_at: datetime | None = None
    merged_by: GlobalId | None = None
    merge_sha: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A comment on an issue or pull request."""

    id: GlobalId
    issue_id: GlobalId
    author_id: GlobalId
    body: str
    created_at: datetime
    updated_at: datetime
    via_app: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """One account's reaction to an issue or comment."""

    id: GlobalId
    subject_id: GlobalId
    account_id: GlobalId
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueEvent:
    """An entry in the history of an issue."""

    id: GlobalId
    issue_id: GlobalId
    actor_id: GlobalId
    event: str
    created_at: datetime
    label_id: GlobalId | None = None
    assignee_id: GlobalId | None = None
    renamed_from: str | None = None
    renamed_to: str | None = None
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The one GitHub App of this simulator, with the webhook that gets all events."""

    id: GlobalId
    slug: str
    owner_id: GlobalId
    bot_id: GlobalId
    public_key: str
    permissions: Mapping[str, str]
    events: tuple[str, ...]
    created_at: datetime
    webhook_urls: tuple[str, ...] = ()
    webhook_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The App on one account; no repository ids means all of the account's repositories."""

    id: GlobalId
    account_id: GlobalId
    permissions: Mapping[str, str]
    created_at: datetime
    updated_at: datetime
    repository_ids: tuple[GlobalId, ...] | None = None
    suspended_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of a user or an installation, known only by its digest.

    Without permissions it may do what its owner may; without repositories, wherever the owner may.
    """

    id: GlobalId
    digest: str
    created_at: datetime
    account_id: GlobalId | None = None
    installation_id: GlobalId | None = None
    permissions: Mapping[str, str] | None = None
    repository_ids: tuple[GlobalId, ...] | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, and whether through the App."""

    account: Account
    via_app: bool = False
