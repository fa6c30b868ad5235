"""Leases behind the `Leases` port: coordination.k8s.io objects in the operator's namespace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.leases import LeaseRecord


class KubeLeases:
    """Each lease `name` is the object `{prefix}-{name}`."""

    def __init__(self, requests: KubeRequests, namespace: str, prefix: str) -> None:
        self._requests = requests
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._prefix = f"{prefix}-"

    async def get(self, name: str) -> LeaseRecord:
        """Return the lease as it is now, or raise NotFound."""
        return self._read(await self._requests.send("GET", self._path_of(name)))

    async def starting_with(self, prefix: str) -> Sequence[LeaseRecord]:
        """Return all leases whose name starts with `prefix`."""
        body = await self._requests.send("GET", self._path)
        wanted = self._prefix + prefix
        return [
            self._record(each)
            for each in _decode(body, _LeaseList).items
            if each.metadata["name"].startswith(wanted)
        ]

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """Create the lease, or raise Conflict if it exists."""
        body = _body(record, {"name": self._prefix + record.name})
        return self._read(await self._requests.send("POST", self._path, body))

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        """Write the lease if it is still at the record's version, else raise Conflict."""
        # The uid in the metadata matters: without it a PUT brings a deleted lease back.
        body = _body(record, {**record.metadata, "resourceVersion": record.version})
        return self._read(await self._requests.send("PUT", self._path_of(record.name), body))

    async def delete(self, record: LeaseRecord) -> None:
        """Delete the lease if it is still at the record's version, else raise Conflict."""
        body = {"preconditions": {"resourceVersion": record.version}}
        await self._requests.send("DELETE", self._path_of(record.name), body)

    def _path_of(self, name: str) -> str:
        return f"{self._path}/{self._prefix}{name}"

    def _read(self, body: bytes) -> LeaseRecord:
        return self._record(_decode(body, _Lease))

    def _record(self, lease: _Lease) -> LeaseRecord:
        spec, metadata = lease.spec, lease.metadata
        # The API server keeps its own account of who wrote which field.
        metadata.pop("managedFields", None)
        return LeaseRecord(
            name=metadata["name"].removeprefix(self._prefix),
            holder=spec.holder_identity or "",
            duration=spec.lease_duration_seconds,
            acquired_at=spec.acquire_time,
            renewed_at=spec.renew_time,
            transitions=spec.lease_transitions or 0,
            version=metadata["resourceVersion"],
            metadata=metadata,
        )


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: dict[str, Any]
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _LeaseList(msgspec.Struct):
    items: list[_Lease]


_Answer = TypeVar("_Answer", _Lease, _LeaseList)


def _decode(body: bytes, kind: type[_Answer]) -> _Answer:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"the API server's answer is no lease: {error}") from error


def _body(record: LeaseRecord, metadata: Mapping[str, Any]) -> dict[str, Any]:
    spec = {
        "holderIdentity": record.holder or None,
        "leaseDurationSeconds": math.ceil(record.duration) if record.duration else None,
        "acquireTime": _micro_time(record.acquired_at),
        "renewTime": _micro_time(record.renewed_at),
        "leaseTransitions": record.transitions,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec,
    }


def _micro_time(moment: datetime | None) -> str | None:
    # Kubernetes' MicroTime refuses a time without its six decimals.
    if moment is None:
        return None
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
