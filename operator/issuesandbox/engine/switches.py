"""What people have switched: the freeze, and the feature flags with what they mean for a run.

Remembers the runs that this process began: without stored stops nobody else can stop them. That
memory is all there is of the old behaviour, and it dies with the process, as it did then.
"""

from __future__ import annotations

from collections.abc import Callable

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.flags import Flags, FlagSet, is_deaf


class Switches:
    """One for each process; asked anew at every pass, so a flag that is switched counts at once."""

    def __init__(
        self, flags: Flags | None = None, is_frozen: Callable[[], bool] = lambda: False
    ) -> None:
        self.is_frozen = is_frozen
        self._flags = flags or Flags()
        self._begun: dict[str, str] = {}

    def adopt(self, flags: Flags) -> bool:
        """Go by other flags from now on; tell whether they differ."""
        changed, self._flags = flags != self._flags, flags
        return changed

    def flags_of(self, resource: IssueSandbox) -> FlagSet:
        """Return what is on for a resource."""
        return self._flags.of(resource)

    def is_deaf(self, resource: IssueSandbox) -> bool:
        """Tell whether the present run of a resource hears no stop."""
        run = resource.status.run
        begun_here = run is not None and self._begun.get(resource.metadata.uid or "") == run.id
        return is_deaf(self.flags_of(resource), resource, begun_here=begun_here)

    def began(self, uid: str, run_id: str) -> None:
        """Remember that this process began the present run of a resource."""
        self._begun[uid] = run_id

    def forget(self, uid: str) -> None:
        """Forget a resource that is gone."""
        self._begun.pop(uid, None)
