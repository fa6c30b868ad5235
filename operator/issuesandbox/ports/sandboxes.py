"""The sandboxes the engine can see and change. None of these calls waits for a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from issuesandbox.domain.sandbox import SandboxView


@dataclass(frozen=True, slots=True)
class SandboxOrder:
    """All that is needed to create one sandbox."""

    name: str
    labels: Mapping[str, str]
    snapshot: str | None = None
    image: str | None = None
    target: str | None = None
    user: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    gpu: int | None = None
    block_network: bool = False
    allowed_networks: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    auto_stop_minutes: int = 60
    auto_archive_minutes: int = 1440
    auto_delete_minutes: int = 4320
    ttl_minutes: int = 10080


class Sandboxes(Protocol):
    """Daytona's control plane, reduced to what a pass may do."""

    async def organization(self) -> str:
        """Return the id of the organisation that the key opens."""
        ...

    async def get(self, id_or_name: str) -> SandboxView:
        """Return one sandbox by id or name; the answer is evidence."""
        ...

    async def list_owned(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        """Return all pages of the sandboxes with these labels; a hint, never evidence."""
        ...

    async def create(self, order: SandboxOrder) -> SandboxView:
        """Ask for a new sandbox; the unique name is the lock."""
        ...

    async def start(self, sandbox_id: str) -> None:
        """Ask a stopped or archived sandbox to start."""
        ...

    async def stop(self, sandbox_id: str) -> None:
        """Ask a running sandbox to stop."""
        ...

    async def recover(self, sandbox_id: str) -> None:
        """Ask Daytona to repair a recoverable sandbox."""
        ...

    async def delete(self, sandbox_id: str) -> None:
        """Ask for the deletion of a sandbox; its name is free when this returns."""
        ...

    async def archive(self, sandbox_id: str) -> None:
        """Ask Daytona to archive a stopped sandbox."""
        ...

    async def relabel(self, sandbox_id: str, labels: Mapping[str, str]) -> None:
        """Replace all labels of a sandbox."""
        ...

    async def renew(self, sandbox_id: str) -> None:
        """Tell Daytona that a sandbox is still needed: its auto-stop counts from now."""
        ...
