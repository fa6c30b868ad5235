"""The outside of a run, and the right to change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.books import Books
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.ports.errors import Unavailable
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
    books: Books = field(default_factory=lambda: Books(Timings()))

    def check_charge(self, assignment: Assignment) -> None:
        """Raise unless this replica still acts for the resource; asked right before a change."""
        if not self.may_act_for(assignment.repository):
            raise Unavailable("another replica acts for this resource now")
