"""A resource as the webhook adapter sees it: what is on it, and whose each field is.

Knows nothing of how it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from issuesandbox.api.names import GROUP
from issuesandbox.domain.webhook.issue import text_trigger
from issuesandbox.domain.webhook.orders import StopReason
from issuesandbox.domain.webhook.stamps import Stamp, read_moment, read_stamp

MANAGER: Final = "issuesandbox-webhook"
# What people do through our own tools is theirs to do again through GitHub.
_OWN_MANAGERS = frozenset({MANAGER, "kubectl-isb"})

ANNOTATION_ISSUE_TIME: Final = f"{GROUP}/issue-time"
ANNOTATION_ISSUE_TEXT: Final = f"{GROUP}/issue-text"
ANNOTATION_ORDER: Final = f"{GROUP}/order"
ANNOTATION_STOPPED_FOR: Final = f"{GROUP}/stopped-for"

Path = tuple[str, ...]
ORDERS: Final[frozenset[Path]] = frozenset({("spec", "run", "trigger"), ("spec", "run", "prompt")})


class Live(Struct, frozen=True):
    """A resource, reduced to what orders are compared with."""

    namespace: str
    name: str
    uid: str
    version: str
    created: str
    repository: str
    """Lower case: GitHub ignores case here."""
    number: int
    is_deleting: bool = False
    is_running: bool = True
    """`desiredState` is Running."""
    has_run: bool = False
    is_busy: bool = False
    """A run goes on, or is to come."""
    is_ours: bool = False
    """Made by the adapter and not by hand."""
    trigger: str | None = None
    text: str | None = None
    """The trigger that the text last acted upon stands for; None if none was."""
    present: str | None = None
    """The trigger that its present text stands for."""
    labels: tuple[str, ...] = ()
    issue_time: datetime | None = None
    order: Stamp | None = None
    stopped_for: StopReason | None = None
    pulls: frozenset[int] = frozenset()
    """Numbers of the pull requests of its runs: of the present one and of those before."""


def read_live(body: Mapping[str, Any]) -> Live:
    """Return a resource in the adapter's own terms."""
    metadata, spec = body["metadata"], body["spec"]
    issue, run = spec["issue"], spec.get("run")
    annotations, status = metadata.get("annotations", {}), body.get("status") or {}
    reason, present = annotations.get(ANNOTATION_STOPPED_FOR), _text(issue)
    return Live(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        created=metadata["creationTimestamp"],
        repository=issue["repository"].lower(),
        number=issue["number"],
        is_deleting="deletionTimestamp" in metadata,
        is_running=spec.get("desiredState") != "Stopped",
        has_run=run is not None,
        is_busy=run is not None and (status.get("run") or {}).get("phase") != "Finished",
        is_ours=("spec", "issue", "repository") in set(owned(metadata, is_ours)),
        trigger=(run or {}).get("trigger"),
        text=annotations.get(ANNOTATION_ISSUE_TEXT) or present,
        present=present,
        labels=tuple(issue.get("labels") or ()),
        issue_time=read_moment(annotations.get(ANNOTATION_ISSUE_TIME)),
        order=read_stamp(annotations.get(ANNOTATION_ORDER)),
        stopped_for=StopReason(reason) if reason in set(StopReason) else None,
        pulls=_pulls(status),
    )


def _pulls(status: Mapping[str, Any]) -> frozenset[int]:
    present = ((status.get("run") or {}).get("pullRequest") or {}).get("number")
    past = (each.get("pullRequestNumber") for each in status.get("history") or ())
    return frozenset(each for each in (present, *past) if each)


def _text(issue: Mapping[str, Any]) -> str | None:
    return text_trigger(issue["title"], issue.get("body") or "") if issue.get("title") else None


def foreign_paths(body: Mapping[str, Any]) -> frozenset[Path]:
    """Return the fields that somebody else wrote, so that the adapter leaves them alone."""
    found = set(owned(body["metadata"], lambda manager, _: manager not in _OWN_MANAGERS))
    # Whoever applies a trigger says it again and again; whoever patches it ordered one run, and
    # the next order may be anybody's.
    lasting = set(owned(body["metadata"], _applies))
    found -= {path for path in ORDERS if path not in lasting}
    if body["spec"].get("desiredState") != "Stopped":
        # The API server fills in Running for whoever creates a resource: nobody said it.
        found.discard(("spec", "desiredState"))
    return frozenset(found)


def is_ours(manager: str, _: str) -> bool:
    """Tell whether fields are the adapter's own."""
    return manager == MANAGER


def _applies(manager: str, operation: str) -> bool:
    if operation == "Apply" or manager == "kubectl-client-side-apply":
        return manager not in _OWN_MANAGERS
    return not manager.startswith("kubectl") and manager not in _OWN_MANAGERS


def owned(metadata: Mapping[str, Any], wanted: Callable[[str, str], bool]) -> Iterator[Path]:
    """Yield the leaf fields that are wanted by their manager and how it wrote them."""
    for entry in metadata.get("managedFields", ()):
        if wanted(entry.get("manager", ""), entry.get("operation", "")):
            yield from _leaves(entry.get("fieldsV1", {}), ())


def _leaves(fields: Mapping[str, Any], path: Path) -> Iterator[Path]:
    below = {name[2:]: inner for name, inner in fields.items() if name.startswith("f:")}
    if not below and path:
        yield path
    for name, inner in below.items():
        yield from _leaves(inner, (*path, name))
