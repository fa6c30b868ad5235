"""Admin calls that furnish the simulated GitHub: repositories, people, tokens, the App.

Translates between bodies and acts, and knows none of GitHub's rules itself.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic import Field

from issuesandbox.local.github.acts_installations import (
    choose_repositories,
    install,
    suspend,
    uninstall,
)
from issuesandbox.local.github.acts_repositories import (
    NewRepository,
    create_repository,
    delete_repository,
    ensure_account,
    push_files,
)
from issuesandbox.local.github.admin import AdminBody, AdminRoute, ByUser, Errand
from issuesandbox.local.github.answers import GitHubError
from issuesandbox.local.github.bare_git import File, is_ref_name
from issuesandbox.local.github.model import (
    AccountKind,
    Association,
    Installation,
    Member,
    Permission,
    Repository,
)
from issuesandbox.local.github.tokens import Scope


class Binary(AdminBody):
    """A file that is not plain text, or not of the usual mode."""

    base64: str
    mode: str = Field(default="100644", pattern="^(100644|100755|120000)$")


Files = dict[str, str | Binary | None]


def as_files(files: Files) -> dict[str, File]:
    """Turn what a body says about files into what git needs."""
    return {path: _as_file(path, content) for path, content in files.items()}


def _as_file(path: str, content: str | Binary | None) -> File:
    if "\0" in path:
        raise GitHubError(422, "files: a file name cannot have a NUL in it")
    if content is None or isinstance(content, str):
        return File(None if content is None else content.encode())
    try:
        return File(base64.b64decode(content.base64, validate=True), content.mode)
    except binascii.Error as error:
        raise GitHubError(422, f"files.{path}: not base64") from error


class RepositoryBody(ByUser):
    """A repository to make."""

    repository: str = Field(pattern="^[^/]+/[^/]+$")
    private: bool = True
    default_branch: str = "main"
    description: str | None = None
    files: Files = Field(default_factory=dict)
    message: str = "Initial commit"


class UserBody(AdminBody):
    """What a user is in every repository."""

    kind: AccountKind = AccountKind.USER
    permission: Permission | None = None
    association: Association | None = None
    site_admin: bool | None = None


class MemberBody(AdminBody):
    """What a user is in one repository."""

    permission: Permission
    association: Association | None = None


class TokenBody(AdminBody):
    """A token to make for a user or an installation."""

    user: str | None = None
    installation: int | None = None
    permissions: dict[str, str] | None = None
    repositories: list[str] | None = None
    expires_in: float | None = None


class ExpireBody(AdminBody):
    """Tokens to end now: one, those of one owner, or all."""

    token: str = ""
    user: str | None = None
    installation: int = 0
    all: bool = False


class InstallationBody(ByUser):
    """An installation to make."""

    account: str
    repositories: list[str] | None = None
    permissions: dict[str, str] | None = None


class InstallationChange(ByUser):
    """A change to an installation."""

    repositories: list[str] | None = None
    suspended: bool | None = None


async def make_repository(errand: Errand) -> Any:
    """Make a repository, with a first commit if files are given."""
    body: RepositoryBody = errand.body
    owner_name, _, name = body.repository.partition("/")
    if not is_ref_name(f"refs/heads/{body.default_branch}"):
        raise GitHubError(422, "default_branch: not a branch name")
    files = as_files(body.files)
    owner = ensure_account(errand.world, owner_name, AccountKind.ORGANIZATION)
    new = NewRepository(name, body.private, body.default_branch, body.description)
    repository = await create_repository(errand.world, owner, new)
    if files:
        branch = body.default_branch
        await push_files(errand.world, errand.actor, repository, branch, files, body.message)
    return errand.world.views.repository(errand.store.repositories[repository.id])


async def remove_repository(errand: Errand) -> Any:
    """Delete a repository."""
    delete_repository(errand.world, errand.repository)
    return {}


async def list_refs(errand: Errand) -> Any:
    """Show every ref of a repository and where it points."""
    return await errand.world.git.refs(errand.repository.id)


async def set_user(errand: Errand) -> Any:
    """Make a user or change what they are."""
    body: UserBody = errand.body
    more = body.model_dump(exclude={"kind"}, exclude_none=True)
    account = ensure_account(errand.world, errand.part("login"), body.kind, **more)
    return errand.world.views.account(account)


async def set_member(errand: Errand) -> Any:
    """Say what a user is in one repository."""
    body: MemberBody = errand.body
    account = ensure_account(errand.world, errand.part("login"))
    member = Member(permission=body.permission, association=body.association)
    repository = errand.repository
    errand.store.repositories.put(
        replace(repository, members={**repository.members, account.id: member})
    )
    return {"login": account.login, "permission": body.permission, "association": body.association}


async def protect(errand: Errand) -> Any:
    """Refuse every push to a branch."""
    branch = errand.part("branch")
    if not is_ref_name(f"refs/heads/{branch}"):
        raise GitHubError(422, "branch: not a branch name")
    return _set_protected(errand, {*errand.repository.protected, branch})


async def unprotect(errand: Errand) -> Any:
    """Allow pushes to a branch again."""
    return _set_protected(errand, {*errand.repository.protected} - {errand.part("branch")})


def _set_protected(errand: Errand, branches: set[str]) -> dict[str, list[str]]:
    protected = tuple(sorted(branches))
    errand.store.repositories.put(replace(errand.repository, protected=protected))
    return {"protected": list(protected)}


def _named(errand: Errand, names: list[str] | None) -> list[Repository] | None:
    return None if names is None else [errand.repository_named(name) for name in names]


async def make_token(errand: Errand) -> Any:
    """Make a token and hand it out."""
    body: TokenBody = errand.body
    rows = _named(errand, body.repositories)
    ids = None if rows is None else tuple(row.id for row in rows)
    seconds = body.expires_in
    ends = None if seconds is None else errand.world.clock.now() + timedelta(seconds=seconds)
    tokens = errand.world.tokens
    if body.user is not None:
        account = ensure_account(errand.world, body.user)
        value, _ = tokens.for_user(account, Scope(body.permissions, ids, ends))
        return {"token": value}
    installation = errand.store.installations.get(body.installation or 0)
    if installation is None:
        raise GitHubError(422, "user or installation: name the owner of the token")
    scope = Scope(body.permissions or installation.permissions, ids)
    value, _ = tokens.for_installation(installation, scope)
    return {"token": value}


async def expire_tokens(errand: Errand) -> Any:
    """End tokens now."""
    body: ExpireBody = errand.body
    account = errand.store.account(body.user) if body.user else None
    if not (body.token or body.installation or account or body.all):
        raise GitHubError(422, "token, user, installation or all: say which tokens end")
    ended = errand.world.tokens.expire(
        value=body.token,
        installation_id=body.installation,
        account_id=account.id if account else 0,
    )
    return {"expired": ended}


async def show_app(errand: Errand) -> Any:
    """Show the App with its private key, as GitHub hands it out once."""
    app = errand.store.app()
    key = errand.store.folder.path / "app.private-key.pem"
    private_key = key.read_text() if key.exists() else None
    return {**errand.world.views.app(app), "private_key": private_key}


async def make_installation(errand: Errand) -> Any:
    """Install the App on an account."""
    body: InstallationBody = errand.body
    account = ensure_account(errand.world, body.account, AccountKind.ORGANIZATION)
    rows = _named(errand, body.repositories)
    made = install(errand.world, errand.actor, account, rows, body.permissions)
    return errand.world.views.installation(made)


def _installation(errand: Errand) -> Installation:
    found = errand.store.installations.get(int(errand.part("installation_id")))
    if found is None:
        raise GitHubError(404, f"no installation {errand.part('installation_id')}")
    return found


async def change_installation(errand: Errand) -> Any:
    """Give an installation other repositories, or suspend it."""
    body: InstallationChange = errand.body
    installation = _installation(errand)
    rows = _named(errand, body.repositories)
    if rows is not None:
        installation = choose_repositories(errand.world, errand.actor, installation, rows)
    if body.suspended is not None:
        installation = suspend(errand.world, errand.actor, installation, on=body.suspended)
    return errand.world.views.installation(installation)


async def remove_installation(errand: Errand) -> Any:
    """Uninstall the App from an account."""
    uninstall(errand.world, errand.actor, _installation(errand))
    return {}


_REPO = "/repos/{owner}/{repo}"
_INSTALLATION = "/installations/{installation_id:[0-9]+}"
_PROTECTION = f"{_REPO}/protection/{{branch:.+}}"
ROUTES = [
    AdminRoute("POST", "/repos", RepositoryBody, make_repository),
    AdminRoute("DELETE", _REPO, AdminBody, remove_repository),
    AdminRoute("GET", f"{_REPO}/refs", AdminBody, list_refs),
    AdminRoute("PUT", "/users/{login}", UserBody, set_user),
    AdminRoute("PUT", f"{_REPO}/members/{{login}}", MemberBody, set_member),
    AdminRoute("PUT", _PROTECTION, AdminBody, protect),
    AdminRoute("DELETE", _PROTECTION, AdminBody, unprotect),
    AdminRoute("POST", "/tokens", TokenBody, make_token),
    AdminRoute("POST", "/tokens/expire", ExpireBody, expire_tokens),
    AdminRoute("GET", "/app", AdminBody, show_app),
    AdminRoute("POST", "/installations", InstallationBody, make_installation),
    AdminRoute("PATCH", _INSTALLATION, InstallationChange, change_installation),
    AdminRoute("DELETE", _INSTALLATION, ByUser, remove_installation),
]
