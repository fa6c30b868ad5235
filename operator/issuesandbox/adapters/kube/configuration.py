"""Settings, the freeze and the operator's opinion of them: three ConfigMaps in its namespace.

The freeze is an object of its own: it holds whatever the settings look like, and applying the
manifests again does not lift it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict

import msgspec

from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.adapters.kube.watching import watch_record
from issuesandbox.api.names import FREEZE_MAP, SETTINGS_MAP, STATUS_MAP
from issuesandbox.clock import Clock
from issuesandbox.ports.configuration import Opinion, Stored
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.resources import EventNote

_RETRY = 1.0


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class KubeConfiguration:
    """The operator's ConfigMaps, each by its name alone, so that no wider right is needed."""

    def __init__(self, requests: KubeRequests, namespace: str, clock: Clock, reporter: str) -> None:
        self._requests = requests
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/configmaps"
        self._clock = clock
        self._reporter = reporter

    async def read(self) -> Stored:
        """Return what is stored now."""
        freeze = await self._get(FREEZE_MAP)
        settings = await self._get(SETTINGS_MAP)
        return Stored(settings or {}, _why(freeze))

    async def follow(
        self, settings: Callable[[Mapping[str, str]], None], freeze: Callable[[str | None], None]
    ) -> None:
        """Tell, until cancelled, what is stored: at first, and whenever it changes."""
        heard_by: Mapping[str, Callable[[Mapping[str, str] | None], None]] = {
            FREEZE_MAP: lambda data: freeze(_why(data)),
            SETTINGS_MAP: lambda data: settings(data or {}),
        }
        async with asyncio.TaskGroup() as group:
            for name, told in heard_by.items():
                watch = watch_record(self._requests, self._namespace, name, told, _RETRY)
                group.create_task(watch)

    async def accepted(self) -> Mapping[str, str]:
        """Return the settings that were last found good."""
        status = await self._get(STATUS_MAP) or {}
        try:
            return msgspec.json.decode(status.get("accepted", "{}"), type=dict[str, str])
        except msgspec.MsgspecError:
            return {}

    async def report(self, opinion: Opinion) -> None:
        """Store the operator's opinion as a condition, and what it found good."""
        condition = asdict(opinion)
        accepted = condition.pop("accepted")
        data = {
            "settings": msgspec.json.encode(condition).decode(),
            "accepted": msgspec.json.encode(accepted, order="sorted").decode(),
        }
        await self._requests.send("PATCH", f"{self._path}/{STATUS_MAP}", {"data": data})

    async def note(self, event: EventNote) -> None:
        """Post an Event about the settings."""
        now = self._clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z")
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": f"{SETTINGS_MAP}-", "namespace": self._namespace},
            "regarding": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": self._namespace,
                "name": SETTINGS_MAP,
            },
            "eventTime": now,
            "reportingController": "issuesandbox.dev/operator",
            "reportingInstance": self._reporter,
            "action": "ReadSettings",
            "reason": event.reason,
            "note": event.message[:1024],
            "type": "Warning" if event.warning else "Normal",
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self._namespace}/events"
        await self._requests.send("POST", path, body)

    async def _get(self, name: str) -> dict[str, str] | None:
        try:
            body = await self._requests.send("GET", f"{self._path}/{name}")
        except NotFound:
            return None
        return msgspec.json.decode(body, type=_ConfigMap).data or {}


def _why(freeze: Mapping[str, str] | None) -> str | None:
    return None if freeze is None else freeze.get("reason", "no reason given")
