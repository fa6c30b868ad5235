"""The API server's part that the operator relies on, in memory.

Optimistic locking, generations, the status subresource, finalizers and what deletion means
with them, validation, and a watch that tells of every change. Knows nothing of operators.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping
from email.utils import format_datetime
from typing import Any

from pydantic import ValidationError
from tests.fakes.clock import FakeTime

from issuesandbox.api.names import ANNOTATION_ANNOUNCED, FINALIZER
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.ports.errors import Conflict, Denied, Invalid, NotFound
from issuesandbox.ports.resources import EventNote, ResourceKey

Body = dict[str, Any]
WatchEvent = tuple[str, Body]


class FakeKube:
    """All IssueSandbox resources and the log that watches are fed from."""

    def __init__(self, time: FakeTime) -> None:
        self._time = time
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self.config_maps: dict[str, dict[str, str]] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        self._bodies: dict[tuple[str, str], Body] = {}
        self.log: list[WatchEvent] = []
        self.terminating: set[str] = set()
        self.events: list[EventNote] = []
        """Namespaces that are being deleted: nothing can be created in them."""
        self.refused: list[str] = []
        """Why writes of operators were refused as invalid; there should be none."""
        self.witness: Callable[[Body, Body], None] = lambda before, after: None
        """Told of every change that an operator made, right after it."""

    # What the service does for operators.

    def read(self, key: ResourceKey) -> Body:
        """Return the resource at this place, whatever its uid."""
        return copy.deepcopy(self._at(key.namespace, key.name))

    def merge(self, key: ResourceKey, version: str, changes: Mapping[str, Any]) -> Body:
        """Merge changes into everything but the status."""
        changes = {name: value for name, value in changes.items() if name != "status"}
        return self._guarded(key, version, changes)

    def merge_status(self, key: ResourceKey, version: str, status: Mapping[str, Any]) -> Body:
        """Merge changes into the status alone."""
        return self._guarded(key, version, {"status": status})

    def remove(self, key: ResourceKey, version: str) -> None:
        """Delete a resource on an operator's behalf."""
        stamp = {"metadata": {"deletionTimestamp": self._stamp()}}
        self._guarded(key, version, stamp)

    def date(self) -> str:
        """Return the Date header of an answer."""
        return format_datetime(self._time.now(), usegmt=True)

    def note(self, key: ResourceKey, event: EventNote) -> None:
        """Take an Event about a resource."""
        if key.namespace in self.terminating:
            raise Denied(f"namespace {key.namespace} is being terminated")
        self.events.append(event)

    # What users do.

    def create(
        self, namespace: str, name: str, spec: Mapping[str, Any], announced: str = ""
    ) -> Body:
        """Create a resource where there is none; its maker may have announced a sandbox."""
        assert (namespace, name) not in self._bodies, "the place is taken"
        body: Body = {
            "metadata": {
                "namespace": namespace,
                "name": name,
                "uid": f"uid-{next(self._uids)}",
                "generation": 1,
                "creationTimestamp": self._stamp(),
            },
            "spec": copy.deepcopy(dict(spec)),
        }
        if announced:
            body["metadata"]["finalizers"] = [FINALIZER]
            body["metadata"]["annotations"] = {ANNOTATION_ANNOUNCED: announced}
        self._store(body, "ADDED")
        return body

    def edit(self, namespace: str, name: str, changes: Mapping[str, Any]) -> None:
        """Merge a user's changes, the status included."""
        before = self._at(namespace, name)
        self._apply(before, _merged(before, changes))

    def finish_run(self, namespace: str, name: str, outcome: str) -> None:
        """Write down that a run ended, as whoever drives runs does; nobody does so here."""
        now = self._stamp()
        body = self._at(namespace, name)
        trigger = body["spec"]["run"].get("trigger")
        attempt = body.get("status", {}).get("sandbox", {}).get("attempt", 1)
        run = {"id": f"run-{next(self._uids)}", "phase": "Finished", "attempt": attempt}
        run |= {"startedAt": now, "finishedAt": now, "outcome": outcome, "trigger": trigger}
        self.edit(namespace, name, {"status": {"run": run, "counters": {"failures": 0}}})

    def delete(self, namespace: str, name: str) -> None:
        """Ask for a deletion; finalizers hold the resource back."""
        before = self._at(namespace, name)
        if "deletionTimestamp" not in before["metadata"]:
            stamp = {"metadata": {"deletionTimestamp": self._stamp()}}
            self._apply(before, _merged(before, stamp))

    # What a test wants to know.

    def bodies(self) -> list[Body]:
        """Return all resources as they are."""
        return list(self._bodies.values())

    def find(self, namespace: str, name: str) -> Body | None:
        """Return the resource at a place, if there is one."""
        return self._bodies.get((namespace, name))

    def with_uid(self, uid: str) -> Body | None:
        """Return the resource with a uid, unless it is gone."""
        return next((each for each in self.bodies() if each["metadata"]["uid"] == uid), None)

    def _at(self, namespace: str, name: str) -> Body:
        body = self._bodies.get((namespace, name))
        if body is None:
            raise NotFound(f"issuesandboxes {name} not found")
        return body

    def _guarded(self, key: ResourceKey, version: str, changes: Mapping[str, Any]) -> Body:
        before = self._at(key.namespace, key.name)
        metadata = before["metadata"]
        if metadata["uid"] != key.uid or metadata["resourceVersion"] != version:
            raise Conflict("the object has been modified; please apply your changes to it")
        try:
            after = self._apply(before, _merged(before, changes))
        except Invalid as error:
            self.refused.append(str(error))
            raise
        self.witness(before, after)
        return copy.deepcopy(after)

    def _apply(self, before: Body, after: Body) -> Body:
        _validate(before, after)
        if after == before:
            return before  # a write that changes nothing makes no new version
        after["metadata"] = dict(after["metadata"])
        if after["spec"] != before["spec"]:
            after["metadata"]["generation"] += 1
        gone = "deletionTimestamp" in after["metadata"] and not after["metadata"].get("finalizers")
        self._store(after, "DELETED" if gone else "MODIFIED")
        return after

    def _store(self, body: Body, kind: str) -> None:
        metadata = body["metadata"]
        metadata["resourceVersion"] = str(next(self._versions))
        place = metadata["namespace"], metadata["name"]
        self._bodies[place] = body
        if kind == "DELETED":
            del self._bodies[place]
        self.log.append((kind, body))

    def _stamp(self) -> str:
        # Kubernetes keeps whole seconds.
        return self._time.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> Body:
    """Return the result of a JSON merge patch: null removes, maps merge, all else replaces."""
    new = dict(old)
    for name, value in changes.items():
        if value is None:
            new.pop(name, None)
        elif isinstance(value, Mapping):
            inner = old.get(name)
            new[name] = _merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            new[name] = copy.deepcopy(value)
    return new


def _validate(before: Body, after: Body) -> None:
    try:
        IssueSandbox.model_validate(after)
    except ValidationError as error:
        raise Invalid(f"422: {error}") from error
    if "deletionTimestamp" in before["metadata"]:
        added = set(after["metadata"].get("finalizers", ())) - set(
            before["metadata"].get("finalizers", ())
        )
        if added:
            raise Invalid("422: no new finalizers can be added if the object is being deleted")
