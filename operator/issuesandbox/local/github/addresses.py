"""Where everything lives, as GitHub's JSON spells it out in every object.

Only names and addresses; knows nothing of what is behind them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from issuesandbox.local.github.model import GlobalId

ACCOUNT_LINKS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
REPOSITORY_LINKS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}
ORGANIZATION_LINKS = {
    "repos_url": "/repos",
    "events_url": "/events",
    "hooks_url": "/hooks",
    "issues_url": "/issues",
    "members_url": "/members{/member}",
    "public_members_url": "/public_members{/member}",
}


@dataclass(frozen=True)
class Links:
    """Where the REST API and the pages for people live, as the caller sees them."""

    api: str
    web: str


def node_id(prefix: str, ident: GlobalId) -> str:
    """Return the opaque global node id."""
    return f"{prefix}_kwDO{base64.urlsafe_b64encode(ident.to_bytes(6, 'big')).decode()}"


def under(base: str, links: Mapping[str, str]) -> dict[str, str]:
    """Put all addresses of a table below a base."""
    return {name: base + rest for name, rest in links.items()}
