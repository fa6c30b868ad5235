"""The one GraphQL query that is known: who edited an issue's body last, which REST does not tell.

Any other query is refused: this is no GraphQL engine.
"""

from __future__ import annotations

from typing import Any

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.answers import Answer, maybe_moment, not_found
from issuesandbox.local.github.bodies import read_json
from issuesandbox.local.github.calls import Call, Identity, Route
from issuesandbox.local.github.model import AccountKind, Issue

_PATHS = ("/graphql", "/api/graphql")
_KNOWN = (
    "query($owner: String!, $name: String!, $number: Int!) { "
    "repository(owner: $owner, name: $name) { "
    "issue(number: $number) { lastEditedAt editor { __typename login } } } }"
)
_READ = Need("issues")


async def query(call: Call) -> Answer:
    """Answer the query; what is refused is so with 200, as GraphQL does."""
    if call.request.path not in _PATHS:
        raise not_found()
    asked = await read_json(call.request)
    variables = asked.get("variables") or {}
    if " ".join(str(asked.get("query")).split()) != _KNOWN:
        return _problem("this simulator knows one query only", "undefinedField")
    name = f"{variables['owner']}/{variables['name']}"
    repository = call.store.repository(variables["owner"], variables["name"])
    if repository is None or not call.world.access.sees(call.caller, repository):
        text = f"Could not resolve to a Repository with the name '{name}'."
        return _problem(text, "NOT_FOUND", {"repository": None})
    if not call.world.access.may(call.caller, repository, _READ, pull=False):
        return _problem("Resource not accessible by integration", "FORBIDDEN", {"repository": None})
    issue = call.store.issue(repository, variables["number"])
    if issue is None or issue.deleted or issue.moved_to or issue.pull_id is not None:
        text = f"Could not resolve to an Issue with the number of {variables['number']}."
        return _problem(text, "NOT_FOUND", {"repository": {"issue": None}})
    return Answer(200, {"data": {"repository": {"issue": _edit(call, issue)}}})


def _edit(call: Call, issue: Issue) -> dict[str, Any]:
    account = call.store.accounts.get(issue.editor_id or 0)
    shown = None
    if account is not None:
        is_bot = account.kind is AccountKind.BOT
        shown = {
            "__typename": "Bot" if is_bot else "User",
            "login": account.login.removesuffix("[bot]") if is_bot else account.login,
        }
    return {"lastEditedAt": maybe_moment(issue.edited_at), "editor": shown}


def _problem(message: str, kind: str, data: Any = None) -> Answer:
    return Answer(200, {"data": data, "errors": [{"type": kind, "message": message}]})


ROUTES = [Route("POST", path, "graphql", Identity.SOMEBODY, query) for path in _PATHS]
