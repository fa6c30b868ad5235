"""What Daytona tells by itself about its sandboxes: hearsay that says where to look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StateEvent:
    """A sandbox is said to be in another state now."""

    sandbox_id: str
    state: str | None
    labels: Mapping[str, str]


class StateEvents(Protocol):
    """A feed without memory: what happens while nobody listens is never told."""

    async def run(self, hear: Callable[[StateEvent], None]) -> None:
        """Listen until cancelled; a feed that is down is tried again and raises nothing."""
        ...
