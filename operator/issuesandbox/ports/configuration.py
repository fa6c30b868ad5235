"""Where the operator's settings are stored in the cluster, and what it says about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from issuesandbox.ports.resources import EventNote


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in the cluster: settings by name, and why everything is frozen, if it is."""

    settings: Mapping[str, str] = field(default_factory=dict)
    frozen: str | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the operator thinks of the stored settings."""

    valid: bool
    reason: str
    message: str
    since: str
    accepted: Mapping[str, str]


class Configuration(Protocol):
    """Where settings are stored, and where the operator says what it thinks of them."""

    async def read(self) -> Stored:
        """Return what is stored now."""
        ...

    async def follow(
        self, settings: Callable[[Mapping[str, str]], None], freeze: Callable[[str | None], None]
    ) -> None:
        """Tell, until cancelled, what is stored: at first, and whenever it changes.

        Settings and freeze are told apart: trouble with one never hides the other.
        """
        ...

    async def accepted(self) -> Mapping[str, str]:
        """Return the settings that were last found good."""
        ...

    async def report(self, opinion: Opinion) -> None:
        """Store the operator's opinion."""
        ...

    async def note(self, event: EventNote) -> None:
        """Post an Event about the settings."""
        ...
