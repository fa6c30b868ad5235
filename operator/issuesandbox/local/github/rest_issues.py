"""REST calls about issues: list, open, change, lock, assign, and their history.

Translates between HTTP and the acts in acts_issues.py; who is told about them is not known here.
"""

from __future__ import annotations

from datetime import datetime

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.acts_issues import (
    NewIssue,
    edit_issue,
    ensure_label,
    known_accounts,
    open_issue,
    set_assignees,
    set_labels,
    set_lock,
    set_state,
)
from issuesandbox.local.github.answers import Answer, GitHubError, invalid, not_found
from issuesandbox.local.github.bodies import query_time
from issuesandbox.local.github.calls import Call, Route
from issuesandbox.local.github.model import Issue, Permission, State

_LOCK_REASONS = ("off-topic", "too heated", "resolved", "spam")
_CLOSE_REASONS = ("completed", "not_planned", "duplicate", "reopened")


def _has_role(call: Call, role: Permission) -> bool:
    """Tell whether the caller has at least this role; an installation's token speaks for it."""
    if call.caller.installation is not None:
        return True
    return call.world.access.role(call.actor.account, call.repository).covers(role)


def _is_listed(call: Call, issue: Issue, since: datetime | None) -> bool:
    """Tell whether an issue passes the filters of the query."""
    query = call.query
    state = query.get("state", "open")
    wanted = [name.strip().lower() for name in query.get("labels", "").split(",") if name.strip()]
    labels = [call.store.labels[ident].name.lower() for ident in issue.label_ids]
    assignees = [call.store.accounts[ident].login.lower() for ident in issue.assignee_ids]
    creator = call.store.accounts[issue.author_id].login.lower()
    assignee = query.get("assignee", "*any*").lower()
    return (
        not issue.deleted
        and issue.moved_to is None
        and state in ("all", issue.state.value)
        and all(name in labels for name in wanted)
        and query.get("creator", creator).lower() == creator
        and (since is None or issue.updated_at >= since)
        and (
            assignee == "*any*"
            or (assignee == "none" and not assignees)
            or (assignee == "*" and bool(assignees))
            or assignee in assignees
        )
    )


async def list_issues(call: Call) -> Answer:
    """List issues and pull requests with GitHub's filters and order."""
    if call.query.get("state", "open") not in ("open", "closed", "all"):
        raise invalid("Issue", "state")
    since = query_time(call.query, "since")
    rows = call.store.issues.group(call.repository.id)
    found = [row for row in rows if _is_listed(call, row, since)]
    field = call.query.get("sort", "created")
    reverse = call.query.get("direction", "desc") != "asc"

    def order(issue: Issue) -> tuple[object, int]:
        if field == "updated":
            return issue.updated_at, issue.number
        if field == "comments":
            return len(call.store.comments.group(issue.id)), issue.number
        return issue.created_at, issue.number

    return call.page(sorted(found, key=order, reverse=reverse), call.views.issue)


async def create_issue(call: Call) -> Answer:
    """Open an issue; labels and assignees of people who may not set them are dropped."""
    body = await call.body("Issue")
    may_sort = _has_role(call, Permission.TRIAGE)
    new = NewIssue(
        title=body.needed("title"),
        body=body.text("body"),
        labels=tuple(body.texts("labels") or ()) if may_sort else (),
        assignees=tuple(body.texts("assignees") or ()) if may_sort else (),
    )
    issue = await open_issue(call.world, call.actor, call.repository, new)
    url = call.views.issue_url(issue)
    return Answer(201, call.views.full_issue(issue), {"Location": url})


async def get_issue(call: Call) -> Answer:
    """Show an issue."""
    return Answer(200, call.views.full_issue(call.issue))


async def update_issue(call: Call) -> Answer:
    """Change an issue; the author may, and whoever may sort issues."""
    issue = call.issue
    if issue.author_id != call.actor.account.id and not _has_role(call, Permission.TRIAGE):
        raise GitHubError(403, "Must have admin rights to Repository.")
    body = await call.body("Issue")
    title = body.needed("title") if "title" in body else None
    text = (body.text("body") or "") if "body" in body else None
    state = body.choice("state", "open", "closed")
    reason = body.choice("state_reason", *_CLOSE_REASONS)
    assignees = known_accounts(call.world, body.texts("assignees") or ())
    labels = [
        ensure_label(call.world, call.repository, name) for name in body.texts("labels") or ()
    ]
    issue = await edit_issue(call.world, call.actor, issue, title=title, body=text)
    if "labels" in body:
        issue = await set_labels(call.world, call.actor, issue, labels)
    if "assignees" in body:
        issue = await set_assignees(call.world, call.actor, issue, assignees)
    if state is not None:
        issue = await set_state(call.world, call.actor, issue, State(state), reason)
    return Answer(200, call.views.full_issue(issue))


async def lock_issue(call: Call) -> Answer:
    """Lock a conversation."""
    reason = (await call.body("Issue")).choice("lock_reason", *_LOCK_REASONS)
    await set_lock(call.world, call.actor, call.issue, locked=True, reason=reason)
    return Answer(204)


async def unlock_issue(call: Call) -> Answer:
    """Unlock a conversation."""
    await set_lock(call.world, call.actor, call.issue, locked=False)
    return Answer(204)


async def add_assignees(call: Call) -> Answer:
    """Assign more people."""
    more = known_accounts(call.world, (await call.body("Issue")).texts("assignees") or ())
    wanted = [*call.views.assignees_of(call.issue), *more]
    issue = await set_assignees(call.world, call.actor, call.issue, wanted)
    return Answer(201, call.views.full_issue(issue))


async def remove_assignees(call: Call) -> Answer:
    """Take people off an issue."""
    gone = {name.lower() for name in (await call.body("Issue")).texts("assignees") or ()}
    assigned = call.views.assignees_of(call.issue)
    kept = [account for account in assigned if account.login.lower() not in gone]
    issue = await set_assignees(call.world, call.actor, call.issue, kept)
    return Answer(200, call.views.full_issue(issue))


async def list_events(call: Call) -> Answer:
    """List the history of an issue, oldest first."""
    return call.page(call.store.events.group(call.issue.id), call.views.event)


async def get_event(call: Call) -> Answer:
    """Show one entry of an issue's history."""
    event = call.store.events.get(int(call.part("event_id")))
    issue = None if event is None else call.store.issues.get(event.issue_id)
    if event is None or issue is None or issue.repository_id != call.repository.id:
        raise not_found()
    return Answer(200, {**call.views.event(event), "issue": call.views.issue(issue)})


_READ = Need("issues", on_pull="pull_requests")
_OPEN = Need("issues", write=True, role=Permission.READ, on_pull="pull_requests")
_SORT = Need("issues", write=True, role=Permission.TRIAGE, on_pull="pull_requests")
_LOCK = Need("issues", write=True, on_pull="pull_requests")
_ISSUES = "/repos/{owner}/{repo}/issues"
_ISSUE = f"{_ISSUES}/{{number:[0-9]+}}"
ROUTES = [
    Route("GET", _ISSUES, "issues/list-for-repo", _READ, list_issues),
    Route("POST", _ISSUES, "issues/create", _OPEN, create_issue),
    Route("GET", _ISSUE, "issues/get", _READ, get_issue),
    Route("PATCH", _ISSUE, "issues/update", _OPEN, update_issue),
    Route("PUT", f"{_ISSUE}/lock", "issues/lock", _LOCK, lock_issue),
    Route("DELETE", f"{_ISSUE}/lock", "issues/unlock", _LOCK, unlock_issue),
    Route("POST", f"{_ISSUE}/assignees", "issues/add-assignees", _SORT, add_assignees),
    Route("DELETE", f"{_ISSUE}/assignees", "issues/remove-assignees", _SORT, remove_assignees),
    Route("GET", f"{_ISSUE}/events", "issues/list-events", _READ, list_events),
    Route("GET", f"{_ISSUES}/events/{{event_id:[0-9]+}}", "issues/get-event", _READ, get_event),
]
