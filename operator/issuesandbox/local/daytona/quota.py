"""What an organisation may hold at once, in the service's words: always 400, told apart by text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from issuesandbox.local.daytona.config import Quota
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.model import DISKLESS, POWERED_OFF, Sandbox

_ADVICE = "\nTo increase concurrency limits, upgrade your organization's Tier."


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over an organisation."""

    cpu: int
    memory: int
    disk: int


def usage_of(sandboxes: Iterable[Sandbox]) -> Usage:
    """Add up what is held: stopped sandboxes hold their disk, archived ones nothing."""
    cpu = memory = disk = 0
    for sandbox in sandboxes:
        if sandbox.state not in POWERED_OFF or sandbox.plan is not None:
            cpu += sandbox.cpu
            memory += sandbox.memory
        if sandbox.state not in DISKLESS:
            disk += sandbox.disk
    return Usage(cpu, memory, disk)


def check_size(quota: Quota, cpu: int, memory: int, disk: int) -> None:
    """Refuse a sandbox that is too large for any organisation like this one."""
    for what, wanted, most, unit in (
        ("CPU", cpu, quota.cpu_per_sandbox, ""),
        ("Memory", memory, quota.memory_per_sandbox, "GB"),
        ("Disk", disk, quota.disk_per_sandbox, "GB"),
    ):
        if wanted > most:
            raise ApiError(
                400,
                f"{what} request {wanted}{unit} exceeds maximum allowed per sandbox "
                f"({most}{unit}).",
            )


def check_room(quota: Quota, others: Iterable[Sandbox], wanted: Usage) -> None:
    """Refuse what would not fit beside what is already held."""
    if quota.cpu is None and quota.memory is None and quota.disk is None:
        return
    held = usage_of(others)
    for what, total, most, unit in (
        ("CPU", held.cpu + wanted.cpu, quota.cpu, ""),
        ("memory", held.memory + wanted.memory, quota.memory, "GiB"),
        ("disk", held.disk + wanted.disk, quota.disk, "GiB"),
    ):
        if most is not None and total > most:
            raise ApiError(
                400, f"Total {what} limit exceeded. Maximum allowed: {most}{unit}.{_ADVICE}"
            )
