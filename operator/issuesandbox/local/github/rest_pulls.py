"""REST calls about pull requests: list, open, show, change, merge.

Translates between HTTP and the acts in acts_pulls.py; who is told is not known here.
"""

from __future__ import annotations

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.acts_issues import edit_issue, set_state
from issuesandbox.local.github.acts_pulls import NewPull, change_base, merge_pull, open_pull
from issuesandbox.local.github.answers import Answer, GitHubError, invalid, not_found
from issuesandbox.local.github.calls import Call, Route
from issuesandbox.local.github.model import Issue, Pull, State
from issuesandbox.local.github.pull_facts import pull_facts


def _pull(call: Call) -> tuple[Issue, Pull]:
    issue = call.issue
    if issue.pull_id is None:
        raise not_found()
    return issue, call.store.pulls[issue.pull_id]


async def _shown(call: Call, issue: Issue, pull: Pull) -> dict[str, object]:
    return call.views.full_pull(issue, pull, await pull_facts(call.world.git, pull))


async def list_pulls(call: Call) -> Answer:
    """List pull requests by state, head (`owner:branch`) and base."""
    state = call.query.get("state", "open")
    if state not in ("open", "closed", "all"):
        raise invalid("PullRequest", "state")
    owner = call.store.accounts[call.repository.owner_id].login.lower()
    head, base = call.query.get("head"), call.query.get("base")
    found = []
    for pull in call.store.pulls.group(call.repository.id):
        issue = call.store.issues[pull.issue_id]
        # GitHub ignores a head filter without an owner.
        account, colon, branch = (head or "").partition(":")
        fits_head = not colon or (account.lower(), branch) == (owner, pull.head)
        if state in ("all", issue.state.value) and fits_head and base in (None, pull.base):
            found.append((issue, pull))
    by_update = call.query.get("sort") == "updated"
    found.sort(
        key=lambda pair: (pair[0].updated_at if by_update else pair[0].created_at, pair[0].number),
        reverse=call.query.get("direction", "desc") != "asc",
    )
    return call.page(found, lambda pair: call.views.pull(*pair))


async def create_pull(call: Call) -> Answer:
    """Open a pull request."""
    body = await call.body("PullRequest")
    new = NewPull(
        title=body.needed("title"),
        head=body.needed("head"),
        base=body.needed("base"),
        body=body.text("body"),
        draft=bool(body.flag("draft")),
        maintainer_can_modify=bool(body.flag("maintainer_can_modify")),
    )
    issue, pull = await open_pull(call.world, call.actor, call.repository, new)
    shown = await _shown(call, issue, pull)
    return Answer(201, shown, {"Location": str(shown["url"])})


async def get_pull(call: Call) -> Answer:
    """Show a pull request with what git says about it."""
    return Answer(200, await _shown(call, *_pull(call)))


async def update_pull(call: Call) -> Answer:
    """Change title, text, base or state."""
    issue, pull = _pull(call)
    body = await call.body("PullRequest")
    title = body.needed("title") if "title" in body else None
    text = (body.text("body") or "") if "body" in body else None
    state, base = body.choice("state", "open", "closed"), body.text("base")
    issue = await edit_issue(call.world, call.actor, issue, title=title, body=text)
    if base is not None:
        await change_base(call.world, call.actor, issue, pull, base)
    if state is not None:
        await set_state(call.world, call.actor, issue, State(state))
    return Answer(200, await _shown(call, call.store.issues[issue.id], call.store.pulls[pull.id]))


async def merge(call: Call) -> Answer:
    """Merge a pull request."""
    issue, _ = _pull(call)
    body = await call.body("PullRequest")
    method = body.choice("merge_method", "merge", "squash", "rebase") or "merge"
    pull = await merge_pull(call.world, call.actor, issue, method=method, expected=body.text("sha"))
    message = "Pull Request successfully merged"
    return Answer(200, {"sha": pull.merge_sha, "merged": True, "message": message})


async def check_merged(call: Call) -> Answer:
    """Tell by status whether a pull request is merged."""
    _, pull = _pull(call)
    if pull.merged_at is None:
        raise GitHubError(404)
    return Answer(204)


_READ, _WRITE = Need("pull_requests"), Need("pull_requests", write=True)
_MERGE = Need("contents", write=True)
_PULLS = "/repos/{owner}/{repo}/pulls"
_PULL = f"{_PULLS}/{{number:[0-9]+}}"
ROUTES = [
    Route("GET", _PULLS, "pulls/list", _READ, list_pulls),
    Route("POST", _PULLS, "pulls/create", _WRITE, create_pull),
    Route("GET", _PULL, "pulls/get", _READ, get_pull),
    Route("PATCH", _PULL, "pulls/update", _WRITE, update_pull),
    Route("GET", f"{_PULL}/merge", "pulls/check-if-merged", _READ, check_merged),
    Route("PUT", f"{_PULL}/merge", "pulls/merge", _MERGE, merge),
]
