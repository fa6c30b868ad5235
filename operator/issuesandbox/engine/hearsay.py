"""What is said about sandboxes brings a pass forward; it is never evidence.

Hears of all sandboxes of an organisation, keeps what concerns our own, and turns a flood into at
most one pass per resource and gap. What is not heard is found by the fleet view at its next tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from issuesandbox.api.names import LABEL_UID
from issuesandbox.domain.naming import installation_labels
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.cache import ResourceCache
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.state_events import StateEvent

# On the way up, and on the way out, only the end is news: it is told as well.
_UNDER_WAY = frozenset(
    {
        "pending_build",
        "building_snapshot",
        "pulling_snapshot",
        "creating",
        "restoring",
        "starting",
        "resuming",
        "destroying",
    }
)


class Hearsay:
    """Gathers what was heard and wakes the resources to which it is news."""

    def __init__(
        self,
        installation: str,
        timings: Timings,
        cache: ResourceCache,
        find: Callable[[str], ResourceKey | None],
        wake: Callable[[ResourceKey], None],
    ) -> None:
        self._own = installation_labels(installation).items()
        self._gap = timings.event_gap.total_seconds()
        self._cache = cache
        self._find = find
        self._wake = wake
        self._latest: dict[ResourceKey, StateEvent] = {}
        self._heard = asyncio.Event()

    def hear(self, event: StateEvent) -> None:
        """Take note of an event; of several about one resource only the last counts."""
        if not self._own <= event.labels.items():
            return
        key = self._find(event.labels.get(LABEL_UID, ""))
        if key is not None:
            self._latest[key] = event
            self._heard.set()

    async def run(self) -> None:
        """Wake those to whom something is news, until cancelled."""
        before: dict[ResourceKey, StateEvent] = {}
        while True:
            await self._heard.wait()
            self._heard.clear()
            latest, self._latest = self._latest, {}
            for key, event in latest.items():
                # Daytona says some things twice.
                if event != before.get(key) and self._is_news(key, event):
                    self._wake(key)
            before = latest
            await asyncio.sleep(self._gap)

    def _is_news(self, key: ResourceKey, event: StateEvent) -> bool:
        """Tell whether the status does not say so yet: most events echo our own actions."""
        if event.state in _UNDER_WAY:
            return False
        return self._cache.sandbox(key) != (event.sandbox_id, event.state)
