"""Every call of operator and webhook adapter to the API server, by the right that it needs.

A right in the manifests without a call here is one too many, or this list is old.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, NamedTuple
from uuid import uuid4

import aiohttp

from issuesandbox.adapters.kube.configuration import KubeConfiguration
from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.adapters.kube.ledgers import KubeLedgers
from issuesandbox.adapters.kube.policies import KubeRecords
from issuesandbox.adapters.kube.requests import APPLY_PATCH, KubeRequests
from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.adapters.kube.server_side_apply import KubeApplied
from issuesandbox.clock import SystemClock
from issuesandbox.entry.outside import namespace_uid
from issuesandbox.local.control_plane.access import Access
from issuesandbox.ports.configuration import Opinion
from issuesandbox.ports.inbox import Record
from issuesandbox.ports.leases import LeaseRecord
from issuesandbox.ports.resources import EventNote, ResourceKey


class Right(NamedTuple):
    """One verb on one kind of object, or on one object of it."""

    resource: str
    verb: str
    name: str = ""


@dataclass
class Caller:
    """The way to the API server under some rights, and what goes over it."""

    requests: KubeRequests
    home: str
    key: ResourceKey

    def __post_init__(self) -> None:
        self.resources = KubeResources(self.requests, SystemClock(), "test")
        self.leases = KubeLeases(self.requests, self.home, "issuesandbox")
        self.ledgers = KubeLedgers(self.requests)
        self.configuration = KubeConfiguration(self.requests, self.home, SystemClock(), "test")
        self.applied = KubeApplied(self.requests, "test")
        self.records = KubeRecords(self.requests, self.home, SystemClock(), "test")

    async def list_resources(self) -> None:
        async for _ in self.resources.uids((self.key.namespace,)):
            pass

    async def apply_new(self) -> None:
        issue = {"repository": "octo/hello", "number": 1}
        await self.requests.send(
            "PATCH",
            f"/apis/issuesandbox.dev/v1alpha1/namespaces/{self.home}/issuesandboxes/new",
            {
                "apiVersion": "issuesandbox.dev/v1alpha1",
                "kind": "IssueSandbox",
                "metadata": {"name": "new", "namespace": self.home},
                "spec": {"issue": issue},
            },
            query={"fieldManager": "test", "force": "true", "dryRun": "All"},
            patch=APPLY_PATCH,
        )

    async def repeat_an_event(self) -> None:
        for _ in range(2):
            await self.resources.note(self.key, EventNote("Test", "test"))

    async def watch_resources(self) -> None:
        path = f"/apis/issuesandbox.dev/v1alpha1/namespaces/{self.key.namespace}/issuesandboxes"
        await self.requests.send("GET", path, query={"watch": "1", "timeoutSeconds": "1"})

    async def list_map(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.home}/configmaps"
        await self.requests.send("GET", path, query={"fieldSelector": f"metadata.name={name}"})

    async def watch_map(self, name: str) -> None:
        """Watch as the adapters do, but not for long; nobody tells of a watch that is refused."""
        path = f"/api/v1/namespaces/{self.home}/configmaps"
        query = {"watch": "1", "timeoutSeconds": "1", "fieldSelector": f"metadata.name={name}"}
        await self.requests.send("GET", path, query=query)


@asynccontextmanager
async def caller(access: Access, home: str, account: str) -> AsyncIterator[Caller]:
    """The adapters as this account, which the administrator impersonates."""
    headers = {
        "Authorization": f"Bearer {access.token}",
        "Impersonate-User": f"system:serviceaccount:{home}:{account}",
        "Impersonate-Group": "system:authenticated",
    }
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=access.ca))
    requests = KubeRequests(
        access.server, aiohttp.ClientSession(connector=trust, headers=headers), 10
    )
    try:
        yield Caller(requests, home, ResourceKey(home, "none", "none"))
    finally:
        await requests.close()


Call = Callable[[Caller], Awaitable[Any]]

# Guarded by a version long gone: allowed or not, nothing changes.
_OLD = "1"
_LEASE = LeaseRecord(
    name="some", holder="test", version=_OLD, metadata={"name": "issuesandbox-some"}
)
CATCH_UP = "issuesandbox-webhook-catch-up"
_CATCH_UP = LeaseRecord(
    name="webhook-catch-up", holder="test", version=_OLD, metadata={"name": CATCH_UP}
)

CALLS: dict[Right, Call] = {
    Right("issuesandboxes", "get"): lambda it: it.resources.get(it.key),
    Right("issuesandboxes", "list"): lambda it: it.list_resources(),
    Right("issuesandboxes", "watch"): lambda it: it.watch_resources(),
    Right("issuesandboxes", "patch"): lambda it: it.resources.patch(it.key, _OLD, {}),
    Right("issuesandboxes", "delete"): lambda it: it.resources.delete(it.key, _OLD),
    Right("issuesandboxes/status", "patch"): lambda it: it.resources.patch_status(it.key, _OLD, {}),
    Right("events", "create"): lambda it: it.resources.note(it.key, EventNote("New", token_hex(4))),
    Right("events", "patch"): lambda it: it.repeat_an_event(),
    Right("namespaces", "get"): lambda it: namespace_uid(it.requests, it.home),
    Right("leases", "get"): lambda it: it.leases.get("none"),
    Right("leases", "list"): lambda it: it.leases.starting_with(""),
    Right("leases", "create"): lambda it: it.leases.create(_LEASE),
    Right("leases", "update"): lambda it: it.leases.replace(_LEASE),
    Right("leases", "delete"): lambda it: it.leases.delete(_LEASE),
    Right("configmaps", "get", "issuesandbox"): lambda it: it.configuration.read(),
    Right("configmaps", "get", "issuesandbox-freeze"): lambda it: it.configuration.read(),
    Right("configmaps", "list", "issuesandbox"): lambda it: it.list_map("issuesandbox"),
    Right("configmaps", "list", "issuesandbox-freeze"): lambda it: it.list_map(
        "issuesandbox-freeze"
    ),
    Right("configmaps", "watch", "issuesandbox"): lambda it: it.watch_map("issuesandbox"),
    Right("configmaps", "watch", "issuesandbox-freeze"): lambda it: it.watch_map(
        "issuesandbox-freeze"
    ),
    Right("configmaps", "get", "issuesandbox-status"): lambda it: it.configuration.accepted(),
    # Another one each time: what is there already is only patched.
    Right("configmaps", "create"): lambda it: it.ledgers.put(it.key, f"new-{uuid4().hex}", {}),
    Right("configmaps", "patch"): lambda it: it.configuration.report(
        Opinion(True, "Accepted", "test", "", {})
    ),
    Right("secrets", "get"): lambda it: it.ledgers.secret(it.home, "none"),
}

# A body whose version nothing has: allowed or not, nothing changes.
_APPLIED = {
    "apiVersion": "issuesandbox.dev/v1alpha1",
    "kind": "IssueSandbox",
    "spec": {"issue": {"repository": "octo/hello", "number": 1}},
}

WEBHOOK_CALLS: dict[Right, Call] = {
    Right("issuesandboxes", "get"): lambda it: it.applied.get(it.home, "none"),
    Right("issuesandboxes", "list"): lambda it: it.list_resources(),
    Right("issuesandboxes", "watch"): lambda it: it.watch_resources(),
    Right("issuesandboxes", "create"): lambda it: it.apply_new(),
    Right("issuesandboxes", "patch"): lambda it: it.applied.apply(
        {**_APPLIED, "metadata": {"name": "none", "namespace": it.home, "resourceVersion": _OLD}}
    ),
    Right("issuesandboxes", "delete"): lambda it: it.applied.delete(it.key, _OLD),
    Right("configmaps", "get", "issuesandbox-webhook-policy"): lambda it: it.records.read(
        "issuesandbox-webhook-policy"
    ),
    Right("configmaps", "list", "issuesandbox-webhook-policy"): lambda it: it.list_map(
        "issuesandbox-webhook-policy"
    ),
    Right("configmaps", "watch", "issuesandbox-webhook-policy"): lambda it: it.watch_map(
        "issuesandbox-webhook-policy"
    ),
    Right("configmaps", "get", "issuesandbox-webhook-cursor"): lambda it: it.records.read(
        "issuesandbox-webhook-cursor"
    ),
    Right("configmaps", "patch", "issuesandbox-webhook-cursor"): lambda it: it.records.write(
        "issuesandbox-webhook-cursor", Record({}, _OLD)
    ),
    Right("leases", "create"): lambda it: it.leases.create(_LEASE),
    Right("leases", "get", CATCH_UP): lambda it: it.leases.get("webhook-catch-up"),
    Right("leases", "update", CATCH_UP): lambda it: it.leases.replace(_CATCH_UP),
    Right("leases", "delete", CATCH_UP): lambda it: it.leases.delete(_CATCH_UP),
    Right("events", "create"): lambda it: it.records.note("test", EventNote("Test", "test")),
}

SHIPPED: dict[str, dict[Right, Call]] = {"rbac.yaml": CALLS, "webhook-rbac.yaml": WEBHOOK_CALLS}
