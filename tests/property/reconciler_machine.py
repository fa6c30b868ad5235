"""A state machine that does to the operator whatever the world may do to it.

Users edit, calls get lost or land late, operators die, clocks jump, sandboxes break: in any
order. The oracle judges every effect as it happens; at the end the faults stop, and all must
come to rest in the right state.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.fakes.daytona import ELSEWHERE, HOME, Outage
from tests.fakes.kube import Body
from tests.fakes.operator_process import INSTALLATION, OperatorProcess
from tests.fakes.oracle import finished_run
from tests.fakes.wire import Fate, Killed
from tests.fakes.world import World
from tests.property import machine_choices as choices
from tests.property.machine_choices import (
    EDITS,
    MISFORTUNES,
    PLACES,
    WEATHER,
    Place,
    numbers,
    seconds,
)

from issuesandbox.api.status_run import Outcome

T = TypeVar("T")


class ReconcilerMachine(RuleBasedStateMachine):
    """One or two operators in a hostile world."""

    world: World

    @initialize(
        operators=st.integers(min_value=1, max_value=2),
        settled=st.lists(choices.places, max_size=2, unique=True),
        taken=st.sets(st.sampled_from([HOME, ELSEWHERE])),
    )
    def begin(self, operators: int, settled: list[Place], taken: set[str]) -> None:
        """Begin with nothing or with resources that are served; their name may be taken."""
        self.world = World(operators)
        for organization in sorted(taken):
            self.world.daytona.plant(choices.NAME, {}, organization)
        for place in settled:
            self.world.kube.create(place.namespace, place.name, place.spec())
            self.world.live(10.0)

    # Users.

    @precondition(lambda self: self._free())
    @rule(
        which=numbers,
        state=st.sampled_from(["Running", "Running", "Stopped"]),
        policy=st.sampled_from(["Delete", "Delete", "Delete", "Orphan"]),
        collision=st.sampled_from(["Suffix", "Suffix", "Fail"]),
        runs=st.sampled_from([{}, {}, {"run": {"trigger": "1"}}]),
        flags=choices.flags,
        announced=st.sampled_from(["", choices.NAME]),
    )
    def create(
        self,
        *,
        which: int,
        state: str,
        policy: str,
        collision: str,
        runs: dict[str, Any],
        flags: dict[str, bool],
        announced: str,
    ) -> None:
        place = _pick(self._free(), which)
        spec = place.spec(
            desiredState=state,
            deletionPolicy=policy,
            sandbox={"nameCollisionPolicy": collision},
            flags=flags,
            **runs,
        )
        self.world.kube.create(place.namespace, place.name, spec, announced)

    @precondition(lambda self: self._taken())
    @rule(which=numbers, what=choices.edits)
    def edit(self, which: int, what: str) -> None:
        if "status" in EDITS[what] and self._key_is_wrong():
            return  # nothing would be left that shows where the sandbox is
        place = _pick(self._taken(), which)
        self.world.kube.edit(place.namespace, place.name, EDITS[what])

    @precondition(lambda self: self._running())
    @rule(which=numbers, outcome=st.sampled_from(Outcome))
    def run_ends(self, which: int, outcome: Outcome) -> None:
        """Let a run end; what becomes of its sandbox is the operators' business."""
        place = _pick(self._running(), which)
        self.world.kube.finish_run(place.namespace, place.name, outcome.value)

    @precondition(lambda self: self._running(ended=True))
    @rule(which=numbers, trigger=st.sampled_from(["1", "2", "3"]))
    def ask_for_a_run(self, which: int, trigger: str) -> None:
        place = _pick(self._running(ended=True), which)
        self.world.kube.edit(place.namespace, place.name, {"spec": {"run": {"trigger": trigger}}})

    @precondition(lambda self: self._taken())
    @rule(which=numbers, whole_namespace=st.sampled_from([False, False, False, True]))
    def delete(self, which: int, whole_namespace: bool) -> None:
        doomed = _pick(self._taken(), which)
        with_it = [
            each
            for each in self._taken()
            if each == doomed or (whole_namespace and each.namespace == doomed.namespace)
        ]
        if any(map(self._tells_and_can_go, with_it)):
            return  # nothing would be left that shows where the others belong
        if whole_namespace:
            self.world.kube.terminating.add(doomed.namespace)
        for place in with_it:
            self.world.kube.delete(place.namespace, place.name)

    # Operators.

    @precondition(lambda self: any(each.known() for each in self.world.operators))
    @rule(which=numbers, informed=st.booleans(), faults=choices.faults)
    def make_pass(self, which: int, informed: bool, faults: dict[str, Fate]) -> None:
        """Make a pass, on the newest events or on those that happened to arrive."""
        known = [(each, key) for each in self.world.operators for key in each.known()]
        operator, key = _pick(known, which)
        if informed:
            operator.receive_events()
        operator.line.faults = faults
        self._survive(operator, lambda: operator.make_pass(key))

    @precondition(lambda self: any(each.hanging() for each in self.world.operators))
    @rule(which=numbers, faults=choices.faults)
    def go_on(self, which: int, faults: dict[str, Fate]) -> None:
        """Let a pass go on that hangs in a call."""
        hanging = [(each, key) for each in self.world.operators for key in each.hanging()]
        operator, key = _pick(hanging, which)
        operator.line.faults = faults
        self._survive(operator, lambda: operator.make_pass(key))

    @rule(which=numbers, heard=st.integers(min_value=0, max_value=2), deaf=st.booleans())
    def hear(self, which: int, heard: int, deaf: bool) -> None:
        """Let an operator hear of the next few changes; then its watch is dead or alive."""
        operator = self._operator(which)
        operator.receive_events(heard)
        operator.deaf = deaf

    @rule(which=numbers)
    def lose_event(self, which: int) -> None:
        self._operator(which).lose_events(1)

    @rule(which=numbers)
    def crash(self, which: int) -> None:
        self.world.restart(self._operator(which))

    # Time.

    @rule(seconds=seconds, which=numbers, faults=choices.faults)
    def live(self, seconds: float, which: int, faults: dict[str, Fate]) -> None:
        """Let time go by with the operators at work; the calls of one of them meet their fate."""
        self._operator(which).line.faults = faults
        self.world.live(seconds)

    @rule(seconds=seconds)
    def sleep(self, seconds: float) -> None:
        """Let time go by with the operators frozen."""
        self.world.pass_time(seconds)

    @rule(which=numbers, minutes=st.sampled_from([-60, -1, 0, 1, 60]))
    def clock_jumps(self, which: int, minutes: int) -> None:
        self._operator(which).machine_clock.set_ahead(timedelta(minutes=minutes))

    # Daytona.

    @rule(outage=choices.outages)
    def outage(self, outage: Outage) -> None:
        """Let an outage begin, or all be well again."""
        known = all(map(_organization_is_known, self.world.kube.bodies()))
        if outage is Outage.OTHER_ORGANIZATION and not (known or self._home_is_known()):
            return  # nobody could tell that the key is wrong
        self._set_outage(outage)

    @rule(change=choices.weather)
    def weather_changes(self, change: str) -> None:
        WEATHER[change](self.world.daytona)

    @precondition(lambda self: self.world.daytona.live(installation=INSTALLATION))
    @rule(which=numbers, what=choices.misfortunes)
    def misfortune(self, which: int, what: str) -> None:
        row = _pick(self.world.daytona.live(installation=INSTALLATION), which)
        if not row.foreign:
            MISFORTUNES[what](self.world.daytona, row)

    @rule(
        name=choices.contested_names,
        labels=choices.strangers,
        organization=st.sampled_from([HOME, HOME, ELSEWHERE]),
    )
    def stranger_comes(self, name: str, labels: dict[str, str], organization: str) -> None:
        self.world.daytona.plant(name, labels, organization)

    @precondition(lambda self: any(row.foreign for row in self.world.daytona.live()))
    @rule()
    def strangers_go(self) -> None:
        for row in self.world.daytona.live():
            if row.foreign:
                self.world.daytona.vanish(row)

    # What must hold.

    @invariant()
    def nothing_forbidden_happened(self) -> None:
        violation = self.world.oracle.violation
        if violation is not None:
            raise violation
        assert not self.world.kube.refused

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None:
            return  # a rule failed already; that is what must be shown
        self._set_outage(Outage.NONE)
        self.world.heal()
        begin = len(self.world.network.journal)
        self.world.settle()
        self.nothing_forbidden_happened()
        creates = [each for each in self.world.network.journal[begin:] if each.verb == "create"]
        for uid in {each.uid for each in creates}:
            sent = sum(each.uid == uid for each in creates)
            assert sent <= 5, f"{sent} creates for {uid} in a world without faults"

    def _operator(self, which: int) -> OperatorProcess:
        return _pick(self.world.operators, which)

    def _survive(self, operator: OperatorProcess, act: Callable[[], None]) -> None:
        """Do something; an operator that dies of it is started anew."""
        try:
            act()
        except Killed:
            self.world.restart(operator)

    def _set_outage(self, outage: Outage) -> None:
        was_wrong = self._key_is_wrong()
        self.world.daytona.outage = outage
        if was_wrong != self._key_is_wrong():
            for operator in self.world.operators:
                operator.change_key()

    def _key_is_wrong(self) -> bool:
        return self.world.daytona.outage is Outage.OTHER_ORGANIZATION

    def _home_is_known(self) -> bool:
        """Tell whether every operator knows of a sandbox where first ones belong."""
        return all(each.homes.instead_of(ELSEWHERE) for each in self.world.operators)

    def _tells_and_can_go(self, place: Place) -> bool:
        """Tell whether it shows where the others belong, and goes though the key is wrong."""
        body = self.world.kube.find(place.namespace, place.name)
        leaves = body is not None and body["spec"].get("deletionPolicy") == "Orphan"
        return leaves and self._key_is_wrong()

    def _free(self) -> list[Place]:
        if self._key_is_wrong() and not self._home_is_known():
            return []  # a first sandbox would be made in the other organisation
        kube = self.world.kube
        free = [each for each in PLACES if not kube.find(each.namespace, each.name)]
        return [each for each in free if each.namespace not in kube.terminating]

    def _running(self, *, ended: bool = False) -> list[Place]:
        """Return where a run is on, or has ended."""
        found = []
        for place in self._taken():
            body = self.world.kube.find(place.namespace, place.name)
            if body and "run" in body["spec"] and bool(finished_run(body)) is ended:
                found.append(place)
        return found

    def _taken(self) -> list[Place]:
        return [each for each in PLACES if self.world.kube.find(each.namespace, each.name)]


def _pick(choices: Sequence[T], which: int) -> T:
    return choices[which % len(choices)]


def _organization_is_known(body: Body) -> bool:
    return "organizationId" in body.get("status", {}).get("sandbox", {})
