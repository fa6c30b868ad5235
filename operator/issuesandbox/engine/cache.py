"""The resources as last seen, small enough to hold ten thousand of them.

Bodies are kept as packed bytes and parsed on use: parsed they would take ten times the room. Who is
settled is most of them and is seldom looked at: those are kept without the issue's text, which only
a run needs and which comes again with the edit that asks for one, and compressed if still large.
Fed by the watch and by the answers to our own writes, whichever is newer.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from issuesandbox.api.spec import DesiredState
from issuesandbox.api.status_run import RunPhase
from issuesandbox.ports.resources import ResourceKey

# Below this, compressing costs more time than the room is worth.
_LARGE = 2048


class _Entry(msgspec.Struct, gc=False):
    version: int
    own: bool
    settled: bool
    urgent: bool
    zipped: bool
    packed: bytes

    def body(self) -> bytes:
        """Return the body as it was packed."""
        return zlib.decompress(self.packed) if self.zipped else self.packed


class _Sandbox(msgspec.Struct):
    id: str | None = None
    state: str | None = None


class _Status(msgspec.Struct):
    sandbox: _Sandbox | None = None


class _Told(msgspec.Struct):
    status: _Status


_TOLD = msgspec.msgpack.Decoder(_Told)


class ResourceCache:
    """The newest known body of every resource."""

    def __init__(
        self,
        on_put: Callable[[ResourceKey, Mapping[str, Any]], None] = lambda _key, _body: None,
        on_drop: Callable[[ResourceKey], None] = lambda _key: None,
    ) -> None:
        self._entries: dict[ResourceKey, _Entry] = {}
        self._on_put = on_put
        self._on_drop = on_drop

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> Iterator[ResourceKey]:
        """Return the keys of all resources."""
        return iter(tuple(self._entries))

    def put(self, body: Mapping[str, Any], *, own: bool = False) -> bool:
        """Remember a body unless this one or a newer one is known; tell whether it was news.

        `own` says that this is the answer to a write of ours, which the watch may have outrun.
        """
        key = key_of(body)
        version = int(body["metadata"]["resourceVersion"])
        known = self._entries.get(key)
        if known is not None and known.version >= version:
            known.own = known.own or (own and known.version == version)
            return False
        settled = is_settled(body)
        packed = msgspec.msgpack.encode(_essence(body, keep_text=not settled or _run_ahead(body)))
        zipped = settled and len(packed) > _LARGE
        packed = zlib.compress(packed, 1) if zipped else packed
        self._entries[key] = _Entry(version, own, settled, _is_urgent(body), zipped, packed)
        self._on_put(key, body)
        return True

    def is_own(self, key: ResourceKey) -> bool:
        """Tell whether the newest known body is what we wrote ourselves."""
        entry = self._entries.get(key)
        return entry is not None and entry.own

    def get(self, key: ResourceKey) -> dict[str, Any] | None:
        """Return the body of a resource, or None if it is gone."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        body: dict[str, Any] = msgspec.msgpack.decode(entry.body())
        return body

    def sandbox(self, key: ResourceKey) -> tuple[str | None, str | None]:
        """Return the id and the state of a resource's sandbox, as its status tells them."""
        entry = self._entries.get(key)
        if entry is None:
            return None, None
        told = _TOLD.decode(entry.body()).status.sandbox
        return (told.id, told.state) if told is not None else (None, None)

    def settled(self, key: ResourceKey) -> bool:
        """Tell whether the resource looked settled when it was last seen."""
        entry = self._entries.get(key)
        return entry is not None and entry.settled

    def urgent(self, key: ResourceKey) -> bool:
        """Tell whether something of the resource is to end, when it was last seen."""
        entry = self._entries.get(key)
        return entry is not None and entry.urgent and not entry.settled

    def drop(self, key: ResourceKey) -> None:
        """Forget a resource that is gone."""
        if self._entries.pop(key, None) is not None:
            self._on_drop(key)


def key_of(body: Mapping[str, Any]) -> ResourceKey:
    """Return the key of a resource's body."""
    metadata = body["metadata"]
    return ResourceKey(metadata["namespace"], metadata["name"], metadata["uid"])


def is_settled(body: Mapping[str, Any]) -> bool:
    """Tell whether, by its own word, nothing is under way for a resource; it can wait its turn."""
    metadata, status = body["metadata"], body.get("status") or {}
    if "deletionTimestamp" in metadata or "intent" in status:
        return False
    if status.get("observedGeneration") != metadata.get("generation"):
        return False
    if "run" in status and status["run"].get("phase") != RunPhase.FINISHED:
        return False
    ready = [each for each in status.get("conditions", ()) if each["type"] == "Ready"]
    if any(each["reason"] == "AtRest" for each in ready):
        return True
    # A sandbox that is there for a run has that before it.
    return any(each["status"] == "True" for each in ready) and not _run_ahead(body)


def _is_urgent(body: Mapping[str, Any]) -> bool:
    """Tell whether people wait for an end: of the resource, of its sandbox or of its run."""
    spec, status = body["spec"], body.get("status") or {}
    asked, run = spec.get("run"), status.get("run") or {}
    replaced = asked is not None and run.get("trigger") != asked.get("trigger")
    ends = "stopRequestedAt" in status or (bool(run) and not run.get("outcome") and replaced)
    stopped = spec.get("desiredState") == DesiredState.STOPPED
    return "deletionTimestamp" in body["metadata"] or stopped or ends


def _run_ahead(body: Mapping[str, Any]) -> bool:
    """Tell whether a run may still begin for the resource as it is."""
    asked, run = body["spec"].get("run"), (body.get("status") or {}).get("run")
    return asked is not None and (run is None or run.get("trigger") != asked.get("trigger"))


def _essence(body: Mapping[str, Any], *, keep_text: bool) -> dict[str, Any]:
    metadata = {name: value for name, value in body["metadata"].items() if name in _KEPT}
    if _APPLIED in metadata.get("annotations", ()):
        # kubectl's copy of the whole body.
        notes = metadata["annotations"].items()
        metadata["annotations"] = {name: text for name, text in notes if name != _APPLIED}
    spec = body["spec"]
    if not keep_text and "body" in spec["issue"]:
        issue = {name: value for name, value in spec["issue"].items() if name != "body"}
        spec = {**spec, "issue": issue}
    return {"metadata": metadata, "spec": spec, "status": body.get("status") or {}}


_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KEPT = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "labels",
        "annotations",
    }
)
