"""ConfigMaps beside the webhook adapter: its policy, and how far its catch-up came."""

from __future__ import annotations

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.clock import Clock
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.inbox import Record
from issuesandbox.ports.resources import EventNote


class _Metadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class KubeRecords:
    """Reads by name alone, so that no wider right is needed."""

    def __init__(self, requests: KubeRequests, namespace: str, clock: Clock, reporter: str) -> None:
        self._requests = requests
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._clock = clock
        self._reporter = reporter

    async def read(self, name: str) -> Record:
        """Return a ConfigMap's data; nothing if there is none."""
        try:
            body = await self._requests.send("GET", f"{self._path}/{name}")
        except NotFound:
            return Record({})
        found = msgspec.json.decode(body, type=_ConfigMap)
        return Record(found.data or {}, found.metadata.version)

    async def write(self, name: str, record: Record) -> None:
        """Store data if the ConfigMap is still at the record's version, else raise Conflict."""
        body = {"metadata": {"resourceVersion": record.version}, "data": record.data}
        await self._requests.send("PATCH", f"{self._path}/{name}", body)

    async def note(self, name: str, event: EventNote) -> None:
        """Post an Event about a ConfigMap."""
        now = self._clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name}-", "namespace": self._namespace},
            "regarding": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": self._namespace,
                "name": name,
            },
            "eventTime": now,
            "reportingController": "issuesandbox.dev/webhook",
            "reportingInstance": self._reporter,
            "action": event.reason,
            "reason": event.reason,
            "note": event.message[:1024],
            "type": "Warning" if event.warning else "Normal",
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        await self._requests.send("POST", path, body)
