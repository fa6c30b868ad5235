"""The smallest honest program that does the one thing: a sandbox for every new resource.

Its own list and watch, one POST to Daytona, one patch of the status. No finalizer, no intent, no
second look, no limits, no conditions, no recovery: what it takes is what the task itself costs on
this machine. It uses the operator's own libraries and sends Daytona the same order.

With BENCH_ANNOUNCE it writes finalizer and intent before the POST, as every program must that may
be killed in between without leaking a sandbox. The difference is the price of that one promise.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import uvloop

_CHUNK = "500"
_LABELS = "issuesandbox.dev"
_encode = msgspec.json.Encoder().encode


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str


class _Issue(msgspec.Struct):
    number: int
    repository: str


class _Spec(msgspec.Struct):
    issue: _Issue


class _Resource(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: dict[str, Any] | None = None


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    next: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Resource] | None = None


class _Event(msgspec.Struct):
    type: str
    object: _Resource


class Baseline:
    """Serves the resources of one namespace."""

    def __init__(self, kube: aiohttp.ClientSession, daytona: aiohttp.ClientSession) -> None:
        self._kube = kube
        self._daytona = daytona
        self._namespace = os.environ["BENCH_NAMESPACE"]
        api = "/apis/issuesandbox.dev/v1alpha1"
        self._path = f"{api}/namespaces/{self._namespace}/issuesandboxes"
        self._announce = bool(os.environ.get("BENCH_ANNOUNCE"))
        self._served: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """List, then watch for ever."""
        version = await self._list()
        async for event in self._watch(version):
            self._take(event.object)

    def _take(self, resource: _Resource) -> None:
        uid = resource.metadata.uid
        if uid in self._served:
            return
        self._served.add(uid)
        if not resource.status:
            task = asyncio.create_task(self._serve(resource))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, resource: _Resource) -> None:
        issue, metadata = resource.spec.issue, resource.metadata
        labels = {
            "installation": "bench",
            "namespace": self._namespace,
            "resource": metadata.name,
            "uid": metadata.uid,
            "repository": issue.repository.lower(),
            "number": str(issue.number),
            "name": f"claude-issue-{issue.number}",
            "attempt": "1",
        }
        order = {
            "name": f"claude-issue-{issue.number}",
            "labels": {f"{_LABELS}/{name}": value for name, value in labels.items()},
            "autoStopInterval": 60,
            "autoArchiveInterval": 1440,
            "autoDeleteInterval": 4320,
            "ttlMinutes": 10080,
        }
        if self._announce:
            note = {f"{_LABELS}/first-create": order["name"]}
            marks = {"finalizers": [f"{_LABELS}/sandbox"], "annotations": note}
            await self._patch(metadata.name, {"metadata": marks})
        async with self._daytona.post("/api/sandbox", data=_encode(order)) as answer:
            sandbox = msgspec.json.decode(await answer.read())
        status = {"phase": "Idle", "sandbox": {"id": sandbox["id"], "name": sandbox["name"]}}
        await self._patch(f"{metadata.name}/status", {"status": status})

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        url = f"{self._path}/{path}"
        async with self._kube.patch(url, data=_encode(body), headers=headers) as answer:
            await answer.read()

    async def _list(self) -> str:
        query = {"limit": _CHUNK}
        while True:
            async with self._kube.get(self._path, params=query) as answer:
                page = msgspec.json.decode(await answer.read(), type=_List)
            for resource in page.items or ():
                self._take(resource)
            if not page.metadata.next:
                return page.metadata.resource_version
            query["continue"] = page.metadata.next

    async def _watch(self, version: str) -> AsyncIterator[_Event]:
        decoder = msgspec.json.Decoder(_Event)
        query = {"watch": "1", "resourceVersion": version}
        async with self._kube.get(self._path, params=query) as answer:
            rest = b""
            async for data in answer.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    yield decoder.decode(line)


async def main() -> None:
    """Serve until killed; where and with which rights the environment says."""
    trust = ssl.create_default_context(cafile=os.environ["BENCH_CA"])
    forever = aiohttp.ClientTimeout(total=None)
    async with (
        aiohttp.ClientSession(
            os.environ["BENCH_API_SERVER"],
            connector=aiohttp.TCPConnector(limit=100, ssl=trust),
            headers={"Authorization": f"Bearer {os.environ['BENCH_TOKEN']}"},
            timeout=forever,
            raise_for_status=True,
        ) as kube,
        aiohttp.ClientSession(os.environ["BENCH_DAYTONA"], raise_for_status=True) as daytona,
    ):
        await Baseline(kube, daytona).run()


if __name__ == "__main__":
    uvloop.run(main())
