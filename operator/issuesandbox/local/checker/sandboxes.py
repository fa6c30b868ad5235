"""The lives of sandboxes, from their first state to their last.

Knows what *live* means: any state but destroying, destroyed or hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from issuesandbox.api.names import (
    LABEL_INSTALLATION,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_UID,
)
from issuesandbox.local.checker.evidence import Evidence, Moment
from issuesandbox.local.checker.journals import Call, StateChange

ENDED = frozenset({"destroying", "destroyed", "hidden"})


@dataclass(frozen=True)
class Life:
    """Everything that happened to one sandbox."""

    id: str
    changes: tuple[StateChange, ...]

    @property
    def birth(self) -> StateChange:
        """Return its first change."""
        return self.changes[0]

    @property
    def was_planted(self) -> bool:
        """Tell whether the test put it there; then its birth is nobody's fault."""
        return self.birth.cause == "admin"

    def is_live_at(self, moment: Moment) -> bool:
        """Tell whether it held resources at a moment."""
        before = [change for change in self.changes if not is_later(change, moment)]
        return bool(before) and before[-1].after not in ENDED


def is_later(entry: StateChange | Call, moment: Moment) -> bool:
    """Tell whether something at Daytona surely came after a moment."""
    return entry.at > moment.at if moment.daytona is None else entry.seq > moment.daytona


def lives(evidence: Evidence) -> list[Life]:
    """Return all sandboxes in the order of their birth."""
    found: dict[str, list[StateChange]] = {}
    for change in evidence.daytona.states:
        found.setdefault(change.sandbox, []).append(change)
    return [Life(sandbox, tuple(changes)) for sandbox, changes in found.items()]


def by_resource(evidence: Evidence) -> dict[str, list[Life]]:
    """Return the installation's sandboxes by the uid of each resource that ever owned them."""
    found: dict[str, list[Life]] = {}
    for life in lives(evidence):
        owned = [change.labels for change in life.changes if is_own(evidence, change.labels)]
        for uid in {labels.get(LABEL_UID, "") for labels in owned}:
            found.setdefault(uid, []).append(life)
    return found


def is_own(evidence: Evidence, labels: Mapping[str, str]) -> bool:
    """Tell whether labels show a sandbox of the installation that is judged."""
    return labels.get(LABEL_INSTALLATION) == evidence.installation


def issue_of(labels: Mapping[str, str]) -> str:
    """Return the issue that labels name, as people write it."""
    return f"{labels.get(LABEL_REPOSITORY, '?').lower()}#{labels.get(LABEL_NUMBER, '?')}"
