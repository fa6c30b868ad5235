"""The outside of a run, and the right to change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.books import Books
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.ports.errors import NotFound, Unavailable
from issuesandbox.ports.github import GitHub
from issuesandbox.ports.ledgers import Ledgers
from issuesandbox.ports.remote import GitRemote
from issuesandbox.ports.resources import ResourceKey, Resources
from issuesandbox.ports.toolbox import Toolbox


@dataclass(frozen=True, slots=True)
class Outside:
    """Everything a run talks to."""

    toolbox: Toolbox
    github: GitHub | None
    """None where the operator has no credentials for GitHub."""
    remote: GitRemote
    ledgers: Ledgers
    resources: Resources
    clock: Clock
    timings: Timings
    namespace: str
    """The operator's own: the model key's Secret lies there unless a resource names one."""
    may_act_for: Callable[[str], bool] = lambda _: True
    wake: Callable[[ResourceKey], None] = lambda _: None
    """Asks for a pass over a resource, because an errand has news for it."""
    is_frozen: Callable[[], bool] = lambda: False
    """Whether everything is paused."""
    books: Books = field(default_factory=lambda: Books(Timings()))

    def check_charge(self, assignment: Assignment) -> None:
        """Raise unless this replica still acts for the resource; asked right before a change."""
        if not self.may_act_for(assignment.repository):
            raise Unavailable("another replica acts for this resource now")

    async def fresh(self, assignment: Assignment) -> IssueSandbox | None:
        """Return the resource as it is at this very moment; None if it is gone."""
        try:
            body = await self.resources.get(assignment.key)
        except NotFound:
            return None
        found = IssueSandbox.model_validate(body)
        return found if found.metadata.uid == assignment.key.uid else None
