"""What happens to accounts, repositories and refs: creating them, and every way a ref can move.

A moved ref is journaled, updates the pull requests on that branch and is announced, whoever moved
it. Knows no HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from issuesandbox.local.github.acts_issues import announce_issue, save, set_state
from issuesandbox.local.github.answers import GitHubError, invalid, moment
from issuesandbox.local.github.bare_git import File, GitFailedError, NewCommit, RefMovedError
from issuesandbox.local.github.journal import note_effect
from issuesandbox.local.github.model import (
    ZERO_SHA,
    Account,
    AccountKind,
    Actor,
    Repository,
    State,
)
from issuesandbox.local.github.world import Subject, World

_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MOST_COMMITS_SHOWN = 20


@dataclass(frozen=True)
class NewRepository:
    """What it takes to make a repository; with files it gets a first commit."""

    name: str
    private: bool = True
    default_branch: str = "main"
    description: str | None = None


@dataclass(frozen=True)
class RefUpdate:
    """A ref that moved, and the way it came."""

    ref: str
    old: str
    new: str
    via: str

    @property
    def branch(self) -> str | None:
        """Return the branch, if it is one."""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else None


def ensure_account(
    world: World, login: str, kind: AccountKind = AccountKind.USER, **more: Any
) -> Account:
    """Return the account of this login, made or changed as told."""
    if not _LOGIN.fullmatch(login):
        raise invalid("User", "login")
    known = world.store.account(login)
    if known is not None:
        return world.store.accounts.put(replace(known, **more)) if more else known
    return world.store.accounts.put(
        Account(id=world.store.new_id(), login=login, kind=kind, created_at=world.now(), **more)
    )


async def create_repository(world: World, owner: Account, new: NewRepository) -> Repository:
    """Make an empty repository."""
    if not _NAME.fullmatch(new.name) or new.name.endswith(".git") or new.name in (".", ".."):
        raise invalid("Repository", "name")
    if world.store.repositories.first((owner.id, new.name.lower())):
        message = "name already exists on this account"
        raise invalid("Repository", "name", "custom", message)
    now = world.now()
    repository = Repository(
        id=world.store.new_id(),
        owner_id=owner.id,
        name=new.name,
        private=new.private,
        default_branch=new.default_branch,
        description=new.description,
        created_at=now,
        updated_at=now,
        pushed_at=now,
    )
    await world.git.create(repository.id, new.default_branch)
    world.store.repositories.put(repository)
    note_effect("repository.created", repository=world.store.full_name(repository))
    return repository


def delete_repository(world: World, repository: Repository) -> None:
    """Remove a repository with all it holds."""
    note_effect("repository.deleted", repository=world.store.full_name(repository))
    world.store.drop_repository(repository)
    world.git.remove(repository.id)


async def push_files(
    world: World,
    actor: Actor,
    repository: Repository,
    branch: str,
    files: Mapping[str, File],
    message: str,
) -> RefUpdate:
    """Commit files to a branch; a new branch starts at the default branch."""
    ref = f"refs/heads/{branch}"
    async with world.git.lock(repository.id):
        refs = await world.git.refs(repository.id)
        parent = refs.get(ref) or refs.get(f"refs/heads/{repository.default_branch}")
        commit = NewCommit(files, message, actor.account.login, world.now(), parent)
        try:
            new = await world.git.commit(repository.id, commit)
        except GitFailedError as error:
            raise GitHubError(422, f"cannot commit to {branch}: {error}") from error
        update = RefUpdate(ref, refs.get(ref, ZERO_SHA), new, "admin")
        await move_ref(world, actor, repository, update)
    return update


async def move_ref(world: World, actor: Actor, repository: Repository, update: RefUpdate) -> None:
    """Move a ref by compare-and-swap and tell everybody."""
    try:
        await world.git.move(repository.id, update.ref, update.old, update.new)
    except RefMovedError as error:
        raise GitHubError(409, f"Reference cannot be updated: {error}") from error
    await ref_moved(world, actor, repository, update)


async def ref_moved(world: World, actor: Actor, repository: Repository, update: RefUpdate) -> None:
    """Do what follows from a ref that has moved."""
    world.record_push(repository, update.ref, update.old, update.new, update.via)
    fresh = world.store.repositories[repository.id]
    now = world.now()
    repository = world.store.repositories.put(replace(fresh, pushed_at=now, updated_at=now))
    await _follow_pulls(world, actor, repository, update)
    world.announce(
        ("push", None),
        actor,
        repository,
        Subject(),
        await _push_payload(world, actor, repository, update),
    )


async def _follow_pulls(
    world: World, actor: Actor, repository: Repository, update: RefUpdate
) -> None:
    for pull in world.store.pulls.group(repository.id):
        issue = world.store.issues[pull.issue_id]
        if pull.head != update.branch or issue.state is not State.OPEN:
            continue
        if update.new == ZERO_SHA:
            await set_state(world, actor, issue, State.CLOSED)
            continue
        world.store.pulls.put(replace(world.store.pulls[pull.id], head_sha=update.new))
        issue = save(world, issue)
        ends = {"before": update.old, "after": update.new}
        await announce_issue(world, actor, issue, "synchronize", ends)


async def _push_payload(
    world: World, actor: Actor, repository: Repository, update: RefUpdate
) -> dict[str, Any]:
    created, deleted = update.old == ZERO_SHA, update.new == ZERO_SHA
    commits = [] if deleted else await _pushed_commits(world, repository, update)
    forced = not (created or deleted) and not await world.git.is_ancestor(
        repository.id, update.old, update.new
    )
    page = f"{world.links.web}/{world.store.full_name(repository)}"
    return {
        "ref": update.ref,
        "before": update.old,
        "after": update.new,
        "created": created,
        "deleted": deleted,
        "forced": forced,
        "base_ref": None,
        "compare": f"{page}/compare/{update.old[:12]}...{update.new[:12]}",
        "commits": commits,
        "head_commit": commits[-1] if commits else None,
        "pusher": {"name": actor.account.login, "email": None},
        "repository": {
            **world.views.repository(repository),
            "created_at": int(repository.created_at.timestamp()),
            "pushed_at": int(repository.pushed_at.timestamp()),
            "updated_at": moment(repository.updated_at),
        },
    }


async def _pushed_commits(
    world: World, repository: Repository, update: RefUpdate
) -> list[dict[str, Any]]:
    if update.branch is None:
        return []
    start = update.old
    if start == ZERO_SHA:
        trunk = f"refs/heads/{repository.default_branch}"
        start = "" if trunk == update.ref else await world.git.tip(repository.id, trunk) or ""
    revisions = [f"--max-count={_MOST_COMMITS_SHOWN}", update.new, *([f"^{start}"] * bool(start))]
    page = f"{world.links.web}/{world.store.full_name(repository)}"
    return [
        {
            "id": facts.sha,
            "tree_id": facts.tree,
            "distinct": True,
            "message": facts.message,
            "timestamp": facts.date,
            "url": f"{page}/commit/{facts.sha}",
            "author": {"name": facts.name, "email": facts.email},
            "committer": {"name": facts.name, "email": facts.email},
        }
        for facts in reversed(await world.git.log(repository.id, *revisions))
    ]
