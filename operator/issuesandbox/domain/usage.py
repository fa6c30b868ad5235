"""What a resource used up: seconds per state, the size of its sandbox, tokens and cost.

Sums that outlive the sandboxes they are about. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from issuesandbox.api.status import Status, Usage
from issuesandbox.api.status_run import TokenUsage
from issuesandbox.api.status_sandbox import StateSeconds

# The schema's limit on different states; Daytona has far fewer, but may name new ones.
MAX_STATES: Final = 32
_UNKNOWN: Final = "unknown"
_SECOND: Final = timedelta(seconds=1)
_COST_DIGITS: Final = Decimal("0.000001")
_MAX_COST: Final = Decimal(999_999_999)
_MAX_TOKENS: Final = 10**15


def booked(status: Status, now: datetime) -> Status:
    """Return the status with the time in the present state added up, and counted on from there.

    Due before another state is recorded, before the sandbox is forgotten, and before a deletion.
    """
    sandbox = status.sandbox
    if sandbox is None or sandbox.id is None or sandbox.state_since is None:
        return status
    spent = max(now - sandbox.state_since, timedelta(0)) // _SECOND
    if not spent:
        return status
    usage = status.usage or Usage()
    states = _added(usage.states or (), sandbox.state or _UNKNOWN, spent)
    return status.model_copy(
        update={
            "usage": usage.model_copy(update={"states": states}),
            "sandbox": sandbox.model_copy(
                update={"state_since": sandbox.state_since + spent * _SECOND}
            ),
        }
    )


def sized(
    usage: Usage | None,
    *,
    cpu: int | None = None,
    memory: int | None = None,
    disk: int | None = None,
    gpu: int | None = None,
) -> Usage:
    """Return the usage with the size of the sandbox, as far as Daytona said it."""
    said = {"cpu": cpu, "memory": memory, "disk": disk, "gpu": gpu}
    known = {name: value for name, value in said.items() if value is not None}
    return (usage or Usage()).model_copy(update=known)


def with_run(usage: Usage | None, run: TokenUsage) -> Usage:
    """Return the usage with what one run used; due once, when its outcome is written."""
    total = usage or Usage()
    return total.model_copy(
        update={
            "input_tokens": _sum(total.input_tokens, run.input_tokens),
            "output_tokens": _sum(total.output_tokens, run.output_tokens),
            "cost_usd": _cost(total.cost_usd, run.cost_usd),
        }
    )


def own_usage(told: TokenUsage, earlier: Iterable[str | None]) -> TokenUsage:
    """Return what a run used itself: an agent tells the cost of its whole session."""
    if told.cost_usd is None:
        return told
    before = sum((Decimal(each) for each in earlier if each is not None), Decimal(0))
    own = max(Decimal(told.cost_usd) - before, Decimal(0))
    return told.model_copy(update={"cost_usd": _shown(own)})


def _added(states: tuple[StateSeconds, ...], state: str, seconds: int) -> tuple[StateSeconds, ...]:
    totals = {each.state: each.seconds for each in states}
    if state not in totals and len(totals) >= MAX_STATES - 1:
        state = _UNKNOWN
    totals[state] = totals.get(state, 0) + seconds
    return tuple(StateSeconds(state=name, seconds=total) for name, total in totals.items())


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else min((total or 0) + more, _MAX_TOKENS)


def _cost(total: str | None, more: str | None) -> str | None:
    if more is None:
        return total
    # The schema gives an amount 16 characters.
    return _shown(min(Decimal(total or 0) + Decimal(more), _MAX_COST))


def _shown(cost: Decimal) -> str:
    return f"{cost.quantize(_COST_DIGITS).normalize():f}"
