"""How rows look on the wire: every field that the SDK requires, integers as integers.

Minor releases of the SDK add required fields to answers, so these are supersets. Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from issuesandbox.local.daytona.config import ApiKey, Quota, RateLimits, SnapshotSpec
from issuesandbox.local.daytona.model import DISKLESS, Sandbox
from issuesandbox.local.daytona.quota import Usage

DAEMON_VERSION = "0.226.1"
_EPOCH = "2026-01-01T00:00:00.000Z"


def iso(seconds: float) -> str:
    """Return a time the way the API writes it: UTC, milliseconds, Z."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return f"{text[:-6]}Z"


def _common(sandbox: Sandbox, toolbox_url: str) -> dict[str, Any]:
    return {
        "id": sandbox.id,
        "organizationId": sandbox.organization,
        "name": sandbox.name,
        "target": sandbox.target,
        "runnerId": None if sandbox.state in DISKLESS else "runner-1",
        "sandboxClass": sandbox.sandbox_class,
        "desiredState": sandbox.desired,
        "snapshot": sandbox.snapshot,
        "user": sandbox.user,
        "errorReason": sandbox.error_reason,
        "recoverable": sandbox.recoverable,
        "public": sandbox.public,
        "networkBlockAll": sandbox.network_block_all,
        "cpu": sandbox.cpu,
        "gpu": sandbox.gpu,
        "spot": False,
        "memory": sandbox.memory,
        "disk": sandbox.disk,
        "labels": sandbox.labels,
        "backupState": sandbox.backup_state,
        "autoStopInterval": sandbox.auto_stop,
        "autoPauseInterval": sandbox.auto_pause,
        "autoArchiveInterval": sandbox.auto_archive,
        "autoDeleteInterval": sandbox.auto_delete,
        "autoDestroyAt": None if sandbox.auto_destroy_at is None else iso(sandbox.auto_destroy_at),
        "createdAt": iso(sandbox.created_at),
        "updatedAt": iso(sandbox.updated_at),
        "lastActivityAt": iso(sandbox.last_activity_at),
        "daemonVersion": DAEMON_VERSION,
        "toolboxProxyUrl": toolbox_url,
    }


def sandbox_view(sandbox: Sandbox, toolbox_url: str) -> dict[str, Any]:
    """Return a sandbox as GET, create and the lifecycle calls show it."""
    view = _common(sandbox, toolbox_url)
    view["state"] = sandbox.shown_state
    view["env"] = sandbox.env
    view["kvm"] = False
    view["volumes"] = []
    view["backupCreatedAt"] = None if sandbox.backup_at is None else iso(sandbox.backup_at)
    if sandbox.extra:
        view.update(sandbox.extra)
    return view


def list_item(sandbox: Sandbox, toolbox_url: str) -> dict[str, Any]:
    """Return a sandbox as the list shows it: no environment, no volumes, no build."""
    view = _common(sandbox, toolbox_url)
    view["state"] = sandbox.listed_state
    return view


def snapshot_view(snapshot: SnapshotSpec) -> dict[str, Any]:
    """Return a snapshot; its name serves as its id."""
    return {
        "id": snapshot.name,
        "general": True,
        "name": snapshot.name,
        "imageName": snapshot.name,
        "state": snapshot.state,
        "size": 1,
        "entrypoint": None,
        "cpu": snapshot.cpu,
        "gpu": 0,
        "mem": snapshot.memory,
        "disk": snapshot.disk,
        "errorReason": None,
        "createdAt": _EPOCH,
        "updatedAt": _EPOCH,
        "lastUsedAt": None,
        "regionIds": list(snapshot.regions),
        "sourceSandboxId": None,
        "sandboxClass": snapshot.sandbox_class,
    }


def key_view(key: ApiKey) -> dict[str, Any]:
    """Return what the service tells about a key: its organisation, and the value masked."""
    return {
        "name": key.label,
        "value": f"{key.key[:2]}********",
        "createdAt": _EPOCH,
        "permissions": list(key.permissions),
        "lastUsedAt": None,
        "expiresAt": None,
        "userId": f"user-{key.organization}",
        "organizationId": key.organization,
    }


def organization_view(name: str, quota: Quota, limits: RateLimits | None) -> dict[str, Any]:
    """Return an organisation; here its name is its id."""
    return {
        "id": name,
        "name": name,
        "createdBy": f"user-{name}",
        "personal": False,
        "createdAt": _EPOCH,
        "updatedAt": _EPOCH,
        "suspended": False,
        "suspendedAt": _EPOCH,
        "suspensionReason": "",
        "suspendedUntil": _EPOCH,
        "suspensionCleanupGracePeriodHours": 0,
        "maxCpuPerSandbox": quota.cpu_per_sandbox,
        "maxMemoryPerSandbox": quota.memory_per_sandbox,
        "maxDiskPerSandbox": quota.disk_per_sandbox,
        "secretQuota": 0,
        "maxSecretsPerSandbox": 0,
        "snapshotDeactivationTimeoutMinutes": 20_160,
        "defaultQueueTimeout": None,
        "sandboxLimitedNetworkEgress": False,
        "previewWarningEnabled": False,
        "ssoEnabled": False,
        "scimEnabled": False,
        "defaultRegionId": None,
        "authenticatedRateLimit": limits.authenticated if limits else None,
        "sandboxCreateRateLimit": limits.create if limits else None,
        "sandboxLifecycleRateLimit": limits.lifecycle if limits else None,
        "authenticatedRateLimitTtlSeconds": limits.window if limits else None,
        "sandboxCreateRateLimitTtlSeconds": limits.window if limits else None,
        "sandboxLifecycleRateLimitTtlSeconds": limits.window if limits else None,
        "experimentalConfig": {},
        "otelConfig": None,
    }


def usage_view(region: str, quota: Quota, usage: Usage) -> dict[str, Any]:
    """Return what an organisation holds and may hold; -1 is no limit."""
    return {
        "regionUsage": [
            {
                "regionId": region,
                "sandboxClass": "container",
                "totalCpuQuota": -1 if quota.cpu is None else quota.cpu,
                "currentCpuUsage": usage.cpu,
                "totalMemoryQuota": -1 if quota.memory is None else quota.memory,
                "currentMemoryUsage": usage.memory,
                "totalDiskQuota": -1 if quota.disk is None else quota.disk,
                "currentDiskUsage": usage.disk,
                "totalGpuQuota": 0,
                "currentGpuUsage": 0,
                "maxCpuPerSandbox": quota.cpu_per_sandbox,
                "maxMemoryPerSandbox": quota.memory_per_sandbox,
                "maxDiskPerSandbox": quota.disk_per_sandbox,
                "maxDiskPerNonEphemeralSandbox": quota.disk_per_sandbox,
                "maxCpuPerGpu": None,
                "maxMemoryPerGpu": None,
                "maxDiskPerGpu": None,
            }
        ],
        "totalSnapshotQuota": 100,
        "currentSnapshotUsage": 0,
        "totalVolumeQuota": 100,
        "currentVolumeUsage": 0,
    }
