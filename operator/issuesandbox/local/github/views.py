"""How accounts, repositories, the App and its installations look in GitHub's JSON.

Only shapes: each method turns one value into one object and changes nothing.
"""

from __future__ import annotations

import base64
from typing import Any

from issuesandbox.local.github.access import Access
from issuesandbox.local.github.addresses import (
    ACCOUNT_LINKS,
    ORGANIZATION_LINKS,
    REPOSITORY_LINKS,
    Links,
    node_id,
    under,
)
from issuesandbox.local.github.answers import maybe_moment, moment
from issuesandbox.local.github.bare_git import CommitFacts
from issuesandbox.local.github.model import (
    Account,
    AccountKind,
    App,
    GlobalId,
    Installation,
    Permission,
    Repository,
)
from issuesandbox.local.github.store import Store

Json = dict[str, Any]


def role_flags(role: Permission) -> dict[str, bool]:
    """Show a role as the rights it includes."""
    names = {
        "admin": Permission.ADMIN,
        "maintain": Permission.MAINTAIN,
        "push": Permission.WRITE,
        "triage": Permission.TRIAGE,
        "pull": Permission.READ,
    }
    return {name: role.covers(needed) for name, needed in names.items()}


class Views:
    """Shapes for the values that issues and pull requests refer to."""

    def __init__(self, store: Store, links: Links) -> None:
        self.store = store
        self.links = links
        self.access = Access(store)

    def account(self, account: Account) -> Json:
        """Show a user, bot or organisation."""
        url = f"{self.links.api}/users/{account.login}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("U", account.id),
            "avatar_url": f"{self.links.web}/avatars/u/{account.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.links.web}/{account.login}",
            **under(url, ACCOUNT_LINKS),
            "type": account.kind.value,
            "site_admin": account.site_admin,
        }

    def maybe_account(self, ident: GlobalId | None) -> Json | None:
        """Show an account that may be missing."""
        return None if ident is None else self.account(self.store.accounts[ident])

    def profile(self, account: Account) -> Json:
        """Show an account with what its profile page has."""
        blank = ("name", "company", "blog", "location", "email", "hireable", "bio")
        zero = ("public_repos", "public_gists", "followers", "following")
        created = moment(account.created_at)
        return {
            **self.account(account),
            **dict.fromkeys(blank),
            **dict.fromkeys(zero, 0),
            "created_at": created,
            "updated_at": created,
        }

    def own_profile(self, account: Account) -> Json:
        """Show the caller's own account."""
        zero = ("private_gists", "total_private_repos", "owned_private_repos", "disk_usage")
        return {
            **self.profile(account),
            **dict.fromkeys(zero, 0),
            "collaborators": 0,
            "two_factor_authentication": True,
        }

    def organization(self, account: Account) -> Json:
        """Show an organisation as webhook payloads name it."""
        url = f"{self.links.api}/orgs/{account.login}"
        return {
            "login": account.login,
            "id": account.id,
            "node_id": node_id("O", account.id),
            "url": url,
            **under(url, ORGANIZATION_LINKS),
            "avatar_url": f"{self.links.web}/avatars/u/{account.id}",
            "description": None,
        }

    def repository_url(self, repository: Repository) -> str:
        """Return the API address of a repository."""
        return f"{self.links.api}/repos/{self.store.full_name(repository)}"

    def repository(self, repository: Repository) -> Json:
        """Show a repository as it is listed or named inside something else."""
        full_name = self.store.full_name(repository)
        page = f"{self.links.web}/{full_name}"
        host = self.links.web.split("://", 1)[-1]
        open_issues = sum(
            issue.state == "open" and not issue.deleted and issue.moved_to is None
            for issue in self.store.issues.group(repository.id)
        )
        zero = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")
        return {
            "id": repository.id,
            "node_id": node_id("R", repository.id),
            "name": repository.name,
            "full_name": full_name,
            "owner": self.maybe_account(repository.owner_id),
            "private": repository.private,
            "visibility": "private" if repository.private else "public",
            "html_url": page,
            "description": repository.description,
            "fork": False,
            "url": self.repository_url(repository),
            **under(self.repository_url(repository), REPOSITORY_LINKS),
            "clone_url": f"{page}.git",
            "svn_url": page,
            "git_url": f"git://{host}/{full_name}.git",
            "ssh_url": f"git@{host}:{full_name}.git",
            **dict.fromkeys(("mirror_url", "homepage", "language", "license")),
            **dict.fromkeys(zero, 0),
            "default_branch": repository.default_branch,
            "open_issues": open_issues,
            "open_issues_count": open_issues,
            "topics": [],
            "has_issues": True,
            **dict.fromkeys(("has_projects", "has_wiki", "has_pages", "has_discussions"), False),
            **dict.fromkeys(("archived", "disabled"), False),
            "pushed_at": moment(repository.pushed_at),
            "created_at": moment(repository.created_at),
            "updated_at": moment(repository.updated_at),
        }

    def full_repository(self, repository: Repository, role: Permission) -> Json:
        """Show a repository on its own, with what the viewer's role allows."""
        return {
            **self.repository(repository),
            "permissions": role_flags(role),
            "allow_merge_commit": True,
            "allow_squash_merge": True,
            "allow_rebase_merge": False,
            "subscribers_count": 0,
            "network_count": 0,
        }

    def app(self, app: App) -> Json:
        """Show the App."""
        created = moment(app.created_at)
        return {
            "id": app.id,
            "slug": app.slug,
            "node_id": node_id("A", app.id),
            "owner": self.maybe_account(app.owner_id),
            "name": app.slug,
            "description": None,
            "external_url": self.links.web,
            "html_url": f"{self.links.web}/apps/{app.slug}",
            "created_at": created,
            "updated_at": created,
            "permissions": dict(app.permissions),
            "events": list(app.events),
        }

    def installation(self, installation: Installation) -> Json:
        """Show an installation of the App."""
        account = self.store.accounts[installation.account_id]
        app = self.store.app()
        address = f"{self.links.api}/app/installations/{installation.id}"
        return {
            "id": installation.id,
            "account": self.account(account),
            "repository_selection": "all" if installation.repository_ids is None else "selected",
            "access_tokens_url": f"{address}/access_tokens",
            "repositories_url": f"{self.links.api}/installation/repositories",
            "html_url": f"{self.links.web}/settings/installations/{installation.id}",
            "app_id": app.id,
            "app_slug": app.slug,
            "target_id": account.id,
            "target_type": ("Organization" if account.kind is AccountKind.ORGANIZATION else "User"),
            "permissions": dict(installation.permissions),
            "events": list(app.events),
            "created_at": moment(installation.created_at),
            "updated_at": moment(installation.updated_at),
            "single_file_name": None,
            "suspended_by": None,
            "suspended_at": maybe_moment(installation.suspended_at),
        }

    def ref(self, repository: Repository, name: str, sha: str, kind: str) -> Json:
        """Show a git ref."""
        url = f"{self.repository_url(repository)}/git"
        return {
            "ref": name,
            "node_id": f"REF_{base64.urlsafe_b64encode(name.encode()).decode()}",
            "url": f"{url}/{name}",
            "object": {"type": kind, "sha": sha, "url": f"{url}/{kind}s/{sha}"},
        }

    def commit(self, repository: Repository, facts: CommitFacts) -> Json:
        """Show a commit with its place in the repository."""
        url = self.repository_url(repository)
        page = f"{self.links.web}/{self.store.full_name(repository)}"
        person = {"name": facts.name, "email": facts.email, "date": facts.date}
        return {
            "url": f"{url}/commits/{facts.sha}",
            "sha": facts.sha,
            "node_id": f"C_{facts.sha}",
            "html_url": f"{page}/commit/{facts.sha}",
            "comments_url": f"{url}/commits/{facts.sha}/comments",
            "commit": {
                "url": f"{url}/git/commits/{facts.sha}",
                "author": person,
                "committer": person,
                "message": facts.message,
                "comment_count": 0,
                "tree": {"sha": facts.tree, "url": f"{url}/git/trees/{facts.tree}"},
            },
            "author": None,
            "committer": None,
            "parents": [{"sha": sha, "url": f"{url}/commits/{sha}"} for sha in facts.parents],
        }
