"""Who calls, and what they may do where.

An installation may do what its token was minted for, a user what their role in the repository
allows. A repository that a caller may not see does not exist for them. Knows nothing of routes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from issuesandbox.local.github.answers import GitHubError, not_found
from issuesandbox.local.github.model import (
    Account,
    Actor,
    Association,
    Installation,
    Permission,
    Repository,
    Token,
)
from issuesandbox.local.github.store import Store
from issuesandbox.local.github.tokens import Tokens, bad_credentials


@dataclass(frozen=True)
class Caller:
    """The identity behind one request: the App itself, an installation, a user or nobody."""

    is_app: bool = False
    installation: Installation | None = None
    account: Account | None = None
    token: Token | None = None

    @property
    def is_anonymous(self) -> bool:
        """Tell whether no credential came with the request."""
        return not self.is_app and self.account is None


@dataclass(frozen=True)
class Need:
    """A permission that a call takes: a scope of tokens, and a role for users."""

    scope: str
    write: bool = False
    role: Permission | None = None
    # GitHub takes the pull request permission in place of the issue one on pull requests.
    on_pull: str | None = None

    @property
    def user_role(self) -> Permission:
        """Return the role that a user needs."""
        if self.role is not None:
            return self.role
        return Permission.WRITE if self.write else Permission.READ


def identify(store: Store, tokens: Tokens, authorization: str | None) -> Caller:
    """Tell who sent an Authorization header (Bearer, token, or Basic with a token inside)."""
    if not authorization:
        return Caller()
    value = _credential(authorization)
    if value.count(".") == 2:
        tokens.check_assertion(store.app(), value)
        return Caller(is_app=True)
    token = tokens.find(value)
    if token.installation_id is None:
        account = store.accounts.get(token.account_id or 0)
        if account is None:
            raise bad_credentials()
        return Caller(account=account, token=token)
    installation = store.installations.get(token.installation_id)
    if installation is None:
        raise bad_credentials()
    if installation.suspended_at is not None:
        raise GitHubError(403, "This installation has been suspended")
    return Caller(
        installation=installation, account=store.accounts[store.app().bot_id], token=token
    )


def _credential(authorization: str) -> str:
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() in ("bearer", "token"):
        return value.strip()
    if scheme.lower() != "basic":
        raise bad_credentials()
    try:
        user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise bad_credentials() from error
    # A token may stand in either place: `x-access-token:TOKEN` and `TOKEN:` both occur.
    return password or user


class Access:
    """Answers every question of the form "may this caller …"."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def role(self, account: Account, repository: Repository) -> Permission:
        """Return an account's role in a repository."""
        if account.id == repository.owner_id or account.site_admin:
            return Permission.ADMIN
        member = repository.members.get(account.id)
        role = member.permission if member else account.permission
        if role is Permission.NONE and not repository.private:
            return Permission.READ
        return role

    def association(self, account: Account, repository: Repository) -> Association:
        """Return how an author relates to a repository."""
        member = repository.members.get(account.id)
        configured = (member.association if member else None) or account.association
        if configured is not None:
            return configured
        if account.id == repository.owner_id:
            return Association.OWNER
        role = member.permission if member else account.permission
        return Association.NONE if role is Permission.NONE else Association.COLLABORATOR

    def installation_of(self, repository: Repository) -> Installation | None:
        """Return the installation that covers a repository."""
        for installation in self._store.installations.group(repository.owner_id):
            chosen = installation.repository_ids
            if chosen is None or repository.id in chosen:
                return installation
        return None

    def sees(self, caller: Caller, repository: Repository) -> bool:
        """Tell whether the repository exists for this caller."""
        return not repository.private or self._reaches(caller, repository)

    def require(self, caller: Caller, repository: Repository, need: Need, *, pull: bool) -> None:
        """Refuse the caller as GitHub would, unless they may."""
        if not self.sees(caller, repository):
            raise not_found()
        if self.may(caller, repository, need, pull=pull):
            return
        if caller.is_anonymous:
            raise GitHubError(401)
        if caller.installation is not None:
            raise GitHubError(403, "Resource not accessible by integration")
        if caller.token is not None and caller.token.permissions is not None:
            raise GitHubError(403, "Resource not accessible by personal access token")
        raise GitHubError(403, "Must have admin rights to Repository.")

    def may(self, caller: Caller, repository: Repository, need: Need, *, pull: bool) -> bool:
        """Tell whether the caller has what a call needs."""
        if not need.write and not repository.private and not need.role:
            return True
        if caller.account is None or not self._reaches(caller, repository):
            return False
        scopes = [need.scope, need.on_pull] if pull and need.on_pull else [need.scope]
        granted = caller.token.permissions if caller.token else None
        if granted is not None and not any(_grants(granted, name, need.write) for name in scopes):
            return False
        if caller.installation is not None:
            return True
        return self.role(caller.account, repository).covers(need.user_role)

    def _reaches(self, caller: Caller, repository: Repository) -> bool:
        """Tell whether the caller's credential extends to this repository at all."""
        if caller.account is None:
            return False
        limit = caller.token.repository_ids if caller.token else None
        if limit is not None and repository.id not in limit:
            return False
        if caller.installation is not None:
            covering = self.installation_of(repository)
            return covering is not None and covering.id == caller.installation.id
        return self.role(caller.account, repository).covers(Permission.READ)


def _grants(granted: Mapping[str, str], scope: str | None, write: bool) -> bool:
    level = granted.get(scope or "")
    return level in ("write", "admin") or (not write and level == "read")


def acting(caller: Caller) -> Actor:
    """Return who acts in this call; nobody cannot."""
    if caller.account is None:
        raise GitHubError(401)
    return Actor(caller.account, via_app=caller.installation is not None)


def described(store: Store, caller: Caller) -> dict[str, Any]:
    """Describe a caller for the journal, without the token."""
    if caller.is_app:
        return {"kind": "app", "app": store.app().id}
    if caller.account is None:
        return {"kind": "anonymous"}
    token = caller.token
    limit = token.repository_ids if token else None
    names = [store.full_name(row) for row in map(store.repositories.get, limit or ()) if row]
    scope = {
        "login": caller.account.login,
        "permissions": None if token is None or token.permissions is None else token.permissions,
        "repositories": None if limit is None else names,
    }
    if caller.installation is not None:
        return {"kind": "installation", "installation": caller.installation.id, **scope}
    return {"kind": "user", **scope}
