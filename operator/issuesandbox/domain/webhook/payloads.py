"""From the body of a delivery to a hint. Only the fields that are used are decoded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from issuesandbox.domain.webhook.hints import (
    AccessHint,
    CommentHint,
    Happening,
    Hint,
    Ignored,
    IssueHint,
    PullHint,
)
from issuesandbox.domain.webhook.issue import IssueFacts, Person


class MalformedError(ValueError):
    """The body is no JSON, or not the JSON that its event has."""


class _Account(msgspec.Struct):
    login: str = "ghost"
    type: str = "User"

    def person(self, standing: str = "") -> Person:
        is_bot = self.type == "Bot" or self.login.endswith("[bot]")
        return Person(self.login, is_bot, standing)


class _Label(msgspec.Struct):
    name: str


class _Issue(msgspec.Struct):
    id: int
    number: int
    title: str
    state: str
    updated_at: datetime
    body: str | None = None
    # GitHub shows an account that was deleted as null.
    user: _Account | None = None
    author_association: str = ""
    labels: list[_Label] = []
    assignees: list[_Account] = []
    locked: bool = False
    pull_request: dict[str, Any] | None = None
    html_url: str = ""

    def facts(self, repository: str) -> IssueFacts:
        return IssueFacts(
            repository=repository,
            number=self.number,
            id=self.id,
            title=self.title,
            body=self.body or "",
            author=(self.user or _Account()).person(self.author_association),
            updated_at=self.updated_at,
            is_open=self.state == "open",
            is_locked=self.locked,
            labels=tuple([each.name for each in self.labels]),
            assignees=tuple([each.login for each in self.assignees]),
            url=self.html_url,
        )


class _Repository(msgspec.Struct):
    full_name: str


class _Installation(msgspec.Struct):
    id: int = 0


class _Delivery(msgspec.Struct):
    repository: _Repository
    sender: _Account
    action: str = ""
    installation: _Installation = msgspec.field(default_factory=_Installation)


class _IssueDelivery(_Delivery, kw_only=True):
    issue: _Issue
    changes: dict[str, Any] = {}
    label: _Label | None = None
    assignee: _Account | None = None


class _Comment(msgspec.Struct):
    id: int
    created_at: datetime
    updated_at: datetime
    body: str | None = None
    user: _Account | None = None
    author_association: str = ""


class _From(msgspec.Struct):
    before: str | None = msgspec.field(default=None, name="from")


class _CommentChanges(msgspec.Struct):
    body: _From | None = None


class _CommentDelivery(_Delivery, kw_only=True):
    issue: _Issue
    comment: _Comment
    changes: _CommentChanges | None = None


class _Pull(msgspec.Struct):
    number: int
    updated_at: datetime
    merged: bool = False
    closed_at: datetime | None = None


class _PullDelivery(_Delivery, kw_only=True):
    pull_request: _Pull


_T = TypeVar("_T")

# Built once: that costs more than to decode with them.
_ANY = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ISSUE = msgspec.json.Decoder(_IssueDelivery)
_COMMENT = msgspec.json.Decoder(_CommentDelivery)
_PULL = msgspec.json.Decoder(_PullDelivery)
_HAPPENINGS = {each.value: each for each in Happening}


def read_delivery(event: str, body: bytes) -> Hint | Ignored:
    """Return what a delivery hints at, or why it is passed over; raise MalformedError."""
    reader = _READERS.get(event)
    if reader is None:
        return Ignored(f"{event} events need nothing")  # most are: they are not even parsed
    try:
        # The decoder skips what it does not need without looking at its encoding.
        text = body if body.isascii() else body.decode()
    except UnicodeDecodeError:
        raise MalformedError("the body is not UTF-8") from None
    return reader(text)


def _decoded(text: bytes | str, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise MalformedError(f"the body is not what GitHub sends: {error}") from None
    except RecursionError:
        raise MalformedError("the body is nested too deeply") from None
    except msgspec.DecodeError:
        raise MalformedError("the body is not JSON") from None


def _issue(text: bytes | str) -> Hint | Ignored:
    got = _decoded(text, _ISSUE)
    happening = _HAPPENINGS.get(got.action)
    if happening is None:
        return Ignored(f"issues.{got.action} needs nothing")
    if happening is Happening.EDITED and not got.changes.keys() & {"title", "body"}:
        return Ignored("neither title nor body was edited")
    if happening in (Happening.LABELED, Happening.UNLABELED):
        subject = got.label.name if got.label else ""
    else:
        subject = got.assignee.login if got.assignee else ""
    return IssueHint(
        happening,
        got.issue.facts(got.repository.full_name),
        got.sender.person(),
        subject,
        installation=got.installation.id,
    )


def _comment(text: bytes | str) -> Hint | Ignored:
    got = _decoded(text, _COMMENT)
    if got.action not in ("created", "edited"):
        return Ignored(f"issue_comment.{got.action} needs nothing")
    edited = got.action == "edited"
    comment = got.comment
    author = (comment.user or _Account()).person(comment.author_association)
    if edited and got.sender.login.lower() != author.login.lower():
        # Whoever may write can edit what others said: the words are theirs then.
        author = got.sender.person()
    return CommentHint(
        issue=got.issue.facts(got.repository.full_name),
        comment_id=comment.id,
        author=author,
        body=comment.body or "",
        at=comment.updated_at if edited else comment.created_at,
        before=_before(got) or "" if edited else None,
        on_pull=got.issue.pull_request is not None,
        installation=got.installation.id,
    )


def _before(got: _CommentDelivery) -> str | None:
    return got.changes.body.before if got.changes and got.changes.body else None


def _pull(text: bytes | str) -> Hint | Ignored:
    got = _decoded(text, _PULL)
    pull = got.pull_request
    if got.action != "closed":
        return Ignored(f"pull_request.{got.action} needs nothing")
    at = pull.closed_at or pull.updated_at
    return PullHint(got.repository.full_name, pull.number, pull.merged, at, got.sender.person())


def _access(text: bytes | str) -> Hint | Ignored:
    _decoded(text, _ANY)
    return AccessHint()


def _ping(text: bytes | str) -> Hint | Ignored:
    _decoded(text, _ANY)
    return Ignored("pong")


_READERS: dict[str, Callable[[bytes | str], Hint | Ignored]] = {
    "issues": _issue,
    "issue_comment": _comment,
    "pull_request": _pull,
    "installation": _access,
    "installation_repositories": _access,
    "ping": _ping,
}
