"""Until when a resource waits: the operator's own rules, asked with what is written down.

Only tells; what the operator will see by then may be something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from issuesandbox.api.conditions import Reason
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.domain.cleanup import CleanupPolicy, effective
from issuesandbox.domain.flags import Flag, Flags, is_deaf, parse_share, place_of, unmet
from issuesandbox.domain.model import Memory, Want
from issuesandbox.domain.states import sight_of_state
from issuesandbox.domain.table import TABLE
from issuesandbox.domain.timings import Timings
from issuesandbox.domain.waiting import end_of_wait
from issuesandbox.domain.wanted import Wanted, facts_of, wanted
from issuesandbox.engine.reading import memory_of
from issuesandbox.entry.plugin.cluster import Body
from issuesandbox.entry.plugin.shape import conditions_of, span
from issuesandbox.entry.setting_texts import timings_value

# What may pass by itself and is asked for often; other refusals need somebody to correct something.
_PASSING = {
    Reason.DAYTONA_UNREACHABLE,
    Reason.UNAUTHORIZED,
    Reason.WRONG_ORGANIZATION,
    Reason.THROTTLED,
    "QuotaExceeded",
    "NoCapacity",
    "OrganizationSuspended",
    "Stuck",
}

_HEARING = (Flag.DB_BACKED_STOP, Flag.CANCELLATION_CHECKS)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the stored settings say, as far as the caller may read them."""

    timings: Timings
    flags: Flags

    @classmethod
    def of(cls, settings: Mapping[str, str] | None) -> Rules:
        """Read the settings; what the operator refuses does not count here either."""
        stored = settings or {}
        try:
            timings = timings_value(stored.get("ISSUESANDBOX_TIMINGS", "{}"))
        except ValueError:
            timings = None
        flags = Flags({flag: _share(stored, flag) for flag in Flag})
        return cls(timings if isinstance(timings, Timings) else Timings(), flags)

    def flags_off(self, resource: IssueSandbox) -> list[str]:
        """Return the flags that are off for the resource, and by whose word."""
        issue, own = resource.spec.issue, resource.spec.flags
        place, off = place_of(issue.repository, issue.number), []
        for flag in Flag:
            said = getattr(own, flag.name.lower()) if own is not None else None
            if said is False:
                off.append(f"{flag} (by spec.flags)")
            elif said is None and place >= (share := self.flags.percent[flag]):
                off.append(f"{flag} (by the settings: {share}%)")
        return off

    def deafness(self, body: Body) -> str | None:
        """Return why the present run of a resource may hear no stop, or None if it hears one."""
        try:
            resource = IssueSandbox.model_validate(body)
        except ValidationError:
            return None  # of another version than this program
        if not is_deaf(self.flags.of(resource), resource, begun_here=False):
            return None
        off = [each for each in self.flags_off(resource) if each.startswith(_HEARING)]
        return f"its run may hear it only when its agent has ended: {', '.join(off)} is off"


def _share(settings: Mapping[str, str], flag: Flag) -> int:
    try:
        return parse_share(settings.get(flag, "true"))
    except ValueError:
        return 100


def waits(body: Body, rules: Rules, now: datetime) -> Iterator[str]:
    """Yield what happens by time alone, and when."""
    try:
        resource = IssueSandbox.model_validate(body)
    except ValidationError:
        return  # of another version than this program
    off = rules.flags_off(resource)
    if off:
        yield f"Switched off for this resource: {', '.join(off)}."
    if resource.spec.flags is not None:
        yield from (f"{line}." for line in unmet(rules.flags.of(resource)))
    yield from _asks_again(body, rules.timings)
    memory = memory_of(resource)
    admitted = conditions_of(body).get("Admitted", {}).get("status") != "False"
    facts = facts_of(resource, memory, _policy(resource), rules.timings, admitted=admitted)
    wish = wanted(facts, rules.timings, now)
    sandbox = resource.spec.sandbox
    start_limit = sandbox.start_timeout if sandbox is not None else None
    yield from _limit(memory, wish, start_limit, rules.timings, now)
    yield from _landing(memory, rules.timings, now)
    if wish.until is None or wish.until <= now:
        return
    if wish.want is Want.REST and memory.state == "started":
        yield f"If nobody uses its sandbox, it is stopped at {_at(wish.until, now)}."
    else:
        yield f"{wish.message} That holds until {_at(wish.until, now)}."


def _policy(resource: IssueSandbox) -> CleanupPolicy:
    """Return what becomes of the sandbox: the operator writes down what its settings fill in."""
    run = resource.status.run
    written = run.effective.cleanup if run is not None and run.effective is not None else None
    return effective(resource.spec.cleanup, *([written] if written is not None else ()))


def _asks_again(body: Body, timings: Timings) -> Iterator[str]:
    synced = conditions_of(body).get("Synced", {})
    if synced.get("status") != "False" or synced.get("reason") == Reason.RECONCILE_PAUSED:
        return
    passing = synced.get("reason") in _PASSING
    gap = timings.unknown_check if passing else timings.refused_check
    yield f"Daytona is asked again every {span(gap)}; nothing is changed until then."


def _limit(
    memory: Memory, wish: Wanted, start_limit: timedelta | None, timings: Timings, now: datetime
) -> Iterator[str]:
    if memory.sandbox_id is None:
        return
    cell = TABLE[sight_of_state(memory.state)].cell(wish.want)
    end = end_of_wait(cell, memory, start_limit, timings)
    if end is not None:
        state = memory.state or "without a state"
        yield (
            f"The sandbox may be {state} until {_at(end, now)} ({cell.limit}); "
            f"after that: {cell.late}."
        )


def _landing(memory: Memory, timings: Timings, now: datetime) -> Iterator[str]:
    intent = memory.open_create
    if intent is None:
        return
    end = intent.at + timings.create_timeout + timings.landing_margin
    if end > now:
        yield f"Its create may still take effect until {_at(end, now)}."


def _at(moment: datetime, now: datetime) -> str:
    text = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{text}, in {span(moment - now)}" if moment > now else f"{text}, which is over"
