"""The object that is sent to the API server: what the adapter wants, less what others hold.

Server-side apply removes what its manager applied before and leaves out now, so the whole of the
adapter's part is made anew each time. Knows nothing of how it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from issuesandbox.api.names import (
    ANNOTATION_ANNOUNCED,
    API_VERSION,
    FINALIZER,
    KIND,
    LABEL_KEEP,
)
from issuesandbox.domain.naming import sandbox_name
from issuesandbox.domain.webhook.live import (
    ANNOTATION_ISSUE_TEXT,
    ANNOTATION_ISSUE_TIME,
    ANNOTATION_ORDER,
    ANNOTATION_STOPPED_FOR,
    MANAGER,
    ORDERS,
    Path,
    foreign_paths,
    is_ours,
    owned,
    read_live,
)
from issuesandbox.domain.webhook.plan import Change
from issuesandbox.domain.webhook.stamps import moment

Json = dict[str, Any]
_KEEP: Path = ("metadata", "labels", LABEL_KEEP)
# What orders are about; that somebody holds other fields is no obstacle to them.
_ORDERED: frozenset[Path] = ORDERS | {("spec", "desiredState")}
_FOLLOWED = ("title", "body", "labels", "author", "url")


def render_new(
    change: Change, place: tuple[str, str], template: Mapping[str, Any], by_global_id: bool
) -> Json:
    """Return a new resource at a place (namespace, name)."""
    issue = change.issue
    assert issue is not None
    identity: Json = {"repository": issue.repository, "number": issue.number}
    if by_global_id:
        identity["id"] = issue.id
    spec = {**template, "issue": {**identity, **issue.fields}, "desiredState": "Running"}
    spec["run"] = _run(template.get("run", {}), change.trigger, change.prompt)
    announced = {ANNOTATION_ANNOUNCED: sandbox_name(identity.get("id") or issue.number)}
    metadata = {
        "namespace": place[0],
        "name": place[1],
        "finalizers": [FINALIZER],
        "annotations": {**_annotations(change), **announced},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def render_change(
    change: Change, body: Mapping[str, Any], template: Mapping[str, Any], *, keep: bool = False
) -> tuple[Json, tuple[Path, ...]]:
    """Return what is applied to a resource, and what others hold against the order."""
    live, spec = read_live(body), body["spec"]
    foreign = foreign_paths(body)
    base: Json = dict(template) if live.is_ours else {}
    old = spec["issue"]
    issue = {name: old[name] for name in _FOLLOWED if name in old}
    if change.issue is not None:
        issue = dict(change.issue.fields)
    if live.is_ours:
        issue |= {name: old[name] for name in ("repository", "number", "id") if name in old}
    wanted = {**base, "issue": issue}
    wanted["desiredState"] = "Running" if change.is_running else "Stopped"
    if change.trigger is not None:
        prompt = (spec.get("run") or {}).get("prompt") if change.keeps_prompt else change.prompt
        if prompt is None and _is_left_over(body, foreign):
            prompt = base.get("run", {}).get("prompt", "")
        wanted["run"] = _run(base.get("run", {}), change.trigger, prompt)
    held = [path for path in _ORDERED & foreign if _differs(path, {"spec": wanted}, body)]
    applied = {"spec": without({"spec": wanted}, foreign)["spec"]}
    metadata: Json = {
        "namespace": live.namespace,
        "name": live.name,
        "uid": live.uid,
        "resourceVersion": live.version,
        "annotations": {**_annotations(change), **_kept_notes(body)},
    }
    if FINALIZER in body["metadata"].get("finalizers", ()):
        # What its manager leaves out is taken off, also where the operator relies on it.
        metadata["finalizers"] = [FINALIZER]
    if keep or _KEEP in set(owned(body["metadata"], is_ours)):
        metadata["labels"] = {LABEL_KEEP: "true"}
    result = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, **applied}
    return result, tuple(sorted(held))


def _is_left_over(body: Mapping[str, Any], foreign: frozenset[Path]) -> bool:
    """Tell whether somebody ordered a run with a prompt, which the next one shall not have.

    What others wrote does not go away because the adapter leaves it out.
    """
    path: Path = ("spec", "run", "prompt")
    others = set(owned(body["metadata"], lambda manager, _: manager != MANAGER))
    return path in others and path not in foreign and bool(_at(path, body))


def without(tree: Json, paths: Iterable[Path]) -> Json:
    """Return a copy of a tree less the values at the paths."""
    taken = set(paths)

    def kept(value: Any, path: Path) -> Any:
        if not isinstance(value, dict):
            # Whoever holds a part of a list, or an empty object, holds nothing beside it.
            return None if any(each[: len(path)] == path for each in taken) else value
        return {
            name: inner
            for name, each in value.items()
            if (inner := kept(each, (*path, name))) is not None
        }

    found: Json = kept(tree, ())
    return found


def _run(base: Mapping[str, Any], trigger: str | None, prompt: str | None) -> Json:
    run: Json = {**base, "trigger": trigger}
    if prompt is not None:
        run["prompt"] = prompt
    return run


def _annotations(change: Change) -> dict[str, str]:
    found = {}
    if change.issue_time is not None:
        found[ANNOTATION_ISSUE_TIME] = moment(change.issue_time)
    if change.text is not None:
        found[ANNOTATION_ISSUE_TEXT] = change.text
    if change.order is not None:
        found[ANNOTATION_ORDER] = str(change.order)
    if change.stopped_for is not None:
        found[ANNOTATION_STOPPED_FOR] = change.stopped_for.value
    return found


def _kept_notes(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what was announced when the resource was made, which stays as it is."""
    notes = body["metadata"].get("annotations", {})
    return {name: notes[name] for name in (ANNOTATION_ANNOUNCED,) if name in notes}


def _differs(path: Path, wanted: Json, body: Mapping[str, Any]) -> bool:
    new, old = _at(path, wanted), _at(path, body)
    return new is not None and not isinstance(new, dict) and new != old


def _at(path: Path, tree: Mapping[str, Any]) -> Any:
    value: Any = tree
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return value
