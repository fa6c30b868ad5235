"""A real API server of the benchmark's own, and what a user and an administrator do with it."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import psutil

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.plane import running_control_plane
from issuesandbox.local.control_plane.resolve import Resolver
from issuesandbox.local.processes import Leash
from issuesandbox.local.world.world import install
from meters import requests_in
from programs import Program, Programs, log_tail

_API = "/apis/issuesandbox.dev/v1alpha1"
# As many creates as a busy adapter would have on their way at once.
_CONNECTIONS = 50
_POLL_SECONDS = 0.02

T = TypeVar("T")


class BenchError(Exception):
    """Something that the benchmark waits for did not happen."""


@dataclass(frozen=True)
class Cluster:
    """One API server, its programs and the administrator's connection."""

    access: Access
    programs: Programs
    kube: aiohttp.ClientSession
    http: aiohttp.ClientSession

    async def create(self, body: bytes, namespace: str) -> None:
        """Create a resource from an encoded body."""
        await self._send("POST", _path(namespace), body)

    async def get(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return a resource, or None if there is none."""
        async with self.kube.get(f"{_path(namespace)}/{name}") as answer:
            return None if answer.status == 404 else await answer.json()

    async def delete(self, namespace: str, name: str) -> None:
        """Ask for the deletion of a resource."""
        await self._send("DELETE", f"{_path(namespace)}/{name}")

    async def patch(self, namespace: str, name: str, body: bytes) -> None:
        """Merge an encoded body into a resource."""
        await self._send("PATCH", f"{_path(namespace)}/{name}", body)

    async def requests(self) -> Counter[str]:
        """Return how many requests the API server has answered, by verb and resource."""
        return requests_in((await self._send("GET", "/metrics")).decode())

    def etcd_address(self) -> str:
        """Return where this cluster's etcd listens."""
        option = "--etcd-servers="
        for process in psutil.Process().children():
            for argument in process.cmdline():
                if argument.startswith(option):
                    return argument.removeprefix(option)
        raise BenchError("no API server with an etcd of its own is running")

    async def until_ready(self, program: Program, seconds: float = 120.0) -> None:
        """Wait until the operator says that it has seen every resource."""

        async def ready() -> bool:
            if program.child.returncode is not None:
                raise BenchError(f"{program.child.name} ended: {log_tail(program)}")
            try:
                async with self.http.get(f"{program.url}/readyz") as answer:
                    return answer.status == 200
            except aiohttp.ClientError:
                return False

        await until(ready, f"{program.child.name} to be ready", seconds)

    async def until_up(self, url: str) -> None:
        """Wait until a server answers."""

        async def answers() -> bool:
            try:
                async with self.http.get(url) as answer:
                    return answer.status == 200
            except OSError:
                return False

        await until(answers, f"{url} to answer", 30)

    async def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{kind}"}
        async with self.kube.request(method, path, data=body, headers=headers) as answer:
            text = await answer.read()
            if answer.status >= 300:
                raise BenchError(f"{method} {path}: {answer.status} {text[:300]!r}")
            return text


async def until(
    condition: Callable[[], Awaitable[T]], what: str, seconds: float, poll: float = _POLL_SECONDS
) -> T:
    """Wait for a condition and return what it returned."""
    try:
        async with asyncio.timeout(seconds):
            while not (value := await condition()):
                await asyncio.sleep(poll)
            return value
    except TimeoutError:
        raise BenchError(f"waited {seconds:g} s for {what}") from None


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a body as it is sent."""
    return msgspec.json.encode(body)


@asynccontextmanager
async def running_cluster(folder: Path, *namespaces: str) -> AsyncIterator[Cluster]:
    """Run a cluster with the operator's resource, rights and these namespaces in it."""
    binaries = await Resolver().binaries()
    async with AsyncExitStack() as stack:
        leash = Leash.attach(folder)
        stack.push_async_callback(leash.release)
        plane = await stack.enter_async_context(
            running_control_plane(folder / "control-plane", binaries, leash=leash)
        )
        install(plane.access)
        for name in namespaces:
            plane.access.kubectl("create", "namespace", name)
        trust = ssl.create_default_context(cafile=plane.access.ca)
        kube = await stack.enter_async_context(
            aiohttp.ClientSession(
                plane.access.server,
                connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=trust),
                headers={"Authorization": f"Bearer {plane.access.token}"},
            )
        )
        http = await stack.enter_async_context(aiohttp.ClientSession())
        yield Cluster(plane.access, Programs(plane.access, leash, folder), kube, http)


def _path(namespace: str) -> str:
    return f"{_API}/namespaces/{namespace}/issuesandboxes"
