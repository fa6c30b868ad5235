"""REST calls about accounts, repositories, branches, commits, roles and the rate limit.

Only reads, and shows what others keep.
"""

from __future__ import annotations

from typing import Any

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.answers import Answer, GitHubError, not_found
from issuesandbox.local.github.bare_git import is_object_id, is_ref_name
from issuesandbox.local.github.calls import Call, Identity, Route
from issuesandbox.local.github.model import ZERO_SHA, Account, Permission, Repository
from issuesandbox.local.github.views import role_flags

# The answer has four words for six roles.
_SHOWN_ROLE = {
    Permission.NONE: "none",
    Permission.READ: "read",
    Permission.TRIAGE: "read",
    Permission.WRITE: "write",
    Permission.MAINTAIN: "write",
    Permission.ADMIN: "admin",
}

_METADATA, _CONTENTS, _PUSH = Need("metadata"), Need("contents"), Need("contents", write=True)


def _account(call: Call, part: str) -> Account:
    account = call.store.account(call.part(part))
    if account is None:
        raise not_found()
    return account


async def rate_limit(call: Call) -> Answer:
    """Show the caller's budget; asking is free."""
    core = call.gate.limits.of(call.caller).shown()
    search = {"limit": 30, "remaining": 30, "reset": core["reset"], "used": 0}
    return Answer(200, {"resources": {"core": core, "search": search}, "rate": core})


async def get_user(call: Call) -> Answer:
    """Show an account."""
    return Answer(200, call.views.profile(_account(call, "login")))


async def get_self(call: Call) -> Answer:
    """Show the caller's own account; an installation has none."""
    if call.caller.installation is not None or call.caller.account is None:
        raise GitHubError(403, "Resource not accessible by integration")
    return Answer(200, call.views.own_profile(call.caller.account))


def _visible(call: Call, owner: Account | None) -> list[Repository]:
    return [
        row
        for row in call.store.repositories
        if (owner is None or row.owner_id == owner.id) and call.world.access.sees(call.caller, row)
    ]


async def list_own_repositories(call: Call) -> Answer:
    """List the repositories that the caller can reach."""
    return call.page(_visible(call, None), call.views.repository)


async def list_account_repositories(call: Call) -> Answer:
    """List the repositories of an account that the caller can see."""
    return call.page(_visible(call, _account(call, "login")), call.views.repository)


async def get_repository(call: Call) -> Answer:
    """Show a repository."""
    caller, access = call.caller, call.world.access
    role = Permission.READ
    if caller.installation is not None:
        may_push = access.may(caller, call.repository, _PUSH, pull=False)
        role = Permission.WRITE if may_push else Permission.READ
    elif caller.account is not None:
        role = access.role(caller.account, call.repository)
    return Answer(200, call.views.full_repository(call.repository, role))


async def list_branches(call: Call) -> Answer:
    """List the branches of a repository."""
    refs = await call.world.git.refs(call.repository.id, "refs/heads/")
    url = call.views.repository_url(call.repository)

    def show(item: tuple[str, str]) -> dict[str, Any]:
        name, sha = item[0].removeprefix("refs/heads/"), item[1]
        commit = {"sha": sha, "url": f"{url}/commits/{sha}"}
        protected = name in call.repository.protected
        return {"name": name, "commit": commit, "protected": protected}

    return call.page(list(refs.items()), show)


async def get_branch(call: Call) -> Answer:
    """Show a branch with its last commit."""
    name, repository = call.part("branch"), call.repository
    ref = f"refs/heads/{name}"
    tip = await call.world.git.tip(repository.id, ref) if is_ref_name(ref) else None
    if tip is None:
        raise GitHubError(404, "Branch not found")
    (facts,) = await call.world.git.log(repository.id, "-1", tip)
    url = call.views.repository_url(repository)
    page = f"{call.views.links.web}/{call.store.full_name(repository)}"
    protected = name in repository.protected
    return Answer(
        200,
        {
            "name": name,
            "commit": call.views.commit(repository, facts),
            "_links": {"self": f"{url}/branches/{name}", "html": f"{page}/tree/{name}"},
            "protected": protected,
            "protection": {"enabled": protected},
            "protection_url": f"{url}/branches/{name}/protection",
        },
    )


async def get_commit(call: Call) -> Answer:
    """Show a commit by id or branch."""
    name, repository = call.part("ref"), call.repository
    ref = f"refs/heads/{name.removeprefix('heads/')}"
    sha = await call.world.git.tip(repository.id, ref) if is_ref_name(ref) else None
    if sha is None and is_object_id(name):
        sha = name
    if sha is None or await call.world.git.kind(repository.id, sha) != "commit":
        raise GitHubError(422, f"No commit found for SHA: {name}")
    (facts,) = await call.world.git.log(repository.id, "-1", sha)
    return Answer(200, call.views.commit(repository, facts))


async def list_activity(call: Call) -> Answer:
    """Tell when branches were moved and by whom, the latest first."""
    name, wanted = call.store.full_name(call.repository), call.query.get("ref")
    moved = [
        each
        for each in reversed(call.world.journal.since(0))
        if each["type"] == "push" and each["repo"] == name and wanted in (None, each["ref"])
    ]

    def show(entry: dict[str, Any]) -> dict[str, Any]:
        login = (entry["identity"] or {}).get("login") or ""
        account = call.store.account(login)
        kinds = {entry["new"]: "branch_deletion", entry["old"]: "branch_creation"}
        return {
            "id": entry["seq"],
            "node_id": f"PSH_{entry['seq']}",
            "before": entry["old"],
            "after": entry["new"],
            "ref": entry["ref"],
            # Whole seconds, as everywhere in this API.
            "timestamp": f"{entry['at'][:19]}Z",
            "activity_type": kinds.get(ZERO_SHA, "push"),
            "actor": call.views.account(account) if account is not None else None,
        }

    return call.page(moved, show)


async def get_permission(call: Call) -> Answer:
    """Tell what an account may do in a repository."""
    account = _account(call, "login")
    role = call.world.access.role(account, call.repository)
    user = {
        **call.views.account(account),
        "role_name": role.value,
        "permissions": role_flags(role),
    }
    return Answer(200, {"permission": _SHOWN_ROLE[role], "role_name": role.value, "user": user})


_REPO = "/repos/{owner}/{repo}"
_ANYBODY, _SOMEBODY = Identity.ANYBODY, Identity.SOMEBODY
ROUTES = [
    Route("GET", "/rate_limit", "rate-limit/get", _ANYBODY, rate_limit),
    Route("GET", "/user", "users/get-authenticated", _SOMEBODY, get_self),
    Route("GET", "/users/{login}", "users/get-by-username", _ANYBODY, get_user),
    Route(
        "GET",
        "/user/repos",
        "repos/list-for-authenticated-user",
        _SOMEBODY,
        list_own_repositories,
    ),
    Route("GET", "/orgs/{login}/repos", "repos/list-for-org", _ANYBODY, list_account_repositories),
    Route(
        "GET", "/users/{login}/repos", "repos/list-for-user", _ANYBODY, list_account_repositories
    ),
    Route("GET", _REPO, "repos/get", _METADATA, get_repository),
    Route("GET", f"{_REPO}/activity", "repos/list-activities", _CONTENTS, list_activity),
    Route("GET", f"{_REPO}/branches", "repos/list-branches", _CONTENTS, list_branches),
    Route("GET", f"{_REPO}/branches/{{branch:.+}}", "repos/get-branch", _CONTENTS, get_branch),
    Route("GET", f"{_REPO}/commits/{{ref:.+}}", "repos/get-commit", _CONTENTS, get_commit),
    Route(
        "GET",
        f"{_REPO}/collaborators/{{login}}/permission",
        "repos/get-collaborator-permission-level",
        Need("metadata", role=Permission.WRITE),
        get_permission,
    ),
]
