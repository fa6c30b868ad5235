"""Whether Daytona's key opens the organisation that a resource's sandbox is in, or belongs in.

Another organisation's key answers "not found" for whatever is ours, and what is made with it is
out of sight once the right key is back. Where a resource has no sandbox yet, those of the
others tell where ours are. They are counted body by body, so that a create need not look for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from issuesandbox.api.names import ANNOTATION_FORCE_FINALIZE
from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import CallError, Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes


class WrongOrganization(CallError):
    """The key belongs to another organisation, so its "not found" proves nothing."""


class Homes:
    """In which organisations the resources have their sandboxes."""

    def __init__(self) -> None:
        self._home_of: dict[str, str] = {}
        self._sizes: Counter[str] = Counter()

    def __bool__(self) -> bool:
        """Tell whether any is known."""
        return bool(self._home_of)

    def put(self, key: ResourceKey, body: Mapping[str, Any]) -> None:
        """Take note of a resource that is new or has changed."""
        sandbox = (body.get("status") or {}).get("sandbox") or {}
        home = sandbox.get("organizationId") if sandbox.get("id") else None
        if home != self._home_of.get(key.uid):
            self.drop(key)
            if home:
                self._home_of[key.uid] = home
                self._sizes[home] += 1

    def drop(self, key: ResourceKey) -> None:
        """Forget a resource that is gone."""
        home = self._home_of.pop(key.uid, None)
        if home is None:
            return
        self._sizes[home] -= 1
        if not self._sizes[home]:
            del self._sizes[home]

    def instead_of(self, organization: str) -> str | None:
        """Return where the sandboxes are if there are some, and none in this organisation."""
        if not self._sizes or organization in self._sizes:
            return None
        return max(self._sizes, key=self._sizes.__getitem__)


class KeyCheck:
    """Knows which organisation the key opens; asks at most once in a while."""

    def __init__(self, sandboxes: Sandboxes, homes: Homes, clock: Clock, timings: Timings) -> None:
        self._sandboxes = sandboxes
        self._homes = homes
        self._clock = clock
        self._lifetime = timings.organization_cache.total_seconds()
        self._opens: tuple[float, str] | None = None
        self.keys_used = 0

    def changed(self) -> None:
        """Start anew: every further call is made with another key."""
        self.keys_used += 1
        self._opens = None

    def same(self, keys_used: int) -> None:
        """Raise if the key was changed since there were so many."""
        if keys_used != self.keys_used:
            raise Unavailable("Daytona's key was changed meanwhile; looking again with the new one")

    async def check(self, known: str | None) -> None:
        """Raise unless the key opens the organisation that is known of a resource's sandbox.

        If none is known, unless it opens one in which others have theirs.
        """
        if known is None and not self._homes:
            return
        opened = await self._opened()
        if known is None:
            home = self._homes.instead_of(opened)
            if home is not None:
                raise WrongOrganization(_elsewhere(home, opened))
        elif opened != known:
            raise WrongOrganization(
                f"the sandbox is in Daytona organisation {known}, but the key opens {opened}; "
                "restore the key of that organisation"
            )

    async def _opened(self) -> str:
        now = self._clock.monotonic()
        if self._opens is None or now - self._opens[0] >= self._lifetime:
            keys_used = self.keys_used
            opened = await self._sandboxes.organization()
            self.same(keys_used)
            self._opens = (now, opened)
        return self._opens[1]


def _elsewhere(home: str, opened: str) -> str:
    return (
        f"all other sandboxes are in Daytona organisation {home}, but the key opens {opened}, so "
        f"none is made; put the key of {home} back. To move to {opened} on purpose, delete the "
        f"resources whose sandbox is in {home} first, where they do not go with the annotation "
        f"{ANNOTATION_FORCE_FINALIZE}=true"
    )
