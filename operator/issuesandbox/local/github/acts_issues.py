"""What people and bots do to issues: open, edit, close, label, assign, lock, delete, transfer.

Each act changes the store, writes history and announces itself. A pull request's conversation is
an issue too; what happens to it is announced as an event of the pull request. Knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from issuesandbox.local.github.answers import invalid, refused
from issuesandbox.local.github.model import (
    Account,
    Actor,
    GlobalId,
    Issue,
    IssueEvent,
    Label,
    Moved,
    Repository,
    State,
)
from issuesandbox.local.github.pull_facts import pull_facts
from issuesandbox.local.github.world import Subject, World

_LABEL_COLOR = "ededed"


@dataclass(frozen=True)
class NewIssue:
    """What somebody fills in to open an issue."""

    title: str
    body: str | None = None
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


async def announce_issue(
    world: World, actor: Actor, issue: Issue, action: str, extra: Mapping[str, Any] | None = None
) -> None:
    """Announce something about an issue, or about the pull request that it belongs to."""
    repository = world.store.repositories[issue.repository_id]
    if issue.pull_id is None:
        subject = Subject(issue.number, issue.id)
        payload = {"issue": world.views.issue(issue), **(extra or {})}
        world.announce(("issues", action), actor, repository, subject, payload)
        return
    pull = world.store.pulls[issue.pull_id]
    shown = world.views.full_pull(issue, pull, await pull_facts(world.git, pull))
    world.announce(
        ("pull_request", action),
        actor,
        repository,
        Subject(issue.number, pull.id),
        {"number": issue.number, "pull_request": shown, **(extra or {})},
    )


def add_history(
    world: World, actor: Actor, issue: Issue, event: str, **details: GlobalId | str
) -> None:
    """Write an entry into the history of an issue."""
    world.store.events.put(
        IssueEvent(
            id=world.store.new_id(),
            issue_id=issue.id,
            actor_id=actor.account.id,
            event=event,
            created_at=world.now(),
            **details,  # type: ignore[arg-type]
        )
    )


def save(world: World, issue: Issue, **changes: Any) -> Issue:
    """Keep a changed issue with the time of the change; others may have changed it meanwhile."""
    fresh = world.store.issues[issue.id]
    return world.store.issues.put(replace(fresh, updated_at=world.now(), **changes))


def create_row(world: World, actor: Actor, repository: Repository, new: NewIssue) -> Issue:
    """Give a new issue its ids and keep it, without telling anybody."""
    now = world.now()
    return world.store.add_issue(
        Issue(
            id=world.store.new_id(),
            repository_id=repository.id,
            number=world.take_number(repository),
            title=new.title,
            body=new.body,
            author_id=actor.account.id,
            via_app=actor.via_app,
            created_at=now,
            updated_at=now,
        )
    )


async def open_issue(world: World, actor: Actor, repository: Repository, new: NewIssue) -> Issue:
    """Open an issue; GitHub announces its first labels and assignees one by one as well."""
    assignees = known_accounts(world, new.assignees)
    labels = [ensure_label(world, repository, name) for name in new.labels]
    issue = create_row(world, actor, repository, new)
    issue = save(
        world,
        issue,
        label_ids=tuple(dict.fromkeys(label.id for label in labels)),
        assignee_ids=tuple(dict.fromkeys(account.id for account in assignees)),
    )
    await announce_issue(world, actor, issue, "opened")
    await _tell_labels(world, actor, issue, "labeled", issue.label_ids)
    await _tell_assignees(world, actor, issue, "assigned", issue.assignee_ids)
    return issue


async def edit_issue(
    world: World, actor: Actor, issue: Issue, *, title: str | None = None, body: str | None = None
) -> Issue:
    """Change title or body; without a real change nothing is announced."""
    changes: dict[str, Any] = {}
    if title is not None and title != issue.title:
        changes["title"] = {"from": issue.title}
        add_history(world, actor, issue, "renamed", renamed_from=issue.title, renamed_to=title)
    if body is not None and body != (issue.body or ""):
        changes["body"] = {"from": issue.body or ""}
    if not changes:
        return issue
    new: dict[str, Any] = {"title": title, "body": body}
    new = {name: new[name] for name in changes}
    if "body" in changes:
        new |= {"edited_at": world.now(), "editor_id": actor.account.id}
    issue = save(world, issue, **new)
    await announce_issue(world, actor, issue, "edited", {"changes": changes})
    return issue


async def set_state(
    world: World, actor: Actor, issue: Issue, state: State, reason: str | None = None
) -> Issue:
    """Close or reopen; what already is so stays silent."""
    if state is world.store.issues[issue.id].state:
        return issue
    pull = world.store.pulls.get(issue.pull_id or 0)
    if pull is not None and pull.merged_at is not None and state is State.OPEN:
        raise refused("PullRequest", "state cannot be changed. The pull request is merged.")
    if state is State.CLOSED:
        issue = save(
            world,
            issue,
            state=state,
            state_reason=None if pull else reason or "completed",
            closed_at=world.now(),
            closed_by=actor.account.id,
        )
    else:
        issue = save(
            world, issue, state=state, state_reason="reopened", closed_at=None, closed_by=None
        )
    action = "closed" if state is State.CLOSED else "reopened"
    add_history(world, actor, issue, action)
    await announce_issue(world, actor, issue, action)
    return issue


def ensure_label(world: World, repository: Repository, name: str) -> Label:
    """Return the label of this name; GitHub makes unknown ones on the fly."""
    if not name.strip() or len(name) > 50:
        raise invalid("Label", "name")
    known = world.store.label(repository, name)
    if known is not None:
        return known
    return world.store.labels.put(
        Label(id=world.store.new_id(), repository_id=repository.id, name=name, color=_LABEL_COLOR)
    )


async def set_labels(world: World, actor: Actor, issue: Issue, wanted: Iterable[Label]) -> Issue:
    """Give an issue exactly these labels and announce each difference."""
    after = tuple(dict.fromkeys(label.id for label in wanted))
    added = [ident for ident in after if ident not in issue.label_ids]
    removed = [ident for ident in issue.label_ids if ident not in after]
    if not added and not removed:
        return issue
    issue = save(world, issue, label_ids=after)
    await _tell_labels(world, actor, issue, "unlabeled", removed)
    await _tell_labels(world, actor, issue, "labeled", added)
    return issue


async def set_assignees(
    world: World, actor: Actor, issue: Issue, wanted: Iterable[Account]
) -> Issue:
    """Give an issue exactly these assignees and announce each difference."""
    after = tuple(dict.fromkeys(account.id for account in wanted))
    added = [ident for ident in after if ident not in issue.assignee_ids]
    removed = [ident for ident in issue.assignee_ids if ident not in after]
    if not added and not removed:
        return issue
    issue = save(world, issue, assignee_ids=after)
    await _tell_assignees(world, actor, issue, "unassigned", removed)
    await _tell_assignees(world, actor, issue, "assigned", added)
    return issue


async def set_lock(
    world: World, actor: Actor, issue: Issue, *, locked: bool, reason: str | None = None
) -> Issue:
    """Lock or unlock the conversation."""
    if locked == issue.locked:
        return issue
    issue = save(world, issue, locked=locked, lock_reason=reason if locked else None)
    action = "locked" if locked else "unlocked"
    add_history(world, actor, issue, action)
    await announce_issue(world, actor, issue, action)
    return issue


async def delete_issue(world: World, actor: Actor, issue: Issue) -> None:
    """Delete an issue for good; its number stays used."""
    _refuse_pull(issue)
    issue = save(world, issue, deleted=True)
    await announce_issue(world, actor, issue, "deleted")


async def transfer_issue(world: World, actor: Actor, issue: Issue, target: Repository) -> Issue:
    """Move an issue: the target gets a new one with new ids, the old address redirects."""
    _refuse_pull(issue)
    source = world.store.repositories[issue.repository_id]
    new = create_row(world, actor, target, NewIssue(issue.title, issue.body))
    new = save(
        world,
        new,
        author_id=issue.author_id,
        via_app=issue.via_app,
        state=issue.state,
        state_reason=issue.state_reason,
        closed_at=issue.closed_at,
        closed_by=issue.closed_by,
    )
    for comment in world.store.comments.group(issue.id):
        world.store.comments.put(replace(comment, issue_id=new.id))
    issue = save(world, issue, moved_to=Moved(repository_id=target.id, number=new.number))
    views = world.views
    changes = {"new_issue": views.issue(new), "new_repository": views.repository(target)}
    await announce_issue(world, actor, issue, "transferred", {"changes": changes})
    changes = {"old_issue": views.issue(issue), "old_repository": views.repository(source)}
    await announce_issue(world, actor, new, "opened", {"changes": changes})
    return new


def _refuse_pull(issue: Issue) -> None:
    if issue.pull_id is not None:
        raise invalid("Issue", "number", "custom", "a pull request cannot be moved or deleted")


def known_accounts(world: World, logins: Iterable[str]) -> list[Account]:
    """Find the accounts of these logins, all of them or none."""
    accounts = []
    for login in logins:
        account = world.store.account(login)
        if account is None:
            raise invalid("Issue", "assignees")
        accounts.append(account)
    return accounts


async def _tell_labels(
    world: World, actor: Actor, issue: Issue, action: str, labels: Iterable[GlobalId]
) -> None:
    repository = world.store.repositories[issue.repository_id]
    for ident in labels:
        add_history(world, actor, issue, action, label_id=ident)
        shown = world.views.label(repository, world.store.labels[ident])
        await announce_issue(world, actor, issue, action, {"label": shown})


async def _tell_assignees(
    world: World, actor: Actor, issue: Issue, action: str, assignees: Iterable[GlobalId]
) -> None:
    for ident in assignees:
        add_history(world, actor, issue, action, assignee_id=ident)
        shown = world.views.account(world.store.accounts[ident])
        await announce_issue(world, actor, issue, action, {"assignee": shown})
