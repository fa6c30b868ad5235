"""A stage for the reaper: a real API server, a simulated Daytona, and time that can be moved."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import aiohttp

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.adapters.kube.resources import KubeResources
from issuesandbox.api import names
from issuesandbox.clock import SystemClock
from issuesandbox.domain.orphans import OrphanRules, Scope
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.reaper import Outside, Reaper
from issuesandbox.local.checker.guard import Guard
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.daytona.config import DEFAULT_KEY, DEFAULT_ORGANIZATION
from issuesandbox.local.daytona.server import Simulator


class MovableClock(SystemClock):
    """The machine's clocks, moved forward at will."""

    def __init__(self) -> None:
        self.moved = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.moved)

    def monotonic(self) -> float:
        return super().monotonic() + self.moved


@dataclass
class Stage:
    """Everything a test of the reaper touches."""

    access: Access
    namespace: str
    simulator: Simulator
    http: aiohttp.ClientSession
    sandboxes: DaytonaSandboxes
    clock: MovableClock = field(default_factory=MovableClock)
    requests: KubeRequests = field(init=False)
    guard: Guard = field(init=False)
    """What the test tells the checker that judges it at its end."""

    def __post_init__(self) -> None:
        self.requests = self.kubernetes(self.access.server)

    @property
    def installation(self) -> str:
        return self.namespace

    @property
    def scope(self) -> Scope:
        return Scope(self.installation, (self.namespace,))

    def reaper(
        self,
        requests: KubeRequests | None = None,
        timings: Timings | None = None,
        **options: Any,
    ) -> Reaper:
        """Return a reaper of this test's installation and namespace."""
        resources = KubeResources(requests or self.requests, self.clock, reporter="test")
        rules = OrphanRules(self.scope, timings or Timings())
        return Reaper(Outside(self.sandboxes, resources, self.clock), rules, **options)

    def kubernetes(self, server: str) -> KubeRequests:
        """Return the administrator's way to an API server; the caller closes it."""
        trust = ssl.create_default_context(cafile=self.access.ca)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trust),
            headers={"Authorization": f"Bearer {self.access.token}"},
        )
        return KubeRequests(server, session, 10)

    async def create(self, name: str, number: int = 1, **fields: Any) -> str:
        """Create a resource and return its uid."""
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": self.namespace, **fields.pop("metadata", {})},
            "spec": {"issue": {"repository": "octo/hello", "number": number}, **fields},
        }
        created = json.loads(await self.requests.send("POST", self.path(), body))
        return str(created["metadata"]["uid"])

    async def exists(self, name: str) -> bool:
        listed = json.loads(await self.requests.send("GET", self.path()))
        return any(each["metadata"]["name"] == name for each in listed["items"])

    def path(self, name: str = "") -> str:
        base = f"/apis/{names.GROUP}/{names.VERSION}/namespaces/{self.namespace}/{names.PLURAL}"
        return f"{base}/{name}" if name else base

    async def plant(self, resource: str, uid: str, **fields: Any) -> str:
        """Put a sandbox at Daytona as if made long ago for a resource; return its id."""
        labels = {
            names.LABEL_INSTALLATION: self.installation,
            names.LABEL_NAMESPACE: self.namespace,
            names.LABEL_RESOURCE: resource,
            names.LABEL_UID: uid,
            **fields.pop("labels", {}),
        }
        (planted,) = await self.plant_raw(labels=labels, **fields)
        return planted

    async def plant_raw(self, **fields: Any) -> list[str]:
        planted = {"organization": DEFAULT_ORGANIZATION, "age": 3600, **fields}
        return [each["id"] for each in await self.admin("POST", "sandboxes", planted)]

    async def live(self) -> set[str]:
        """Return the ids of all sandboxes that nobody is destroying."""
        listed = await self.admin("GET", "sandboxes")
        return {each["id"] for each in listed if each["visibleState"] not in ENDING}

    async def deletes(self) -> int:
        """Return how many deletes Daytona was asked for."""
        journal = await self.admin("GET", "journal")
        entries = map(json.loads, journal.splitlines())
        return sum(each.get("kind") == "sandbox.delete" for each in entries)

    async def fault(self, **fault: Any) -> None:
        await self.admin("POST", "faults", fault)

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Call the simulator's admin API."""
        url = f"{self.simulator.admin_url}/{path}"
        async with self.http.request(method, url, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return text if path == "journal" or not text else json.loads(text)

    async def command(self, name: str, *arguments: str, **environment: str) -> Ended:
        """Run one of the administrator's commands as a process of its own."""
        code = f"from issuesandbox.entry.{name} import {name}; {name}()"
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", code, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "KUBECONFIG": str(self.access.kubeconfig),
                "DAYTONA_API_KEY": DEFAULT_KEY,
                "DAYTONA_API_URL": self.simulator.url,
                "ISSUESANDBOX_INSTALLATION": self.installation,
                "ISSUESANDBOX_WATCH_NAMESPACES": self.namespace,
                "ISSUESANDBOX_TIMINGS": json.dumps({"orphan_gap": "200ms"}),
                **environment,
            },
        )
        out, err = await child.communicate()
        assert child.returncode is not None
        ended = Ended(child.returncode, out.decode(), err.decode())
        self.guard.texts[f"{name} {' '.join(arguments)}"] = ended.out + ended.err
        return ended


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str


ENDING = ("destroying", "destroyed")
