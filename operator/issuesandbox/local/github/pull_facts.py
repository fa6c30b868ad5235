"""What git says about a pull request: size of the change, and whether it merges.

Only reads. Knows nothing of who asks.
"""

from __future__ import annotations

from issuesandbox.local.github.bare_git import BareGit, GitFailedError
from issuesandbox.local.github.model import Pull
from issuesandbox.local.github.views_issues import PullFacts


async def pull_facts(git: BareGit, pull: Pull) -> PullFacts:
    """Measure a pull request against its base."""
    repository, base, head = pull.repository_id, pull.base_sha, pull.head_sha
    try:
        commits = await git.run(repository, "rev-list", "--count", f"{base}..{head}")
        sizes = await git.run(repository, "diff", "--numstat", f"{base}...{head}")
    except GitFailedError:
        # Nothing in common, or a branch whose objects are gone: GitHub shows zeros.
        return PullFacts()
    rows = [line.split("\t", 2) for line in sizes.splitlines()]
    return PullFacts(
        commits=int(commits),
        additions=sum(int(row[0]) for row in rows if row[0] != "-"),
        deletions=sum(int(row[1]) for row in rows if row[1] != "-"),
        changed_files=len(rows),
        mergeable=None if pull.merged_at else await merges_cleanly(git, pull) is not None,
    )


async def merges_cleanly(git: BareGit, pull: Pull) -> str | None:
    """Return the tree of a clean merge into the base branch as it is now."""
    base = await git.tip(pull.repository_id, f"refs/heads/{pull.base}")
    if base is None:
        return None
    try:
        merged = await git.run(
            pull.repository_id, "merge-tree", "--write-tree", base, pull.head_sha
        )
    except GitFailedError:
        return None
    return merged.split("\n", 1)[0].strip()
