"""What people and bots do to pull requests: open, change, merge.

One open pull request per head and base, as on GitHub: the second attempt is refused and says so.
Knows no HTTP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from issuesandbox.local.github.acts_issues import (
    NewIssue,
    add_history,
    announce_issue,
    create_row,
    save,
    set_state,
)
from issuesandbox.local.github.acts_repositories import RefUpdate, move_ref
from issuesandbox.local.github.answers import GitHubError, invalid, refused
from issuesandbox.local.github.bare_git import is_ref_name
from issuesandbox.local.github.model import Actor, Issue, Pull, Repository, State
from issuesandbox.local.github.pull_facts import merges_cleanly
from issuesandbox.local.github.world import World

_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#([0-9]{1,9})\b", re.I)


@dataclass(frozen=True)
class NewPull:
    """What somebody fills in to open a pull request."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False
    maintainer_can_modify: bool = False


async def open_pull(
    world: World, actor: Actor, repository: Repository, new: NewPull
) -> tuple[Issue, Pull]:
    """Open a pull request between two branches of one repository."""
    owner = world.store.accounts[repository.owner_id].login
    head = _own_branch(new.head, owner)
    async with world.git.lock(repository.id):
        head_sha = await _branch_tip(world, repository, head, "head")
        base_sha = await _branch_tip(world, repository, new.base, "base")
        if find_open(world, repository, head, new.base):
            raise refused("PullRequest", f"A pull request already exists for {owner}:{head}.")
        if await world.git.is_ancestor(repository.id, head_sha, base_sha):
            raise refused("PullRequest", f"No commits between {new.base} and {head}")
        issue = create_row(world, actor, repository, NewIssue(new.title, new.body))
        pull = world.store.pulls.put(
            Pull(
                id=world.store.new_id(),
                repository_id=repository.id,
                issue_id=issue.id,
                head=head,
                head_sha=head_sha,
                base=new.base,
                base_sha=base_sha,
                draft=new.draft,
                maintainer_can_modify=new.maintainer_can_modify,
            )
        )
        issue = save(world, issue, pull_id=pull.id)
    await announce_issue(world, actor, issue, "opened")
    return issue, pull


def find_open(world: World, repository: Repository, head: str, base: str) -> Pull | None:
    """Return the open pull request between two branches."""
    for pull in world.store.pulls.group(repository.id):
        is_open = world.store.issues[pull.issue_id].state is State.OPEN
        if is_open and (pull.head, pull.base) == (head, base):
            return pull
    return None


async def change_base(world: World, actor: Actor, issue: Issue, pull: Pull, base: str) -> None:
    """Point a pull request at another base branch."""
    if base == pull.base:
        return
    repository = world.store.repositories[pull.repository_id]
    base_sha = await _branch_tip(world, repository, base, "base")
    changes = {"base": {"ref": {"from": pull.base}, "sha": {"from": pull.base_sha}}}
    world.store.pulls.put(replace(pull, base=base, base_sha=base_sha))
    await announce_issue(world, actor, save(world, issue), "edited", {"changes": changes})


async def merge_pull(
    world: World, actor: Actor, issue: Issue, *, method: str = "merge", expected: str | None = None
) -> Pull:
    """Merge into the base branch and close what the text says it closes."""
    repository = world.store.repositories[issue.repository_id]
    async with world.git.lock(repository.id):
        pull = _mergeable(world, issue, method, expected)
        merge_sha = await _write_merge(world, actor, issue, pull, method)
        now = world.now()
        pull = world.store.pulls.put(
            replace(pull, merged_at=now, merged_by=actor.account.id, merge_sha=merge_sha)
        )
    add_history(world, actor, issue, "merged", commit=merge_sha)
    await set_state(world, actor, issue, State.CLOSED)
    if pull.base == repository.default_branch:
        await _close_linked(world, actor, repository, issue)
    return pull


def _mergeable(world: World, issue: Issue, method: str, expected: str | None) -> Pull:
    pull = world.store.pulls.get(issue.pull_id or 0)
    if pull is None:
        raise GitHubError(404)
    is_closed = world.store.issues[issue.id].state is State.CLOSED
    if pull.merged_at is not None or is_closed or pull.draft:
        raise GitHubError(405, "Pull Request is not mergeable")
    if method == "rebase":
        raise GitHubError(405, "Rebase merges are not allowed on this repository.")
    if expected is not None and expected != pull.head_sha:
        raise GitHubError(409, "Head branch was modified. Review and try the merge again.")
    return pull


async def _write_merge(world: World, actor: Actor, issue: Issue, pull: Pull, method: str) -> str:
    git, repository = world.git, world.store.repositories[pull.repository_id]
    ref = f"refs/heads/{pull.base}"
    base = await git.tip(repository.id, ref)
    tree = await merges_cleanly(git, pull)
    if base is None or tree is None:
        raise GitHubError(405, "Pull Request is not mergeable")
    parents = [base] if method == "squash" else [base, pull.head_sha]
    owner = world.store.accounts[repository.owner_id].login
    title = f"Merge pull request #{issue.number} from {owner}/{pull.head}"
    message = f"{issue.title} (#{issue.number})" if method == "squash" else title
    person, email = actor.account.login, f"{actor.account.login}@users.noreply.github.com"
    merge_sha = await git.run(
        repository.id,
        *("-c", f"user.name={person}", "-c", f"user.email={email}", "commit-tree", tree),
        *(argument for parent in parents for argument in ("-p", parent)),
        # Git refuses a commit message with a NUL in it.
        stdin=message.replace("\0", "").encode(),
    )
    update = RefUpdate(ref, base, merge_sha.strip(), "rest")
    await move_ref(world, actor, repository, update)
    return update.new


async def _close_linked(world: World, actor: Actor, repository: Repository, merged: Issue) -> None:
    for number in dict.fromkeys(_CLOSING.findall(merged.body or "")):
        linked = world.store.issue(repository, int(number))
        if linked is not None and linked.pull_id is None and not linked.deleted:
            await set_state(world, actor, linked, State.CLOSED)


def _own_branch(head: str, owner: str) -> str:
    account, colon, branch = head.rpartition(":")
    if colon and account.lower() != owner.lower():
        raise invalid("PullRequest", "head")
    return branch


async def _branch_tip(world: World, repository: Repository, branch: str, fieldname: str) -> str:
    ref = f"refs/heads/{branch}"
    tip = await world.git.tip(repository.id, ref) if is_ref_name(ref) else None
    if tip is None:
        raise invalid("PullRequest", fieldname)
    return tip
