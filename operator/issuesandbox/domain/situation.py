"""What one decision looks at, and the words it is told in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from issuesandbox.api.status import Phase
from issuesandbox.api.status_sandbox import Intent, IntentKind
from issuesandbox.domain.model import Action, Desired, Observed, Plan, Want
from issuesandbox.domain.sandbox import Present, SandboxView
from issuesandbox.domain.states import Sight
from issuesandbox.domain.timings import Timings

# So many looks are worth an ordinary boot; then one each time it has lasted by such a part longer.
_LOOKS = 15


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything one decision looks at."""

    desired: Desired
    observed: Observed
    now: datetime
    timings: Timings
    sight: Sight

    @property
    def sandbox(self) -> SandboxView | None:
        """Return the sandbox, if Daytona showed one."""
        seen = self.observed.sandbox
        return seen.sandbox if isinstance(seen, Present) else None

    @property
    def is_known(self) -> bool:
        """Tell whether the state was seen before: what is new has not lasted, whatever was."""
        seen, memory = self.sandbox, self.desired.memory
        return seen is None or (seen.id, seen.state) == (memory.sandbox_id, memory.state)

    @property
    def row(self) -> str:
        """Return the id of the table's cell, as tests name it."""
        return f"{self.sight.name}/{self.desired.want.name}"


def booting(situation: Situation, reason: str, message: str, actions: tuple[Action, ...]) -> Plan:
    """Return a plan on the way to a running sandbox."""
    return Plan(
        row=situation.row,
        phase=Phase.BOOTING,
        reason=reason,
        message=message,
        actions=actions,
        next_check=situation.timings.settle_check,
    )


def new_intent(
    situation: Situation, kind: IntentKind, name: str, attempt: int, reason: str | None = None
) -> Intent:
    """Return the announcement of a step."""
    sandbox = situation.sandbox
    return Intent(
        kind=kind,
        name=name,
        attempt=attempt,
        at=situation.now,
        sandbox_id=sandbox.id if sandbox is not None else None,
        reason=reason,
    )


def next_deletion(situation: Situation) -> timedelta:
    """Return how long to wait until a deletion without effect is asked for again.

    As long again as it has taken so far: that doubles, without anything to count.
    """
    timings, desired = situation.timings, situation.desired
    intent = desired.memory.intent
    announced = intent.at if intent is not None and intent.kind is IntentKind.DELETE else None
    began = desired.deleting_since or announced or situation.now
    return growing(situation.now - began, timings.deletion_retry, timings.deletion_pause)


def growing(taken: timedelta, shortest: timedelta, longest: timedelta) -> timedelta:
    """Return how long to wait for what has taken so long already: as long again."""
    return min(max(taken, shortest), longest)


def next_look(situation: Situation) -> timedelta:
    """Return how soon a transition is looked at again: all the time at first, then more seldom.

    Ticks and events tell of its end as well.
    """
    memory, timings, now = situation.desired.memory, situation.timings, situation.now
    since = (memory.state_since or now) if situation.is_known else now
    if memory.intent is not None:
        since = max(since, memory.intent.at)
    return growing((now - since) / _LOOKS, timings.settle_check, timings.fleet_tick)


def landing_left(situation: Situation) -> timedelta:
    """Return how long a create that was sent may still land."""
    if situation.desired.last_create_at is None:
        return timedelta(0)
    return situation.timings.landing_horizon - (situation.observed.create_age or timedelta(0))


NOTHING_RUNS = frozenset(
    {
        Sight.STOPPED,
        Sight.ARCHIVED,
        Sight.NEVER,
        Sight.GONE,
        Sight.DESTROYING,
        Sight.LINGERING,
        Sight.BROKEN,
        Sight.RECOVERABLE,
        Sight.BUILD_FAILED,
        # The name is held by others; of ours there is nothing.
        Sight.FOREIGN,
        Sight.LEFTOVER,
        Sight.TWIN,
    }
)


def quiet_phase(situation: Situation) -> Phase:
    """Return the phase of a resource for which nothing is done right now."""
    if situation.desired.deleting:
        return Phase.DELETING
    if situation.desired.want is Want.STOPPED:
        return Phase.STOPPED if situation.sight in NOTHING_RUNS else Phase.STOPPING
    if situation.sight in (Sight.NEVER, Sight.IN_FLIGHT):
        return Phase.PENDING
    return Phase.IDLE if situation.sight is Sight.RUNNING else Phase.BOOTING


def state_words(situation: Situation) -> str:
    """Return the state of the sandbox in words."""
    sandbox = situation.sandbox
    return sandbox.state or "without a state" if sandbox is not None else "absent"
