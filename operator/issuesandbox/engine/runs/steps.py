"""The errands of a run, as its movers ask for them. Each is safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from issuesandbox.api.status import Comment
from issuesandbox.api.status_run import PullRequest, SavedWork
from issuesandbox.domain.runs.chapters import Ending, Harvest, Preparation
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.resources import ResourceKey


@dataclass(frozen=True, slots=True)
class Signs:
    """Signs of life of an agent that runs."""

    started_at: datetime
    last_output_at: datetime


@dataclass(frozen=True, slots=True)
class Collected:
    """What an agent left, and for which generation of the resource that was collected."""

    found: Harvest | Ending
    generation: int | None


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """The end of an agent; `ending` is set where the run ends with it."""

    exit_code: int | None
    words: str
    ending: Ending | None = None
    sure: bool = True
    """Nothing of the agent runs any more."""
    session_id: str | None = None
    """The agent's session, where it named one."""
    collected: Collected | None = None
    """What it left, where collecting that took only a moment."""


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a push."""

    ending: Ending | None
    """None: the branch is pushed, and the pull request is still to come."""
    pushed: bool = False
    pull: PullRequest | None = None
    saved: SavedWork | None = None
    setback: CallError | None = None
    """Why there is no pull request yet."""


@dataclass(frozen=True, slots=True)
class Rescued:
    """What was saved of a run that ended badly."""

    harvest: Harvest | None = None
    """None if the status has it already."""
    saved: SavedWork | None = None
    failure: CallError | None = None
    """Why work that was to be saved is not."""


class Steps(Protocol):
    """What can be done for a run, outside."""

    def scout(self, assignment: Assignment) -> None:
        """Find out what the run needs to know before its sandbox is there; it has no run yet."""
        ...

    def approach(self, assignment: Assignment) -> None:
        """Begin to prepare, as far as that disturbs nobody, while the run is written down."""
        ...

    def recall(self, key: ResourceKey) -> None:
        """Drop what was found out ahead of a run that this replica will not begin."""
        ...

    async def prepare(self, assignment: Assignment) -> Preparation | Ending:
        """Make the sandbox ready for the agent."""
        ...

    async def follow(self, assignment: Assignment) -> AgentEnd:
        """Start the agent unless it was started, and follow it to its end."""
        ...

    def signs(self, key: ResourceKey) -> Signs | None:
        """Return the signs of life of the agent that is followed."""
        ...

    def heard(self, assignment: Assignment) -> Harvest | None:
        """Return what is known of an agent that nobody can ask any more."""
        ...

    async def kill(self, assignment: Assignment) -> None:
        """Kill the agent and all that descends from it."""
        ...

    async def collect(self, assignment: Assignment) -> Harvest | Ending:
        """Make one commit of what the agent left, and have it ready for the push."""
        ...

    async def publish(self, assignment: Assignment) -> Published:
        """Send the push that was decided, then open or update the pull request."""
        ...

    async def rescue(self, assignment: Assignment) -> Rescued:
        """Kill what is left of the agent and save its work."""
        ...

    async def salvage(self, assignment: Assignment) -> Rescued:
        """Save the work of a run that goes on elsewhere, if its sandbox still answers."""
        ...

    async def tell(self, assignment: Assignment) -> Comment | None:
        """Write the one comment on the issue."""
        ...

    def digest(self, assignment: Assignment) -> str:
        """Return the fingerprint of what the comment should say; empty if there is none."""
        ...

    def forget(self, key: ResourceKey) -> None:
        """Drop what is remembered of a resource."""
        ...
