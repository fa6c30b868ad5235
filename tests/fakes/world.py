"""A whole world in memory: Daytona, Kubernetes, one or more operators, and time.

`pass_time` lets time go by while the operators sleep, `live` lets them work, `settle` lets
them work until every resource has what it asks for. All of it is exact and repeatable.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.fakes.clock import FakeClock, FakeTime
from tests.fakes.daytona import GET_CACHED, FakeDaytona, Outage, Row, Starts, Tells
from tests.fakes.kube import Body, FakeKube
from tests.fakes.operator_process import OperatorProcess
from tests.fakes.oracle import Oracle, finished_run, issue_of
from tests.fakes.wire import Killed, Network

from issuesandbox.api.names import ANNOTATION_PAUSED, LABEL_UID
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.runs.steps import Steps
from issuesandbox.ports.resources import ResourceKey

# Production values, but for limits that would only make a test look more often or longer.
TIMINGS = Timings(
    settle_check=timedelta(seconds=2),
    deletion_retry=timedelta(seconds=10),
    start_limit=timedelta(seconds=60),
    create_limit=timedelta(seconds=60),
    stop_limit=timedelta(seconds=60),
    recover_limit=timedelta(seconds=120),
    refused_check=timedelta(seconds=60),
)
QUIET = 5 * TIMINGS.fleet_tick.total_seconds()
# How long it may take until all is as it should be, and then until nothing is written any more.
_ROUNDS = 1_000
_WINDOWS = 5


class World:
    """Everything there is."""

    def __init__(
        self, operators: int = 1, timings: Timings = TIMINGS, steps: Steps | None = None
    ) -> None:
        self.timings = timings
        self._steps = steps
        self.time = FakeTime()
        self.daytona = FakeDaytona(self.time)
        self.kube = FakeKube(self.time)
        # The margin must also cover the answer to the announcement that goes before a create,
        # and the age of the cache from which the last look before a release may be answered.
        margin = timings.landing_horizon - timings.read_timeout
        self.network = Network(self.time, margin.total_seconds() - GET_CACHED)
        self.oracle = Oracle(self.daytona, self.kube, self.network)
        self._alone = operators == 1
        self.operators = [self._start(FakeClock(self.time)) for _ in range(operators)]
        self.oracle.acting_for = self._acting_for
        self.oracle.blind = self._blind

    def _start(self, clock: FakeClock) -> OperatorProcess:
        around = (self.daytona, self.kube, self.network, clock, self.timings)
        operator = OperatorProcess(*around, alone=self._alone, steps=self._steps)
        operator.line.before_sending = self.oracle.before_sending
        return operator

    def restart(self, operator: OperatorProcess) -> None:
        """Kill an operator and start it anew: its memory is gone, its machine is the same."""
        operator.die()
        self.operators[self.operators.index(operator)] = self._start(operator.machine_clock)

    def pass_time(self, seconds: float) -> None:
        """Let time go by without any operator doing anything."""
        end = self.time.seconds + seconds
        while True:
            upcoming = (self.daytona.next_change(), self.network.next_landing())
            self.time.seconds = min([each for each in upcoming if each is not None] + [end])
            self.daytona.pass_time()
            self.network.land()
            if self.time.seconds >= end:
                return

    def live(self, seconds: float) -> None:
        """Let time go by with all operators at work."""
        end = self.time.seconds + seconds
        while self.time.seconds < end:
            self.work()
            self._skip_to_next(end)

    def work(self) -> None:
        """Let every operator do what is due now; one that dies is started anew."""
        for operator in list(self.operators):
            try:
                operator.work()
            except Killed:
                self.restart(operator)

    def heal(self) -> None:
        """End everything that is wrong with the world, but undo nothing."""
        self.daytona.outage = Outage.NONE
        self.daytona.quota = None
        self.daytona.cursed, self.daytona.starts = False, Starts.WORK
        self.daytona.tells = Tells.TRUTH
        self.daytona.free_names()
        self.daytona.caches_gets, self.daytona.shy, self.daytona.list_lag = False, False, 0.0
        for operator in self.operators:
            operator.machine_clock.set_ahead(timedelta(0))
            operator.line.faults.clear()
            operator.relist()

    def settle(self) -> None:
        """Let the operators work until all is as it should be, then prove that all is quiet."""
        self.reach_goals()
        for _ in range(_WINDOWS):
            begin = len(self.network.journal)
            self.live(QUIET)
            writes = self.network.writes_since(begin)
            if not writes:
                break
        assert not writes, f"not quiet: {[str(each) for each in writes]}"
        assert not self.unmet(), f"did not last: {self.unmet()}"
        self.oracle.check_leftovers()

    def reach_goals(self) -> None:
        """Let the operators work until every resource has what it asks for."""
        for _ in range(_ROUNDS):
            self.work()
            pending = self.network.late or self.daytona.next_change()
            if not pending and not self.unmet():
                return
            self._skip_to_next(self.time.seconds + 3_600)
        raise AssertionError(f"not settled after {_ROUNDS} rounds: {self.unmet()}")

    def unmet(self) -> list[str]:
        """Return what is not yet as it should be, in words."""
        return [text for body in self.kube.bodies() if (text := self._unmet(body))]

    def _unmet(self, body: Body) -> str | None:
        metadata, status = body["metadata"], body.get("status", {})
        name = f"{metadata['namespace']}/{metadata['name']} ({metadata['uid']})"
        if "deletionTimestamp" in metadata:
            return f"{name} is not gone: {_ready(body)}"
        if metadata.get("annotations", {}).get(ANNOTATION_PAUSED) == "true":
            return None
        rows = self.daytona.live(uid=metadata["uid"])
        states = [row.view.state for row in rows]
        run = finished_run(body)
        if run is not None and run["trigger"] == body["spec"]["run"]["trigger"]:
            return None if _is_cleaned_up(run, states) else f"{name} is not cleaned up: {states}"
        if body["spec"].get("desiredState") == "Stopped":
            return None if _is_stopped(body, states) else f"{name} is not stopped: {states}"
        if self._gave_up_rightly(body, rows):
            return None
        served = (
            states == ["started"]
            and status.get("sandbox", {}).get("id") == rows[0].view.id
            and status.get("phase") == "Idle"
            and "intent" not in status
        )
        return None if served else f"{name} is not running: {states} {_ready(body)}"

    def _gave_up_rightly(self, body: Body, rows: list[Row]) -> bool:
        reason = _ready(body).get("reason")
        if reason == "AttemptsExhausted":
            broken = [row for row in self.daytona.rows.values() if _broke(row, body)]
            return len(broken) >= 3
        if reason == "NameCollision":
            uid = body["metadata"]["uid"]
            return any(row.view.labels.get(LABEL_UID) != uid for row in self.daytona.live())
        if reason == "DuplicateIssue":
            others = [each for each in self.kube.bodies() if issue_of(each) == issue_of(body)]
            return len(others) > 1 and not rows
        return False

    def _skip_to_next(self, end: float) -> None:
        """Go on to the next moment at which anything happens, but not beyond `end`."""
        upcoming = [self.daytona.next_change(), self.network.next_landing(), end]
        upcoming += [self.time.seconds + each.next_due() for each in self.operators]
        moment = min(each for each in upcoming if each is not None)
        self.pass_time(max(0.0, moment - self.time.seconds))

    def _acting_for(self) -> ResourceKey | None:
        acting = [each.acting_for for each in self.operators if each.acting_for]
        return acting[0] if acting else None

    def _blind(self) -> bool:
        return any(each.is_blind() for each in self.operators)


def _is_stopped(body: Body, states: list[str | None]) -> bool:
    status = body.get("status", {})
    # How the last run ended goes before what becomes of its sandbox.
    ended = (finished_run(body) or {}).get("outcome")
    told = status.get("phase") in ("Stopped", ended) or "error" in states
    answered = status.get("observedGeneration") == body["metadata"]["generation"]
    return set(states) <= {"stopped", "archived", "error"} and told and answered


def _is_cleaned_up(run: Mapping[str, Any], states: list[str | None]) -> bool:
    # What failed is kept for a day, at rest; what is broken rests as well.
    kept = set() if run["outcome"] == "Succeeded" else {"stopped", "archived", "error"}
    return set(states) <= kept


def _ready(body: Body) -> dict[str, str]:
    conditions = body.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "Ready"), {})


def _broke(row: Row, body: Body) -> bool:
    uid = body["metadata"]["uid"]
    ours = row.view.labels.get(LABEL_UID) == uid
    return ours and any(view.state == "error" for _, view in row.versions)
