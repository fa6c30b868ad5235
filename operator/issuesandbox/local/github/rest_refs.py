"""REST calls that read and move git refs.

Refuses what GitHub refuses; what follows from a moved ref is in acts_repositories.py.
"""

from __future__ import annotations

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.acts_repositories import RefUpdate, move_ref
from issuesandbox.local.github.answers import Answer, GitHubError, not_found
from issuesandbox.local.github.bare_git import is_object_id, is_ref_name
from issuesandbox.local.github.bodies import Body
from issuesandbox.local.github.calls import Call, Route
from issuesandbox.local.github.model import ZERO_SHA


def _ref(call: Call) -> str:
    name = f"refs/{call.part('ref')}"
    if not is_ref_name(name):
        raise not_found()
    return name


async def _shown(call: Call, name: str, sha: str) -> dict[str, object]:
    kind = await call.world.git.kind(call.repository.id, sha) or "commit"
    return call.views.ref(call.repository, name, sha, kind)


async def _target(call: Call, body: Body) -> str:
    sha = body.needed("sha")
    if not is_object_id(sha) or await call.world.git.kind(call.repository.id, sha) is None:
        raise GitHubError(422, "Object does not exist")
    return sha


def _refuse_protected(call: Call, ref: str) -> None:
    if ref.removeprefix("refs/heads/") in call.repository.protected:
        raise GitHubError(422, "Cannot update this protected ref.")


async def get_ref(call: Call) -> Answer:
    """Show one ref."""
    name = _ref(call)
    sha = await call.world.git.tip(call.repository.id, name)
    if sha is None:
        raise not_found()
    return Answer(200, await _shown(call, name, sha))


async def matching_refs(call: Call) -> Answer:
    """List the refs whose names begin like the given one."""
    start = f"refs/{call.part('ref')}"
    refs = await call.world.git.refs(call.repository.id)
    found = [await _shown(call, name, refs[name]) for name in refs if name.startswith(start)]
    return Answer(200, found)


async def create_ref(call: Call) -> Answer:
    """Make a new ref at an existing object."""
    body = await call.body("Reference")
    name = body.needed("ref")
    if not name.startswith("refs/") or name.count("/") < 2 or not is_ref_name(name):
        raise GitHubError(422, f"{name[:80]!r} is not a valid ref name.")
    sha = await _target(call, body)
    git, repository = call.world.git, call.repository
    async with git.lock(repository.id):
        if await git.tip(repository.id, name) is not None:
            raise GitHubError(422, "Reference already exists")
        await move_ref(call.world, call.actor, repository, RefUpdate(name, ZERO_SHA, sha, "rest"))
    return Answer(201, await _shown(call, name, sha))


async def update_ref(call: Call) -> Answer:
    """Move a ref; backwards only by force."""
    name, body = _ref(call), await call.body("Reference")
    sha = await _target(call, body)
    _refuse_protected(call, name)
    git, repository = call.world.git, call.repository
    async with git.lock(repository.id):
        old = await git.tip(repository.id, name)
        if old is None:
            raise GitHubError(422, "Reference does not exist")
        if not body.flag("force") and not await git.is_ancestor(repository.id, old, sha):
            raise GitHubError(422, "Update is not a fast forward")
        if old != sha:
            await move_ref(call.world, call.actor, repository, RefUpdate(name, old, sha, "rest"))
    return Answer(200, await _shown(call, name, sha))


async def delete_ref(call: Call) -> Answer:
    """Remove a ref."""
    name = _ref(call)
    _refuse_protected(call, name)
    git, repository = call.world.git, call.repository
    async with git.lock(repository.id):
        old = await git.tip(repository.id, name)
        if old is None:
            raise GitHubError(422, "Reference does not exist")
        await move_ref(call.world, call.actor, repository, RefUpdate(name, old, ZERO_SHA, "rest"))
    return Answer(204)


_READ, _WRITE = Need("contents"), Need("contents", write=True)
_GIT = "/repos/{owner}/{repo}/git"
ROUTES = [
    Route("GET", f"{_GIT}/ref/{{ref:.+}}", "git/get-ref", _READ, get_ref),
    Route(
        "GET", f"{_GIT}/matching-refs/{{ref:.+}}", "git/list-matching-refs", _READ, matching_refs
    ),
    Route("POST", f"{_GIT}/refs", "git/create-ref", _WRITE, create_ref),
    Route("PATCH", f"{_GIT}/refs/{{ref:.+}}", "git/update-ref", _WRITE, update_ref),
    Route("DELETE", f"{_GIT}/refs/{{ref:.+}}", "git/delete-ref", _WRITE, delete_ref),
]
