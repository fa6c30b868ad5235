"""The way of a call from an operator to a service, and all that can happen to it there.

Every call that a fake port makes goes through a `Line`. A test decides the fate of some calls;
all others arrive. Passes are coroutines that the test drives by hand (`Drive`), so that
one can hang in the middle of a call while the rest of the world goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from tests.fakes.clock import FakeTime

from issuesandbox.ports.errors import (
    Busy,
    CallError,
    Conflict,
    Denied,
    Throttled,
    Unavailable,
)

Answer = TypeVar("Answer")


READS = frozenset({"get", "list", "organization", "read"})


class Fate(Enum):
    """What happens to one call."""

    ARRIVES = "it takes effect and is answered"
    REQUEST_LOST = "it never arrives; the caller gets no answer"
    ANSWER_LOST = "it takes effect; the caller gets no answer"
    LANDS_SOON = "the caller gets no answer; it takes effect seconds later"
    LANDS_LATE = "the caller gets no answer; it takes effect as late as one can"
    SLOW_REQUEST = "the pass hangs before the effect"
    SLOW_ANSWER = "the pass hangs after the effect"
    FAILS = "the service answers 503"
    THROTTLED = "the service answers 429"
    DENIED = "the service answers 403"
    REFUSED = "the service answers 409: Daytona is busy, Kubernetes has a newer version"
    HALF_DONE = "a create answers 400 though the sandbox exists, broken"
    DIES_BEFORE = "the operator dies before the call is sent"
    DIES_AFTER = "the operator dies after the effect, before the answer"
    DIES_AND_LANDS = "the operator dies with the call on its way; it takes effect later"


class Service(Enum):
    """Who is called."""

    DAYTONA = "daytona"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True)
class Call:
    """One call that an operator made."""

    at: float
    service: Service
    verb: str
    target: str
    limit: float
    """How many seconds the caller waits for the answer."""
    uid: str = ""
    """The resource it is about, where the fake can tell."""

    @property
    def reads(self) -> bool:
        """Tell whether the call changes nothing."""
        return self.verb in READS

    def __str__(self) -> str:
        return f"{self.service.value} {self.verb} {self.target}"


class Killed(BaseException):
    """The operator's process ended: nothing of it runs on, nothing more is sent."""


@dataclass(slots=True)
class LateEffect:
    """A call whose caller gave up, on its way to take effect."""

    at: float
    call: Call
    effect: Callable[[], object]


@dataclass(slots=True)
class Network:
    """What lies between all operators and all services."""

    time: FakeTime
    latest_landing: float
    """How many seconds after it was sent a call can still take effect."""
    journal: list[Call] = field(default_factory=list)
    late: list[LateEffect] = field(default_factory=list)
    doomed: dict[int, Fate] = field(default_factory=dict)
    """Fates of calls by their place in the journal."""
    unasked: set[str] = field(default_factory=set)
    """What was asked for last in vain, because of a rate limit."""

    def writes_since(self, index: int) -> list[Call]:
        """Return the calls after a place in the journal that could change anything."""
        return [each for each in self.journal[index:] if not each.reads]

    def next_landing(self) -> float | None:
        """Return when the next late call takes effect."""
        return min((each.at for each in self.late), default=None)

    def land(self) -> None:
        """Let the late calls take effect whose time has come; nobody hears the answers."""
        due = sorted((each for each in self.late if each.at <= self.time.seconds), key=_when)
        for each in due:
            self.late.remove(each)
            try:
                each.effect()
            except CallError:
                continue


def _when(late: LateEffect) -> float:
    return late.at


_REFUSALS: dict[Fate, type[CallError]] = {
    Fate.FAILS: Unavailable,
    Fate.THROTTLED: Throttled,
    Fate.DENIED: Denied,
}
_DEATHS = (Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.DIES_AND_LANDS)
# After how many seconds a call lands whose caller gave up; None: as late as one can.
_LANDINGS = {Fate.LANDS_SOON: 5.0, Fate.LANDS_LATE: None}


@dataclass(slots=True)
class Line:
    """One operator process's connection to everything."""

    network: Network
    faults: dict[str, Fate] = field(default_factory=dict)
    """What happens to the next call of each verb; all others arrive."""
    cut: bool = False
    before_sending: Callable[[Call], None] = lambda call: None
    """A witness that sees each call right before it is sent."""

    async def carry(
        self,
        call: Call,
        effect: Callable[[], Answer],
        special: dict[Fate, Callable[[], Answer]] | None = None,
    ) -> Answer:
        """Send one call; `special` has the effects of fates that only some calls know."""
        if call.reads:
            self.network.unasked.discard(call.target)
        try:
            return await self._carried(call, effect, special)
        except Throttled:
            if call.reads:
                self.network.unasked.add(call.target)
            raise

    async def _carried(
        self,
        call: Call,
        effect: Callable[[], Answer],
        special: dict[Fate, Callable[[], Answer]] | None,
    ) -> Answer:
        if self.cut:
            raise Killed
        self.before_sending(call)
        doom = self.network.doomed.get(len(self.network.journal), Fate.ARRIVES)
        self.network.journal.append(call)
        fate = self.faults.pop(call.verb, doom)
        if special is not None and fate in special:
            return special[fate]()
        if fate in _DEATHS:
            self._die(fate, call, effect)
        self._refuse(fate, call)
        if fate is Fate.SLOW_REQUEST:
            await self._hang(call)
        if fate in _LANDINGS:
            self._land_later(call, effect, _LANDINGS[fate])
        if fate in (*_LANDINGS, Fate.REQUEST_LOST):
            raise Unavailable(f"no answer to {call}")
        answer = effect()
        if fate is Fate.SLOW_ANSWER:
            await self._hang(call)
        if fate is Fate.ANSWER_LOST:
            raise Unavailable(f"no answer to {call}")
        return answer

    def _refuse(self, fate: Fate, call: Call) -> None:
        if fate is Fate.REFUSED and not call.reads:
            raise (Busy if call.service is Service.DAYTONA else Conflict)(str(call))
        if fate in _REFUSALS:
            raise _REFUSALS[fate](f"{call}: {fate.value}")

    async def _hang(self, call: Call) -> None:
        await _Hang()
        if self.cut:
            raise Killed
        if self.network.time.seconds - call.at >= call.limit:
            raise Unavailable(f"no answer to {call} within {call.limit:g} s")

    def _die(self, fate: Fate, call: Call, effect: Callable[[], object]) -> None:
        self.cut = True
        if fate is Fate.DIES_AND_LANDS:
            self._land_later(call, effect, None)
        if fate is Fate.DIES_AFTER:
            try:
                effect()
            except CallError as error:
                raise Killed from error
        raise Killed

    def _land_later(self, call: Call, effect: Callable[[], object], after: float | None) -> None:
        if call.reads:
            return
        wait = self.network.latest_landing if after is None else after
        self.network.late.append(LateEffect(call.at + wait, call, effect))


class _Hang:
    def __await__(self) -> Generator[None, None, None]:
        yield


class Drive:
    """A coroutine driven by hand: it goes on until it ends or hangs in a call."""

    def __init__(self, coroutine: Coroutine[Any, Any, float | None]) -> None:
        self._coroutine = coroutine
        self.result: float | None = None

    def go_on(self) -> bool:
        """Run on; return whether it ended."""
        try:
            waits_for = self._coroutine.send(None)
        except StopIteration as end:
            self.result = end.value
            return True
        assert waits_for is None, f"a pass waited for {waits_for!r}, which is no port"
        return False

    def abandon(self) -> None:
        """Drop it where it hangs; its line must be cut, so that nothing more is sent."""
        self._coroutine.close()
