"""What people and bots say: comments and reactions.

Knows the rules about locked conversations and repeated reactions; knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from issuesandbox.local.github.acts_issues import save
from issuesandbox.local.github.answers import GitHubError
from issuesandbox.local.github.journal import note_effect
from issuesandbox.local.github.model import Actor, Comment, GlobalId, Issue, Permission, Reaction
from issuesandbox.local.github.world import Subject, World


def _announce(
    world: World, actor: Actor, comment: Comment, action: str, extra: Mapping[str, Any]
) -> None:
    issue = world.store.issues[comment.issue_id]
    repository = world.store.repositories[issue.repository_id]
    payload = {
        "issue": world.views.issue(issue),
        "comment": world.views.comment(comment),
        **extra,
    }
    subject = Subject(issue.number, comment.id)
    world.announce(("issue_comment", action), actor, repository, subject, payload)


def add_comment(world: World, actor: Actor, issue: Issue, body: str) -> Comment:
    """Comment on an issue or pull request."""
    repository = world.store.repositories[issue.repository_id]
    role = world.access.role(actor.account, repository)
    if issue.locked and not actor.via_app and not role.covers(Permission.WRITE):
        raise GitHubError(403, "Unable to create comment because issue is locked.")
    now = world.now()
    comment = world.store.comments.put(
        Comment(
            id=world.store.new_id(),
            issue_id=issue.id,
            author_id=actor.account.id,
            via_app=actor.via_app,
            body=body,
            created_at=now,
            updated_at=now,
        )
    )
    save(world, issue)
    _announce(world, actor, comment, "created", {})
    return comment


def edit_comment(world: World, actor: Actor, comment: Comment, body: str) -> Comment:
    """Change the text of a comment."""
    if body == comment.body:
        return comment
    changes = {"changes": {"body": {"from": comment.body}}}
    comment = world.store.comments.put(replace(comment, body=body, updated_at=world.now()))
    save(world, world.store.issues[comment.issue_id])
    _announce(world, actor, comment, "edited", changes)
    return comment


def delete_comment(world: World, actor: Actor, comment: Comment) -> None:
    """Remove a comment."""
    world.store.comments.delete(comment.id)
    save(world, world.store.issues[comment.issue_id])
    _announce(world, actor, comment, "deleted", {})


def react(world: World, actor: Actor, subject: GlobalId, content: str) -> tuple[Reaction, bool]:
    """React once; a second time returns the first reaction."""
    for known in world.store.reactions.group(subject):
        if known.account_id == actor.account.id and known.content == content:
            return known, False
    reaction = world.store.reactions.put(
        Reaction(
            id=world.store.new_id(),
            subject_id=subject,
            account_id=actor.account.id,
            content=content,
            created_at=world.now(),
        )
    )
    note_effect("reaction.created", id=reaction.id, subject=subject, content=content)
    return reaction, True


def unreact(world: World, reaction: Reaction) -> None:
    """Take a reaction back."""
    world.store.reactions.delete(reaction.id)
    note_effect("reaction.deleted", id=reaction.id, subject=reaction.subject_id)
