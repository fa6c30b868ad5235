"""Admin calls that act as a person: on issues, pull requests and branches.

Translates between bodies and acts, and knows none of GitHub's rules itself.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from issuesandbox.local.github.acts_comments import add_comment, delete_comment, edit_comment
from issuesandbox.local.github.acts_issues import (
    NewIssue,
    delete_issue,
    edit_issue,
    ensure_label,
    open_issue,
    set_assignees,
    set_labels,
    set_lock,
    set_state,
    transfer_issue,
)
from issuesandbox.local.github.acts_pulls import NewPull, merge_pull, open_pull
from issuesandbox.local.github.acts_repositories import (
    RefUpdate,
    ensure_account,
    move_ref,
    push_files,
)
from issuesandbox.local.github.admin import AdminRoute, ByUser, Errand
from issuesandbox.local.github.admin_setup import Files, as_files
from issuesandbox.local.github.answers import GitHubError
from issuesandbox.local.github.bare_git import is_ref_name
from issuesandbox.local.github.model import ZERO_SHA, Comment, State


class IssueBody(ByUser):
    """An issue to open."""

    title: str = Field(min_length=1)
    body: str | None = None
    labels: list[str] = Field(default_factory=list)
    assignees: list[str] = Field(default_factory=list)


class EditBody(ByUser):
    """A new title or text."""

    title: str | None = Field(default=None, min_length=1)
    body: str | None = None


class CloseBody(ByUser):
    """Why an issue is closed."""

    reason: str | None = Field(default=None, pattern="^(completed|not_planned|duplicate)$")


class TextBody(ByUser):
    """Something to say."""

    body: str = Field(min_length=1, max_length=65_536)


class NamesBody(ByUser):
    """Labels or logins."""

    names: list[str] = Field(min_length=1)


class LockBody(ByUser):
    """Why a conversation is locked."""

    reason: str | None = Field(default=None, pattern="^(off-topic|too heated|resolved|spam)$")


class TransferBody(ByUser):
    """Where an issue goes."""

    to: str


class PullBody(ByUser):
    """A pull request to open."""

    title: str = Field(min_length=1)
    head: str
    base: str
    body: str | None = None


class MergeBody(ByUser):
    """How to merge."""

    method: str = Field(default="merge", pattern="^(merge|squash)$")


class PushBody(ByUser):
    """A commit to make on a branch, or a branch to delete."""

    branch: str
    files: Files = Field(default_factory=dict)
    message: str = "Change by hand"
    delete: bool = False


async def open_one(errand: Errand) -> Any:
    """Open an issue."""
    body: IssueBody = errand.body
    new = NewIssue(body.title, body.body, tuple(body.labels), tuple(body.assignees))
    for login in body.assignees:
        ensure_account(errand.world, login)
    issue = await open_issue(errand.world, errand.actor, errand.repository, new)
    return errand.world.views.issue(issue)


async def edit(errand: Errand) -> Any:
    """Change title or text."""
    body: EditBody = errand.body
    issue = await edit_issue(
        errand.world, errand.actor, errand.issue, title=body.title, body=body.body
    )
    return errand.world.views.issue(issue)


async def close(errand: Errand) -> Any:
    """Close an issue or pull request."""
    body: CloseBody = errand.body
    issue = await set_state(errand.world, errand.actor, errand.issue, State.CLOSED, body.reason)
    return errand.world.views.issue(issue)


async def reopen(errand: Errand) -> Any:
    """Reopen an issue or pull request."""
    issue = await set_state(errand.world, errand.actor, errand.issue, State.OPEN)
    return errand.world.views.issue(issue)


async def label(errand: Errand) -> Any:
    """Add labels."""
    rows = errand.world.views.labels_of(errand.issue)
    rows += [ensure_label(errand.world, errand.repository, name) for name in errand.body.names]
    issue = await set_labels(errand.world, errand.actor, errand.issue, rows)
    return errand.world.views.issue(issue)


async def unlabel(errand: Errand) -> Any:
    """Take labels off."""
    gone = {name.lower() for name in errand.body.names}
    rows = errand.world.views.labels_of(errand.issue)
    kept = [row for row in rows if row.name.lower() not in gone]
    issue = await set_labels(errand.world, errand.actor, errand.issue, kept)
    return errand.world.views.issue(issue)


async def assign(errand: Errand) -> Any:
    """Assign people."""
    more = [ensure_account(errand.world, login) for login in errand.body.names]
    wanted = [*errand.world.views.assignees_of(errand.issue), *more]
    issue = await set_assignees(errand.world, errand.actor, errand.issue, wanted)
    return errand.world.views.issue(issue)


async def unassign(errand: Errand) -> Any:
    """Take people off."""
    gone = {login.lower() for login in errand.body.names}
    assigned = errand.world.views.assignees_of(errand.issue)
    kept = [account for account in assigned if account.login.lower() not in gone]
    issue = await set_assignees(errand.world, errand.actor, errand.issue, kept)
    return errand.world.views.issue(issue)


async def lock(errand: Errand) -> Any:
    """Lock the conversation."""
    issue = await set_lock(
        errand.world, errand.actor, errand.issue, locked=True, reason=errand.body.reason
    )
    return errand.world.views.issue(issue)


async def unlock(errand: Errand) -> Any:
    """Unlock the conversation."""
    issue = await set_lock(errand.world, errand.actor, errand.issue, locked=False)
    return errand.world.views.issue(issue)


async def delete(errand: Errand) -> Any:
    """Delete an issue for good."""
    await delete_issue(errand.world, errand.actor, errand.issue)
    return {}


async def transfer(errand: Errand) -> Any:
    """Move an issue to another repository."""
    target = errand.repository_named(errand.body.to)
    issue = await transfer_issue(errand.world, errand.actor, errand.issue, target)
    return errand.world.views.issue(issue)


async def comment(errand: Errand) -> Any:
    """Comment on an issue or pull request."""
    made = add_comment(errand.world, errand.actor, errand.issue, errand.body.body)
    return errand.world.views.comment(made)


def _comment(errand: Errand) -> Comment:
    found = errand.store.comments.get(int(errand.part("comment_id")))
    if found is None:
        raise GitHubError(404, f"no comment {errand.part('comment_id')}")
    return found


async def change_comment(errand: Errand) -> Any:
    """Change the text of a comment."""
    changed = edit_comment(errand.world, errand.actor, _comment(errand), errand.body.body)
    return errand.world.views.comment(changed)


async def remove_comment(errand: Errand) -> Any:
    """Delete a comment."""
    delete_comment(errand.world, errand.actor, _comment(errand))
    return {}


async def open_pull_request(errand: Errand) -> Any:
    """Open a pull request."""
    body: PullBody = errand.body
    new = NewPull(body.title, body.head, body.base, body.body)
    issue, pull = await open_pull(errand.world, errand.actor, errand.repository, new)
    return errand.world.views.pull(issue, pull)


async def merge(errand: Errand) -> Any:
    """Merge a pull request."""
    pull = await merge_pull(errand.world, errand.actor, errand.issue, method=errand.body.method)
    return {"sha": pull.merge_sha, "merged": True}


async def push(errand: Errand) -> Any:
    """Push to a branch as a person would, past any protection."""
    body: PushBody = errand.body
    world, repository, ref = errand.world, errand.repository, f"refs/heads/{body.branch}"
    if not is_ref_name(ref):
        raise GitHubError(422, "branch: not a branch name")
    if body.delete:
        old = await world.git.tip(repository.id, ref)
        if old is None:
            raise GitHubError(404, f"no branch {body.branch}")
        update = RefUpdate(ref, old, ZERO_SHA, "admin")
        await move_ref(world, errand.actor, repository, update)
    else:
        files = as_files(body.files)
        update = await push_files(world, errand.actor, repository, body.branch, files, body.message)
    return {"ref": update.ref, "old": update.old, "new": update.new}


_REPO = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPO}/issues/{{number:[0-9]+}}"
_PULL = f"{_REPO}/pulls/{{number:[0-9]+}}"
_COMMENT = f"{_REPO}/comments/{{comment_id:[0-9]+}}"
ROUTES = [
    AdminRoute("POST", f"{_REPO}/issues", IssueBody, open_one),
    AdminRoute("POST", f"{_ISSUE}/edit", EditBody, edit),
    AdminRoute("POST", f"{_ISSUE}/close", CloseBody, close),
    AdminRoute("POST", f"{_ISSUE}/reopen", ByUser, reopen),
    AdminRoute("POST", f"{_ISSUE}/label", NamesBody, label),
    AdminRoute("POST", f"{_ISSUE}/unlabel", NamesBody, unlabel),
    AdminRoute("POST", f"{_ISSUE}/assign", NamesBody, assign),
    AdminRoute("POST", f"{_ISSUE}/unassign", NamesBody, unassign),
    AdminRoute("POST", f"{_ISSUE}/lock", LockBody, lock),
    AdminRoute("POST", f"{_ISSUE}/unlock", ByUser, unlock),
    AdminRoute("POST", f"{_ISSUE}/delete", ByUser, delete),
    AdminRoute("POST", f"{_ISSUE}/transfer", TransferBody, transfer),
    AdminRoute("POST", f"{_ISSUE}/comment", TextBody, comment),
    AdminRoute("PATCH", _COMMENT, TextBody, change_comment),
    AdminRoute("DELETE", _COMMENT, ByUser, remove_comment),
    AdminRoute("POST", f"{_REPO}/pulls", PullBody, open_pull_request),
    AdminRoute("POST", f"{_PULL}/merge", MergeBody, merge),
    AdminRoute("POST", f"{_PULL}/close", CloseBody, close),
    AdminRoute("POST", f"{_PULL}/reopen", ByUser, reopen),
    AdminRoute("POST", f"{_REPO}/push", PushBody, push),
]
