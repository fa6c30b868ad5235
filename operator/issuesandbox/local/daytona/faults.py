"""The switches that make the service misbehave, each for one kind of call.

Decides when a fault strikes; what it then does is up to the place that asked. The same seed and
the same order of calls give the same strikes.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from http import HTTPStatus

import msgspec

from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.model import State

_STATUSES = tuple(status.value for status in HTTPStatus if status.value >= 400)
_BROKEN = ("error", "build_failed")


class Name(StrEnum):
    """Every way to misbehave."""

    LOST_ANSWER = "lost_answer"
    LATE_EFFECT = "late_effect"
    ROW_EXISTS_400 = "row_exists_400"
    STALE_LIST = "stale_list"
    FLAPPING_LIST = "flapping_list"
    FAILING_PAGE = "failing_page"
    POISON_ITEM = "poison_item"
    UNKNOWN_STATE = "unknown_state"
    STATE_UNKNOWN = "state_unknown"
    STATE_MISSING = "state_missing"
    KEPT_NAME = "kept_name"
    FAILED_DESTROY = "failed_destroy"
    STUCK_TRANSITION = "stuck_transition"
    TOOLBOX_DOWN = "toolbox_down"
    DAEMON_RESTART = "daemon_restart"
    SLOW = "slow"
    STATUS = "status"
    RESET = "reset"
    LOST_EVENT = "lost_event"


class FaultSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the administrator asks for; fields that a fault does not use are ignored."""

    fault: Name
    # A kind of call, with * and ? as wildcards: "sandbox.create", "toolbox.*", "*".
    kind: str = "*"
    # How often it strikes before it is used up; None is for ever.
    count: int | None = None
    probability: float = 1.0
    # Seconds. Of most faults: how long the answer is held back. Of `late_effect`: when it lands.
    # Of the two lists: how far they lag. Of `stuck_transition`: how long it lasts (for ever). Of
    # `lost_event`: it comes that late, instead of never.
    delay: float | None = None
    # Matching calls to let pass first.
    skip: int = 0
    # Only calls about the sandbox with this id or name, or of this organisation.
    sandbox: str | None = None
    organization: str | None = None
    # For `status` (default 503) and `failing_page` (500), and for what a caller gets instead of a
    # late effect (default: a cut connection).
    status: int | None = None
    message: str | None = None
    # For a status of 429, in seconds.
    retry_after: float = 1.0
    # For `failing_page`: which page, counted from 1.
    page: int = 2
    # For `unknown_state` and `row_exists_400`: the state shown or reached. For `stuck_transition`:
    # the step that lasts (the first).
    state: str | None = None
    # For `poison_item`: a bad language label, or a number of the wrong type.
    how: str = "language"
    # For `row_exists_400` and `failed_destroy`.
    reason: str | None = None
    recoverable: bool = False


@dataclass(slots=True)
class Fault:
    """A switch that is on."""

    id: str
    spec: FaultSpec
    left: int | None
    to_skip: int
    # When it was thrown.
    since: float
    struck: int = 0


class Faults:
    """All switches, in the order they were thrown."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a repeatable world, not a secret
        self._faults: dict[str, Fault] = {}
        self._made = 0

    def add(self, spec: FaultSpec, now: float) -> Fault:
        """Throw a switch."""
        if not 0 <= spec.probability <= 1:
            raise ApiError(400, "probability must be between 0 and 1")
        if spec.status is not None and spec.status not in _STATUSES:
            raise ApiError(400, f"status must be one of {', '.join(map(str, _STATUSES))}")
        if spec.fault is Name.ROW_EXISTS_400 and spec.state not in (None, *_BROKEN):
            raise ApiError(400, f"state must be one of {', '.join(_BROKEN)}")
        if spec.fault is Name.STUCK_TRANSITION and spec.state not in (None, *State):
            raise ApiError(400, f"state must be one of {', '.join(State)}")
        self._made += 1
        fault = Fault(f"fault-{self._made}", spec, spec.count, spec.skip, now)
        self._faults[fault.id] = fault
        return fault

    def remove(self, fault_id: str) -> None:
        """Take one switch back."""
        if self._faults.pop(fault_id, None) is None:
            raise ApiError(404, f"Fault {fault_id} not found")

    def clear(self) -> None:
        """Take all switches back."""
        self._faults.clear()

    def all(self) -> list[Fault]:
        """Return the switches that are on."""
        return list(self._faults.values())

    def has(self, names: Collection[Name]) -> bool:
        """Tell whether a switch of these names is on; uses nothing up."""
        return any(fault.spec.fault in names for fault in self._faults.values())

    def take(
        self,
        names: Collection[Name],
        kind: str,
        about: Collection[str | None],
        page: int | None = None,
    ) -> Fault | None:
        """Return the first fault of these names that strikes this call, and count the strike.

        `about` holds what the call is about: organisation, sandbox id and name. Faults of another
        page than the one given, if one is, do not strike.
        """
        for fault in list(self._faults.values()):
            if page is not None and fault.spec.page != page:
                continue
            if fault.spec.fault in names and self._strikes(fault, kind, about):
                fault.struck += 1
                if fault.left is not None:
                    fault.left -= 1
                    if fault.left <= 0:
                        del self._faults[fault.id]
                return fault
        return None

    def _strikes(self, fault: Fault, kind: str, about: Collection[str | None]) -> bool:
        spec = fault.spec
        if not fnmatchcase(kind, spec.kind):
            return False
        if spec.sandbox is not None and spec.sandbox not in about:
            return False
        if spec.organization is not None and spec.organization not in about:
            return False
        if fault.to_skip > 0:
            fault.to_skip -= 1
            return False
        return spec.probability >= 1 or self._random.random() < spec.probability
