"""Reads the body of a create call: what is required, what is refused, what is only kept.

Unknown fields are ignored and complaints are joined by a comma, as the service does.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any

from issuesandbox.local.daytona.config import SimulatorConfig, SnapshotSpec
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.model import Desired, Sandbox, SandboxId, State
from issuesandbox.local.daytona.views import iso

_UNSAFE_NAME = re.compile(r"<[^>]*>|[a-z][a-z0-9+.-]*://|www\.|[\x00-\x1f\x7f]", re.IGNORECASE)
_RESOURCES = ("cpu", "gpu", "memory", "disk")
_INTEGERS = (
    *_RESOURCES,
    "autoStopInterval",
    "autoPauseInterval",
    "autoArchiveInterval",
    "autoDeleteInterval",
    "ttlMinutes",
    "queueTimeout",
)
_STRINGS = ("name", "snapshot", "user", "target", "networkAllowList", "domainAllowList")
_BOOLEANS = ("public", "networkBlockAll")
# Shown again as they came; they have no meaning on one machine.
_KEPT = (
    "networkAllowList",
    "domainAllowList",
    "outboundProxyUrl",
    "volumes",
    "queueTimeout",
)


@dataclass(frozen=True, slots=True)
class NewSandbox:
    """A valid request for a sandbox."""

    sandbox: Sandbox
    build: bool


def read_new_sandbox(
    body: Any, organization: str, config: SimulatorConfig, now: float
) -> NewSandbox:
    """Return the row that this body asks for, or refuse it."""
    if not isinstance(body, dict):
        raise ApiError(400, "Request body must be a JSON object")
    _check_types(body)
    build = body.get("buildInfo")
    snapshot = None if build else _snapshot(body, config)
    target = body.get("target") or config.regions[0]
    if target not in config.regions:
        raise ApiError(404, f"Region {target} not found")
    if snapshot is not None and target not in snapshot.regions:
        raise ApiError(400, f"Snapshot {snapshot.name} is not available in region {target}")
    sandbox_id = SandboxId(str(uuid.uuid4()))
    sandbox = Sandbox(
        id=sandbox_id,
        organization=organization,
        name=body.get("name") or sandbox_id,
        state=State.UNKNOWN,
        desired=Desired.STARTED,
        created_at=now,
        updated_at=now,
        last_activity_at=now,
        target=target,
    )
    _fill(sandbox, body, snapshot, now)
    return NewSandbox(sandbox, build=bool(build))


def _check_types(body: dict[str, Any]) -> None:
    complaints = []
    for names, kind, article in (
        (_STRINGS, str, "a string"),
        (_INTEGERS, int, "an integer number"),
        (_BOOLEANS, bool, "a boolean value"),
    ):
        for name in names:
            value = body.get(name)
            wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
            if value is not None and wrong:
                complaints.append(f"{name} must be {article}")
    for name in ("env", "labels"):
        if body.get(name) is not None:
            complaints += string_map_complaints(name, body[name])
    if body.get("buildInfo") is not None and not isinstance(body["buildInfo"], dict):
        complaints.append("buildInfo must be an object")
    if isinstance(body.get("name"), str) and _UNSAFE_NAME.search(body["name"]):
        complaints.append("name must not contain HTML, URLs or control characters")
    if complaints:
        raise ApiError(400, ", ".join(complaints))


def string_map_complaints(name: str, value: Any) -> list[str]:
    """Return what is wrong with a map of strings to strings."""
    if not isinstance(value, dict):
        return [f"{name} must be an object"]
    if not all(isinstance(item, str) for item in value.values()):
        return [f"each value in {name} must be a string"]
    return []


def _snapshot(body: dict[str, Any], config: SimulatorConfig) -> SnapshotSpec:
    if any(body.get(name) is not None for name in _RESOURCES):
        raise ApiError(400, "Cannot specify Sandbox resources when using a snapshot")
    name = body.get("snapshot") or config.snapshots[0].name
    for snapshot in config.snapshots:
        if snapshot.name == name:
            if snapshot.state != "active":
                raise ApiError(400, f"Snapshot {name} is {snapshot.state}")
            return snapshot
    raise ApiError(400, f"Snapshot {name} not found. Did you add it through the Daytona Dashboard?")


def _fill(
    sandbox: Sandbox, body: dict[str, Any], snapshot: SnapshotSpec | None, now: float
) -> None:
    sandbox.user = body.get("user") or sandbox.user
    sandbox.env = body.get("env") or {}
    sandbox.labels = body.get("labels") or {}
    sandbox.public = bool(body.get("public"))
    sandbox.network_block_all = bool(body.get("networkBlockAll"))
    extra = {name: body[name] for name in _KEPT if body.get(name) is not None}
    if snapshot is not None:
        sandbox.snapshot = snapshot.name
        sandbox.sandbox_class = snapshot.sandbox_class
        sandbox.cpu, sandbox.memory, sandbox.disk = snapshot.cpu, snapshot.memory, snapshot.disk
    else:
        if body.get("snapshot"):
            raise ApiError(400, "Cannot specify both a snapshot and build info")
        sandbox.cpu = body.get("cpu") or sandbox.cpu
        sandbox.gpu = body.get("gpu") or 0
        sandbox.memory = body.get("memory") or sandbox.memory
        sandbox.disk = body.get("disk") or sandbox.disk
        extra["buildInfo"] = {
            "dockerfileContent": body["buildInfo"].get("dockerfileContent", ""),
            "contextHashes": body["buildInfo"].get("contextHashes") or [],
            "snapshotRef": f"build-{sandbox.id}",
            "createdAt": iso(now),
            "updatedAt": iso(now),
        }
    sandbox.extra = extra or None
    for field, name in (
        ("auto_stop", "autoStopInterval"),
        ("auto_pause", "autoPauseInterval"),
        ("auto_archive", "autoArchiveInterval"),
        ("auto_delete", "autoDeleteInterval"),
    ):
        if body.get(name) is not None:
            setattr(sandbox, field, body[name])
    _fill_auto_pause(sandbox, body)
    if (body.get("ttlMinutes") or 0) > 0:
        sandbox.auto_destroy_at = now + body["ttlMinutes"] * 60


def _fill_auto_pause(sandbox: Sandbox, body: dict[str, Any]) -> None:
    if sandbox.sandbox_class == "container":
        if sandbox.auto_pause:
            raise ApiError(400, "Auto-pause is not supported for sandboxes of class container")
    elif body.get("autoStopInterval") is None and body.get("autoPauseInterval") is None:
        # What can be paused is paused when idle, and not stopped.
        sandbox.auto_stop, sandbox.auto_pause = 0, 60
    if sandbox.auto_stop and sandbox.auto_pause:
        raise ApiError(400, "Only one of autoStopInterval and autoPauseInterval may be set")
