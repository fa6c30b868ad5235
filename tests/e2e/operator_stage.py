"""A stage for the operator: a simulated Daytona, a namespace, real operator processes."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from nursery import born
from plain_api import create

from issuesandbox.api.names import ANNOTATION_ANNOUNCED, FINALIZER, SETTINGS_MAP
from issuesandbox.clock import SystemClock
from issuesandbox.entry.plugin.why import Surroundings, reasons
from issuesandbox.local.checker.guard import Guard
from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports
from issuesandbox.local.daytona.config import DEFAULT_KEY, DEFAULT_ORGANIZATION
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.processes import Child, Leash, spawn
from issuesandbox.local.world.layout import SERVICE_ACCOUNT, manifests

# Short enough for a test, in the same order as in production.
QUICK = {
    "fleet_tick": "500ms",
    "fleet_stale": "5s",
    "absence_gap": "1s",
    "settle_check": "100ms",
    "unknown_check": "300ms",
    "deletion_retry": "200ms",
    "create_timeout": "5s",
    "create_retry": "200ms",
    "landing_margin": "1s",
    "refused_check": "1s",
    "lease_duration": "3s",
    "lease_hold": "2s",
    "lease_retry": "500ms",
}
# All the ways in which a create can go wrong.
CREATE_FAULTS: list[dict[str, Any]] = [
    {"fault": "lost_answer"},
    {"fault": "late_effect", "delay": 1.0},
    {"fault": "row_exists_400"},
    {"fault": "reset"},
    {"fault": "status", "status": 500},
    {"fault": "status", "status": 409},
]


def fault_id(fault: dict[str, Any]) -> str:
    """Return the name of a test with this fault."""
    return str(fault["fault"]) + str(fault.get("status", ""))


@dataclass
class Stage:
    """Everything a test of the operator touches."""

    access: Access
    namespace: str
    simulator: Simulator
    folder: Path
    leash: Leash
    http: aiohttp.ClientSession
    guard: Guard = field(init=False)
    """What the test tells the checker that judges it at its end."""
    shipped: bool = False
    """Whether operators are started as users start them, imports and all."""
    operators: list[Child] = field(default_factory=list)
    probe_urls: list[str] = field(default_factory=list)

    async def start_operator(self, home: str | None = None, **settings: str) -> Child:
        """Start an operator under the shipped rights and wait until it is ready.

        Operators with the same home contest one lease; with different ones both act at once.
        """
        child = self.spawn_operator(home, **settings)
        await self.until(lambda: self._ready(self.probe_urls[-1], child), "the operator to start")
        return child

    def spawn_operator(self, home: str | None = None, **settings: str) -> Child:
        (port,) = free_ports(1)
        home = home or self.namespace
        kubeconfig = self.access.service_account_kubeconfig(home, SERVICE_ACCOUNT, self.folder)
        environment = {
            "PATH": str(Path(sys.executable).parent),
            "KUBECONFIG": str(kubeconfig),
            "DAYTONA_API_KEY": DEFAULT_KEY,
            "DAYTONA_API_URL": self.simulator.url,
            "ISSUESANDBOX_INSTALLATION": self.namespace,
            "ISSUESANDBOX_WATCH_NAMESPACES": self.namespace,
            "ISSUESANDBOX_HTTP_HOST": LOOPBACK,
            "ISSUESANDBOX_HTTP_PORT": str(port),
            "ISSUESANDBOX_TIMINGS": json.dumps(QUICK),
            "ISSUESANDBOX_MAX_SANDBOXES": "1000",
            "ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY": "1000",
            "ISSUESANDBOX_MAX_NEW_RUNS_PER_MINUTE": "1000",
            **settings,
        }
        environment = {name: value for name, value in environment.items() if value}
        log = self.folder / "logs" / f"operator-{len(self.probe_urls)}.log"
        if self.shipped:
            command = [sys.executable, "-P", "-m", "issuesandbox", "run"]
            child = spawn("operator", command, leash=self.leash, log=log, env=environment)
        else:
            child = born("issuesandbox", "run", out=log, env=environment)
        self.operators.append(child)
        self.probe_urls.append(f"http://{LOOPBACK}:{port}")
        self.guard.metrics.append(f"{self.probe_urls[-1]}/metrics")
        return child

    def grant_rights(self, home: str) -> None:
        """Give the shipped rights to an operator that lives in the namespace `home`."""
        granted = []
        for each in yaml.safe_load_all((manifests() / "base" / "rbac.yaml").read_text()):
            if each["kind"] == "ClusterRoleBinding":
                each["metadata"]["name"] += f"-{home}"
            if "namespace" in each["metadata"]:
                each["metadata"]["namespace"] = home
            for subject in each.get("subjects", ()):
                subject["namespace"] = home
            granted.append(each)
        create(self.access, *granted)

    async def _ready(self, url: str, child: Child) -> bool:
        assert child.returncode is None, f"the operator ended: {child.last_lines(20)}"
        try:
            async with self.http.get(f"{url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def apply(
        self, name: str, number: int = 1, *, announced: bool = False, **spec: Any
    ) -> None:
        """Create a resource for `octo/hello#number`, as a user does or as the adapter does."""
        issue = {"repository": "octo/hello", "number": number, **spec.pop("issue", {})}
        metadata: dict[str, Any] = {"name": name, "namespace": self.namespace}
        if announced:
            metadata["finalizers"] = [FINALIZER]
            metadata["annotations"] = {ANNOTATION_ANNOUNCED: f"claude-issue-{number}"}
        body = {
            "apiVersion": "issuesandbox.dev/v1alpha1",
            "kind": "IssueSandbox",
            "metadata": metadata,
            "spec": {"issue": issue, **spec},
        }
        await self.api("POST", self.path(), body)

    async def patch(self, name: str, body: Mapping[str, Any]) -> None:
        await self.api("PATCH", self.path(name), body)

    async def delete(self, name: str) -> None:
        await self.api("DELETE", self.path(name))

    async def get(self, name: str) -> dict[str, Any]:
        """Return a resource, or an empty object if it is gone."""
        return await self.api("GET", self.path(name), missing={})

    async def status(self, name: str) -> dict[str, Any]:
        return (await self.get(name)).get("status", {})

    async def condition(self, name: str, kind: str) -> dict[str, Any]:
        conditions = (await self.status(name)).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), {})

    async def phase(self, name: str) -> str | None:
        return (await self.status(name)).get("phase")

    async def until_phase(self, name: str, phase: str, seconds: float = 30) -> dict[str, Any]:
        async def reached() -> bool:
            return await self.phase(name) == phase

        await self.until(reached, f"{name} to be {phase}", seconds)
        return await self.status(name)

    async def until_gone(self, name: str, seconds: float = 30) -> None:
        async def gone() -> bool:
            return not await self.get(name)

        await self.until(gone, f"{name} to be gone", seconds)

    async def until(
        self, condition: Callable[[], Awaitable[Any]], what: str, seconds: float = 30
    ) -> Any:
        """Wait for a condition; on failure say what the operators logged last."""
        try:
            async with asyncio.timeout(seconds):
                while not (value := await condition()):
                    await asyncio.sleep(0.05)
                return value
        except TimeoutError:
            logs = "\n".join(line for each in self.operators for line in each.last_lines(15))
            pytest.fail(f"waited {seconds} s for {what}\n{logs}", pytrace=False)

    def path(self, name: str = "") -> str:
        base = f"/apis/issuesandbox.dev/v1alpha1/namespaces/{self.namespace}/issuesandboxes"
        return f"{base}/{name}" if name else base

    async def api(self, method: str, path: str, body: Any = None, missing: Any = None) -> Any:
        """Send a request to the API server as the administrator."""
        text = await self.plain(method, path, body, missing is not None)
        return json.loads(text) if text else missing

    async def plain(
        self, method: str, path: str, body: Any = None, may_be_missing: bool = False
    ) -> str:
        """Send a request as the administrator, and return the answer as it is."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.access.token}", "Content-Type": kind}
        data = json.dumps(body) if body is not None else None
        url = self.access.server + path
        trust = ssl.create_default_context(cafile=self.access.ca)
        async with self.http.request(method, url, data=data, headers=headers, ssl=trust) as answer:
            if answer.status == 404 and may_be_missing:
                return ""
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return text

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Call the simulator's admin API."""
        text = await self._admin(method, path, body)
        return json.loads(text) if text else None

    async def journal(self) -> list[dict[str, Any]]:
        """Return every request and state change at the simulator."""
        return [json.loads(line) for line in (await self._admin("GET", "journal")).splitlines()]

    async def _admin(self, method: str, path: str, body: Any = None) -> str:
        url = f"{self.simulator.admin_url}/{path}"
        async with self.http.request(method, url, json=body) as answer:
            text = await answer.text()
            assert answer.status < 300, f"{method} {path}: {answer.status} {text}"
            return text

    async def created(self) -> list[str]:
        """Return every sandbox that was ever made."""
        return [each["sandbox"] for each in await self.journal() if each.get("effect") == "created"]

    async def calls(self, kind: str) -> list[dict[str, Any]]:
        """Return the requests of one kind."""
        return [each for each in await self.journal() if each.get("kind") == kind]

    async def happenings(self) -> int:
        """Return how many requests and state changes the simulator has seen."""
        return int((await self.admin("GET", "health"))["seq"])

    async def moments(self) -> int:
        """Return how much has happened at the simulator, and to resources: where a kill may hit."""
        assert self.guard.recorder is not None, "the checker watches while a test runs"
        return await self.happenings() + self.guard.recorder.told

    @staticmethod
    def timings(**changes: str) -> str:
        """Return the quick timings with some changes, as the operator takes them."""
        return json.dumps({**QUICK, **changes})

    async def sandboxes(self) -> list[dict[str, Any]]:
        """Return all sandboxes that are live at Daytona."""
        listed = await self.admin("GET", "sandboxes")
        return [each for each in listed if each["state"] not in ("destroying", "destroyed")]

    async def daytona_get(self, id_or_name: str) -> dict[str, Any]:
        """Return a sandbox as Daytona's own API shows it."""
        headers = {"Authorization": f"Bearer {DEFAULT_KEY}"}
        url = f"{self.simulator.url}/sandbox/{id_or_name}"
        async with self.http.get(url, headers=headers) as answer:
            shown: dict[str, Any] = await answer.json()
            return shown

    async def daytona_delete(self, sandbox: str) -> None:
        """Delete a sandbox as a person does in Daytona's dashboard."""
        await self._as_a_person("DELETE", sandbox)

    async def daytona_post(self, sandbox: str, verb: str) -> None:
        """Stop or pause a sandbox as a person does in Daytona's dashboard."""
        await self._as_a_person("POST", f"{sandbox}/{verb}")

    async def _as_a_person(self, method: str, path: str) -> None:
        headers = {"Authorization": f"Bearer {DEFAULT_KEY}"}
        url = f"{self.simulator.url}/sandbox/{path}"
        async with self.http.request(method, url, headers=headers) as answer:
            assert answer.status < 300, await answer.text()

    async def why(self, name: str) -> str:
        """Return what `kubectl isb why` says of a resource; the verb itself takes seconds."""
        place = f"/api/v1/namespaces/{self.namespace}/configmaps/{SETTINGS_MAP}"
        stored = (await self.api("GET", place, missing={})).get("data")
        around = Surroundings(now=SystemClock().now(), settings=stored)
        return "\n".join(reasons(await self.get(name), around))

    async def plant(self, **sandbox: Any) -> None:
        """Put a sandbox at Daytona that the operator did not make."""
        await self.admin("POST", "sandboxes", {"organization": DEFAULT_ORGANIZATION, **sandbox})

    async def fault(self, **fault: Any) -> None:
        await self.admin("POST", "faults", fault)

    async def clear_faults(self) -> None:
        await self.admin("DELETE", "faults")
