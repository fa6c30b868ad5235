"""Retired sandboxes are followed until Daytona confirms that they are gone.

A deletion that was accepted may still fail: without this a replaced sandbox could live on
unseen. One look per pass, at each in turn. What this process remembers is only when it looked
and asked, so that it does neither too often.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from issuesandbox.api.status_sandbox import Retired
from issuesandbox.clock import Clock
from issuesandbox.domain.model import ActionKind, Desired, Holder, Observed
from issuesandbox.domain.naming import Ownership, attempt_of
from issuesandbox.domain.sandbox import Present, SandboxId, SandboxView
from issuesandbox.domain.situation import growing
from issuesandbox.domain.states import is_live
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.action_log import Deed, log_action, seen_as
from issuesandbox.engine.reading import Reading
from issuesandbox.ports.errors import CallError, NotFound
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes


@dataclass(frozen=True, slots=True)
class Followed:
    """What one look came to."""

    gone: SandboxId | None = None
    """A retired one that is confirmed gone."""
    asked: SandboxId | None = None
    """A retired one that lives and was asked to be deleted, for the first time."""
    duplicate: SandboxView | None = None
    """One that is not retired yet, though the resource has another that lives."""


@dataclass(slots=True)
class _Tries:
    looked_at: float = float("-inf")
    asked_at: float | None = None


class Retirement:
    """Follows the retired sandboxes of all resources."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        check_organization: Callable[[Desired], Awaitable[None]],
        check_charge: Callable[[Reading], None],
        clock: Clock,
        timings: Timings,
    ) -> None:
        self._sandboxes = sandboxes
        self._check_organization = check_organization
        """Raises unless a "not found" proves anything: another organisation's key sees nothing."""
        self._check_charge = check_charge
        """Raises unless this replica still acts for the resource."""
        self._clock = clock
        self._timings = timings
        self._tries: dict[ResourceKey, dict[str, _Tries]] = {}

    def forget(self, key: ResourceKey) -> None:
        """Drop what is remembered for a resource that is gone."""
        self._tries.pop(key, None)

    async def follow(self, key: ResourceKey, reading: Reading, observed: Observed) -> Followed:
        """Look at the one that was not looked at for longest; have it deleted if it lives."""
        seen = observed.sandbox
        held = seen.sandbox if isinstance(seen, Present) and _is_ours(observed) else None
        kept = {reading.desired.memory.sandbox_id, held.id if held is not None else None}
        status = reading.resource.status
        open_ones = [each for each in status.retired if each.gone_at is None]
        # What was found again under its name is not what was given up.
        open_ones = [each for each in open_ones if each.id not in kept]
        try:
            if open_ones:
                return await self._look(key, reading, open_ones)
            if held is not None and is_live(held) and not reading.desired.paused:
                return await self._compare(reading, held, observed)
        except CallError:
            pass  # nothing is proven; a later pass looks again
        return Followed()

    async def _look(self, key: ResourceKey, reading: Reading, retired: list[Retired]) -> Followed:
        known = self._tries.get(key, {})
        tries = self._tries[key] = {each.id: known.get(each.id, _Tries()) for each in retired}
        one = min(retired, key=lambda each: tries[each.id].looked_at)
        tries[one.id].looked_at = self._clock.monotonic()
        sandbox_id = SandboxId(one.id)
        try:
            sandbox = await self._sandboxes.get(sandbox_id)
            ours = reading.desired.owns(sandbox, one.id, one.name)
            if is_live(sandbox) and ours and self._is_due(one, tries[one.id]):
                return await self._delete(key, reading, sandbox, tries[one.id])
        except NotFound:
            await self._check_organization(reading.desired)
            return Followed(gone=sandbox_id)
        return Followed(gone=sandbox_id if sandbox.state == "destroyed" else None)

    def _is_due(self, retired: Retired, tries: _Tries) -> bool:
        if tries.asked_at is None:
            return True
        asked_for = timedelta(seconds=self._clock.monotonic() - tries.asked_at)
        taken = self._clock.now() - asked_for - retired.at
        pause = growing(taken, self._timings.deletion_retry, self._timings.deletion_pause)
        return asked_for >= pause

    async def _delete(
        self, key: ResourceKey, reading: Reading, sandbox: SandboxView, tries: _Tries
    ) -> Followed:
        self._check_charge(reading)
        first, tries.asked_at = tries.asked_at is None, self._clock.monotonic()
        attempt, seen = attempt_of(sandbox.labels, None), seen_as(Present(sandbox))
        deed = Deed(ActionKind.DELETE.value, seen, "Retired", sandbox.id, attempt)
        log_action(key, reading, deed)
        await self._sandboxes.delete(sandbox.id)
        return Followed(asked=sandbox.id if first else None)

    async def _compare(self, reading: Reading, held: SandboxView, observed: Observed) -> Followed:
        """Return what else lives of this resource, beside the sandbox that it has."""
        for stray in observed.strays:
            try:
                sandbox = await self._sandboxes.get(stray)
            except NotFound:
                continue
            ours = reading.desired.identity.ownership(sandbox.labels) is Ownership.OURS
            if is_live(sandbox) and ours and sandbox.id != held.id:
                return Followed(duplicate=sandbox)
        return Followed()


def _is_ours(observed: Observed) -> bool:
    return observed.holder is Holder.OURS
