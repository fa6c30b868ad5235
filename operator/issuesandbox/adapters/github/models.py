"""The few fields of GitHub's answers that are used, and the views made of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

import msgspec

from issuesandbox.domain.audit import RefChange
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.github import (
    CommentView,
    Delivery,
    EditView,
    IssueEvent,
    IssueView,
    Permission,
    PullView,
    RepositoryView,
)

ModelT = TypeVar("ModelT")


def parsed(data: Any, model: type[ModelT]) -> ModelT:
    """Return an answer as a model; one of another shape is no answer."""
    try:
        return msgspec.convert(data, model)
    except msgspec.ValidationError as error:
        raise Unavailable(f"GitHub's answer has an unknown shape: {error}") from error


class Account(msgspec.Struct):
    """A user, bot or organisation."""

    login: str = "ghost"
    type: str = "User"


class Label(msgspec.Struct):
    """A label of an issue."""

    name: str = ""


class Repository(msgspec.Struct):
    """A repository."""

    full_name: str
    default_branch: str
    clone_url: str
    private: bool = False

    def view(self) -> RepositoryView:
        """Return what the engine sees."""
        return RepositoryView(self.full_name, self.default_branch, self.clone_url, self.private)


class Repositories(msgspec.Struct):
    """A page of an installation's repositories."""

    repositories: list[Repository]


class Issue(msgspec.Struct):
    """An issue, or a pull request as the issue it also is."""

    id: int
    number: int
    title: str
    state: str
    updated_at: datetime
    body: str | None = None
    # GitHub shows an account that was deleted as null.
    user: Account | None = None
    author_association: str = "NONE"
    labels: list[Label] = []
    assignees: list[Account] = []
    locked: bool = False
    pull_request: Any = None
    html_url: str = ""
    created_at: datetime | None = None

    def view(self, repository: str) -> IssueView:
        """Return what the engine sees."""
        author = self.user or Account()
        return IssueView(
            repository=repository,
            number=self.number,
            id=self.id,
            title=self.title,
            body=self.body or "",
            author=author.login,
            author_association=self.author_association,
            state=self.state,
            updated_at=self.updated_at,
            labels=tuple(each.name for each in self.labels),
            assignees=tuple(each.login for each in self.assignees),
            locked=self.locked,
            is_pull_request=self.pull_request is not None,
            author_is_bot=author.type == "Bot",
            url=self.html_url,
            created_at=self.created_at,
        )


class Comment(msgspec.Struct):
    """A comment on an issue or pull request."""

    id: int
    body: str | None = None
    user: Account | None = None
    author_association: str = "NONE"
    created_at: datetime | None = None
    updated_at: datetime | None = None
    html_url: str = ""
    issue_url: str = ""

    def view(self) -> CommentView:
        """Return what the engine sees."""
        author, number = self.user or Account(), self.issue_url.rpartition("/")[2]
        return CommentView(
            id=self.id,
            body=self.body or "",
            author=author.login,
            url=self.html_url,
            number=int(number) if number.isdigit() else 0,
            author_association=self.author_association,
            author_is_bot=author.type == "Bot",
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


class HeadRepository(msgspec.Struct):
    """Where the branch of a pull request lies."""

    full_name: str = ""


class Side(msgspec.Struct):
    """One of the two branches of a pull request."""

    ref: str
    sha: str
    repo: HeadRepository | None = None


class Pull(msgspec.Struct):
    """A pull request."""

    number: int
    html_url: str
    state: str
    head: Side
    base: Side
    body: str | None = None
    title: str = ""
    merged_at: datetime | None = None

    def is_from(self, repository: str) -> bool:
        """Tell whether its branch lies in the repository itself and not in a fork."""
        source = self.head.repo.full_name if self.head.repo else ""
        return source.lower() == repository.lower()

    def view(self) -> PullView:
        """Return what the engine sees."""
        return PullView(
            number=self.number,
            url=self.html_url,
            state="merged" if self.merged_at is not None else self.state,
            head=self.head.ref,
            head_commit=self.head.sha,
            base=self.base.ref,
            body=self.body or "",
            title=self.title,
        )


class GitObject(msgspec.Struct):
    """What a ref points to."""

    sha: str


class Ref(msgspec.Struct):
    """A branch or tag."""

    object: GitObject


class Role(msgspec.Struct):
    """What a person may do in a repository."""

    permission: str = "none"
    role_name: str = ""

    def view(self) -> Permission:
        """Return the role; one that an organisation made up counts as what it is based on."""
        known = set(Permission)
        named = next((each for each in (self.role_name, self.permission) if each in known), "none")
        return Permission(named)


class Event(msgspec.Struct):
    """Something that happened to an issue."""

    id: int
    event: str
    created_at: datetime
    actor: Account | None = None
    label: Label | None = None
    assignee: Account | None = None

    def view(self) -> IssueEvent:
        """Return what the adapter sees."""
        actor = self.actor or Account()
        subject = self.label.name if self.label else self.assignee.login if self.assignee else ""
        return IssueEvent(self.id, self.event, actor.login, self.created_at, subject)


class Editor(msgspec.Struct):
    """Somebody, as GraphQL shows them."""

    login: str
    type: str = msgspec.field(default="User", name="__typename")


class EditedIssue(msgspec.Struct):
    """Who changed the body of an issue last; nulls if nobody did."""

    at: datetime | None = msgspec.field(default=None, name="lastEditedAt")
    editor: Editor | None = None

    def view(self) -> EditView | None:
        """Return what the adapter sees."""
        if self.at is None:
            return None
        if self.editor is None:
            return EditView(self.at, Account().login)
        is_bot = self.editor.type == "Bot"
        # REST and events call a bot by its name with a suffix, GraphQL without.
        suffix = "[bot]" if is_bot and not self.editor.login.endswith("[bot]") else ""
        return EditView(self.at, self.editor.login + suffix, is_bot)


class EditedRepository(msgspec.Struct):
    """The repository around it."""

    issue: EditedIssue


class Edited(msgspec.Struct):
    """The answer to the question after the last edit."""

    repository: EditedRepository


class Activity(msgspec.Struct):
    """A branch that was moved."""

    after: str
    timestamp: datetime
    actor: Account | None = None

    def view(self) -> RefChange:
        """Return what the auditor sees."""
        return RefChange(self.after, self.timestamp, (self.actor or Account()).login)


class HookDelivery(msgspec.Struct):
    """A try to deliver an event."""

    id: int
    guid: str
    event: str
    delivered_at: datetime
    status_code: int = 0
    action: str | None = None

    def view(self) -> Delivery:
        """Return what the adapter sees."""
        return Delivery(
            self.id, self.guid, self.event, self.delivered_at, self.status_code, self.action
        )
