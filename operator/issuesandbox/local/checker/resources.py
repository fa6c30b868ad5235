"""The histories of resources, as a watch saw them.

Knows how the resource says that it is stopped, paused, deleted or published; objects are read as
plain JSON, so that an object this version would refuse is judged all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from issuesandbox.api.names import ANNOTATION_PAUSED
from issuesandbox.domain.publication import wip_branch
from issuesandbox.local.checker.evidence import Evidence, Object, Observation, Span
from issuesandbox.local.checker.journals import Push


@dataclass(frozen=True)
class Resource:
    """One resource from its first sight to its last."""

    uid: str
    name: str
    history: tuple[Observation, ...]

    @property
    def last(self) -> Object:
        """Return it as last seen."""
        return self.history[-1].object

    @property
    def exists(self) -> bool:
        """Tell whether it is still there."""
        return self.history[-1].kind != "DELETED"

    @property
    def repository(self) -> str:
        """Return its repository; GitHub does not tell cases apart."""
        return str(self.last["spec"]["issue"]["repository"]).lower()

    @property
    def number(self) -> int:
        """Return its issue's number."""
        return int(self.last["spec"]["issue"]["number"])

    def paused(self) -> Iterator[Span]:
        """Yield the times in which it was paused."""
        start = None
        for observation in self.history:
            if is_paused(observation.object):
                start = start or observation.moment
            elif start is not None:
                yield Span(start, observation.moment)
                start = None
        if start is not None:
            yield Span(start)

    def runs(self) -> dict[str, list[Observation]]:
        """Return the observations of each run, by its id."""
        found: dict[str, list[Observation]] = {}
        for observation in self.history:
            run_id = run_of(observation.object).get("id")
            if run_id:
                found.setdefault(run_id, []).append(observation)
        return found

    def saved_by(self, push: Push) -> str | None:
        """Return the run whose unpublished work a push saved, if it was one of this resource."""
        return self._saver(push, push.ref) or self.salvaged_by(push)

    def salvaged_by(self, push: Push) -> str | None:
        """Return the run that went on elsewhere after a push saved what it left behind."""
        return self._saver(push, push.ref.rpartition("-")[0])

    def _saver(self, push: Push, ref: str) -> str | None:
        if push.repository != self.repository:
            return None
        refs = {f"refs/heads/{wip_branch(self.number, run_id)}": run_id for run_id in self.runs()}
        return refs.get(ref)


def resources(evidence: Evidence) -> list[Resource]:
    """Return all resources in the order of their first sight."""
    found: dict[str, list[Observation]] = {}
    for observation in evidence.observations:
        found.setdefault(observation.object["metadata"]["uid"], []).append(observation)
    return [Resource(uid, _full_name(seen[0].object), tuple(seen)) for uid, seen in found.items()]


def meta(resource: Object) -> dict[str, Any]:
    """Return the metadata."""
    return dict(resource["metadata"])


def run_of(resource: Object) -> dict[str, Any]:
    """Return the run in the status, empty if there is none."""
    return (resource.get("status") or {}).get("run") or {}


def pull_request_of(resource: Object) -> int | None:
    """Return the number of the run's pull request."""
    return (run_of(resource).get("pullRequest") or {}).get("number")


def annotation(resource: Object, name: str) -> str | None:
    """Return an annotation's value."""
    return (meta(resource).get("annotations") or {}).get(name)


def is_deleting(resource: Object) -> bool:
    """Tell whether the deletion was asked for."""
    return meta(resource).get("deletionTimestamp") is not None


def is_stopped(resource: Object) -> bool:
    """Tell whether somebody asked for the end of what runs."""
    return is_deleting(resource) or resource["spec"].get("desiredState") == "Stopped"


def leaves_sandbox(resource: Object) -> bool:
    """Tell whether its sandbox is to outlive it."""
    return bool(resource["spec"].get("deletionPolicy") == "Orphan")


def is_paused(resource: Object) -> bool:
    """Tell whether the operator was asked to keep its hands off."""
    return annotation(resource, ANNOTATION_PAUSED) == "true"


def _full_name(resource: Object) -> str:
    return f"{meta(resource)['namespace']}/{meta(resource)['name']}"
