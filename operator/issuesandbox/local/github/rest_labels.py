"""REST calls about labels, of a repository and on an issue.

Translates between HTTP and the acts in acts_issues.py; who is told about them is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from issuesandbox.local.github.access import Need
from issuesandbox.local.github.acts_issues import ensure_label, set_labels
from issuesandbox.local.github.answers import Answer, GitHubError, invalid, not_found
from issuesandbox.local.github.bodies import Body, read_json
from issuesandbox.local.github.calls import Call, Route
from issuesandbox.local.github.journal import note_effect
from issuesandbox.local.github.model import Label, Permission
from issuesandbox.local.github.views import Json


def _label(call: Call) -> Label:
    label = call.store.label(call.repository, call.part("name"))
    if label is None:
        raise not_found()
    return label


def _color(body: Body, default: str) -> str:
    color = (body.text("color") or default).removeprefix("#").lower()
    if len(color) != 6 or any(digit not in "0123456789abcdef" for digit in color):
        raise invalid("Label", "color")
    return color


async def list_repository_labels(call: Call) -> Answer:
    """List the labels that a repository offers."""
    return call.page(call.store.labels.group(call.repository.id), _shower(call))


async def create_label(call: Call) -> Answer:
    """Offer a new label."""
    body = await call.body("Label")
    name, color = body.needed("name"), _color(body, "ededed")
    if call.store.label(call.repository, name):
        raise invalid("Label", "name", "already_exists")
    label = ensure_label(call.world, call.repository, name)
    label = call.store.labels.put(replace(label, color=color, description=body.text("description")))
    note_effect("label.created", id=label.id)
    return Answer(201, call.views.label(call.repository, label))


async def get_label(call: Call) -> Answer:
    """Show a label."""
    return Answer(200, call.views.label(call.repository, _label(call)))


async def delete_label(call: Call) -> Answer:
    """Stop offering a label; it vanishes from every issue."""
    label = _label(call)
    for issue in call.store.issues.group(call.repository.id):
        if label.id in issue.label_ids:
            kept = tuple(ident for ident in issue.label_ids if ident != label.id)
            call.store.issues.put(replace(issue, label_ids=kept))
    call.store.labels.delete(label.id)
    note_effect("label.deleted", id=label.id)
    return Answer(204)


def _rows(call: Call, names: list[str]) -> list[Label]:
    return [ensure_label(call.world, call.repository, name) for name in names]


def _shower(call: Call) -> Callable[[Label], Json]:
    return lambda label: call.views.label(call.repository, label)


async def _names(call: Call) -> list[str]:
    """Read names from `{"labels": […]}` or a bare list: GitHub takes both."""
    data = await read_json(call.request)
    body = Body("Label", {"labels": data} if isinstance(data, list) else data)
    return body.texts("labels") or []


async def _put(call: Call, wanted: Iterable[Label]) -> Answer:
    issue = await set_labels(call.world, call.actor, call.issue, wanted)
    return Answer(200, [_shower(call)(label) for label in call.views.labels_of(issue)])


async def list_labels(call: Call) -> Answer:
    """List the labels of an issue."""
    return call.page(call.views.labels_of(call.issue), _shower(call))


async def add_labels(call: Call) -> Answer:
    """Put more labels on an issue."""
    more = _rows(call, await _names(call))
    return await _put(call, [*call.views.labels_of(call.issue), *more])


async def replace_labels(call: Call) -> Answer:
    """Put exactly these labels on an issue."""
    return await _put(call, _rows(call, await _names(call)))


async def remove_label(call: Call) -> Answer:
    """Take one label off an issue."""
    label = call.store.label(call.repository, call.part("name"))
    if label is None or label.id not in call.issue.label_ids:
        raise GitHubError(404, "Label does not exist")
    return await _put(call, [row for row in call.views.labels_of(call.issue) if row.id != label.id])


async def remove_all_labels(call: Call) -> Answer:
    """Take all labels off an issue."""
    await set_labels(call.world, call.actor, call.issue, [])
    return Answer(204)


_READ = Need("issues", on_pull="pull_requests")
_SORT = Need("issues", write=True, role=Permission.TRIAGE, on_pull="pull_requests")
_WRITE = Need("issues", write=True)
_LABELS = "/repos/{owner}/{repo}/labels"
_LABEL = f"{_LABELS}/{{name}}"
_ON_ISSUE = "/repos/{owner}/{repo}/issues/{number:[0-9]+}/labels"
ROUTES = [
    Route("GET", _LABELS, "issues/list-labels-for-repo", _READ, list_repository_labels),
    Route("POST", _LABELS, "issues/create-label", _WRITE, create_label),
    Route("GET", _LABEL, "issues/get-label", _READ, get_label),
    Route("DELETE", _LABEL, "issues/delete-label", _WRITE, delete_label),
    Route("GET", _ON_ISSUE, "issues/list-labels-on-issue", _READ, list_labels),
    Route("POST", _ON_ISSUE, "issues/add-labels", _SORT, add_labels),
    Route("PUT", _ON_ISSUE, "issues/set-labels", _SORT, replace_labels),
    Route("DELETE", _ON_ISSUE, "issues/remove-all-labels", _SORT, remove_all_labels),
    Route("DELETE", f"{_ON_ISSUE}/{{name}}", "issues/remove-label", _SORT, remove_label),
]
