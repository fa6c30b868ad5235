"""Which resources nobody can have served before: they were made while this replica was in charge.

Whoever makes a resource may announce its first sandbox (ADR 14). For a newborn the create then
needs no write of its own; of any other one somebody may have asked for it already, so the pass
looks first. Decides nothing else, and never counts a resource twice, whatever its status says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from issuesandbox.api.names import ANNOTATION_ANNOUNCED

InChargeSince = Callable[[str], datetime | None]


def _never(_: str) -> None:
    return None


class Newborns:
    """The announced resources that this replica saw come and has not served yet."""

    def __init__(
        self, in_charge_since: InChargeSince = _never, margin: timedelta = timedelta(0)
    ) -> None:
        self._in_charge_since = in_charge_since
        self._margin = margin
        self._uids: set[str] = set()

    def hear(self, body: Mapping[str, Any]) -> None:
        """Take note of a resource that was just made."""
        metadata = body["metadata"]
        if ANNOTATION_ANNOUNCED not in metadata.get("annotations", ()):
            return
        made_at = datetime.fromisoformat(metadata["creationTimestamp"])
        if self._is_ours(body["spec"]["issue"]["repository"], made_at):
            self._uids.add(metadata["uid"])

    def knows(self, uid: str, repository: str, made_at: datetime | None) -> bool:
        """Tell whether nobody can have served a resource yet, as of now."""
        return uid in self._uids and made_at is not None and self._is_ours(repository, made_at)

    def forget(self, uid: str) -> None:
        """Take note that a resource is being served, or gone."""
        self._uids.discard(uid)

    def _is_ours(self, repository: str, made_at: datetime) -> bool:
        # The margin is for clocks: one is the API server's, which tells whole seconds.
        since = self._in_charge_since(repository)
        return since is not None and made_at >= since + self._margin
