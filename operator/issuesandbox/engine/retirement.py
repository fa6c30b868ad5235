"""Retired sandboxes are followed until Daytona confirms that they are gone.

A deletion that was accepted may still fail: without this a replaced sandbox could live on
unseen. One look per pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from issuesandbox.domain.model import Desired
from issuesandbox.domain.naming import Ownership
from issuesandbox.domain.sandbox import SandboxId
from issuesandbox.domain.states import is_live
from issuesandbox.engine.reading import Reading
from issuesandbox.ports.errors import CallError, NotFound
from issuesandbox.ports.sandboxes import Sandboxes


@dataclass(frozen=True, slots=True)
class Retirement:
    """Follows the retired sandboxes of all resources."""

    sandboxes: Sandboxes
    check_organization: Callable[[Desired], Awaitable[None]]
    """Raises unless a "not found" proves anything: a key of another organisation sees nothing."""
    check_charge: Callable[[Reading], None]
    """Raises unless this replica still acts for the resource."""

    async def confirm_oldest(self, reading: Reading) -> SandboxId | None:
        """Look at the oldest unconfirmed one; return its id if it is gone, else have it deleted."""
        desired = reading.desired
        if not desired.memory.unconfirmed:
            return None
        oldest = desired.memory.unconfirmed[0]
        try:
            return oldest if await self._is_gone(oldest, reading) else None
        except CallError:
            return None  # nothing is proven; the next pass looks again

    async def _is_gone(self, retired: SandboxId, reading: Reading) -> bool:
        try:
            sandbox = await self.sandboxes.get(retired)
            ours = reading.desired.identity.ownership(sandbox.labels) is Ownership.OURS
            if is_live(sandbox) and ours:
                self.check_charge(reading)
                await self.sandboxes.delete(retired)
        except NotFound:
            await self.check_organization(reading.desired)
            return True
        return sandbox.state == "destroyed"
