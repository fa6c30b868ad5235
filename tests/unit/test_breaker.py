"""When nothing is replaced: while too many are unwell at once, or nobody can tell how many are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import pytest
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.api.names import LABEL_UID
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.breaker import Breaker
from issuesandbox.engine.fleet import Fleet
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes

T = Timings()
NO_LIST = "there is no fresh list"
TOO_MANY = "so many are unwell"


class Ward:
    """A breaker over a Daytona of so many sandboxes, all well at first."""

    def __init__(self, size: int = 5) -> None:
        self.time = FakeTime()
        self.states = ["started"] * size
        self.down = False
        self.woken: list[str] = []
        self.metadata: dict[str, str] = {}
        clock = FakeClock(self.time)
        self.fleet = Fleet(cast("Sandboxes", self), "ours", T, clock)
        self.breaker = Breaker(self.fleet, clock, T)

    async def list_owned(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        if self.down:
            raise Unavailable("503")
        return [
            SandboxView(id=SandboxId(f"s{n}"), name="x", state=state, labels={LABEL_UID: f"u{n}"})
            for n, state in enumerate(self.states)
        ]

    async def look(self) -> None:
        await self.fleet.refresh(self.woken.append)

    def tell(self, number: int, spec: Mapping[str, Any] | None = None, **status: Any) -> None:
        key = ResourceKey("team", f"r{number}", f"u{number}")
        body = {"metadata": self.metadata, "spec": spec or {}, "status": status}
        self.breaker.put(key, body)

    def why(self) -> str:
        return self.breaker.why or ""

    def moment(self) -> str:
        return self.time.now().isoformat().replace("+00:00", "Z")


async def test_without_a_fresh_view_nothing_is_replaced() -> None:
    ward = Ward()
    assert NO_LIST in ward.why()
    assert not ward.breaker.is_open, "which is no alarm: a standby never has one"
    await ward.look()
    assert ward.why() == ""
    ward.down = True
    ward.time.seconds += T.fleet_stale.total_seconds() + 1
    await ward.look()
    assert NO_LIST in ward.why()


async def test_whoever_waited_for_a_view_is_woken_by_it() -> None:
    ward = Ward()
    ward.states[1] = "error"
    await ward.look()
    assert ward.woken == ["u1"]
    await ward.look()
    assert ward.woken == ["u1"], "nothing new"


@pytest.mark.parametrize(("size", "told"), [(3, 3), (500, 500), (501, 500)])
async def test_those_at_rest_are_told_of_an_outage_once_and_within_bounds(
    size: int, told: int
) -> None:
    ward = Ward(size)
    await ward.look()
    ward.down = True
    await ward.look()
    assert ward.woken == [], "the last view still says something"
    for _ in range(2):
        ward.time.seconds += T.fleet_stale.total_seconds() + 1
        await ward.look()
        assert len(ward.woken) == len(set(ward.woken)) == told


@pytest.mark.parametrize(("size", "unwell", "held"), [(5, 3, ""), (5, 4, TOO_MANY), (30, 6, "")])
async def test_so_many_broken_ones_hold_all_of_them(size: int, unwell: int, held: str) -> None:
    ward = Ward(size)
    ward.states[:unwell] = ["error"] * unwell
    await ward.look()
    assert held in ward.why()
    assert bool(ward.why()) is bool(held)


async def test_so_do_those_that_do_not_answer() -> None:
    # For Daytona all of them run.
    ward = Ward()
    await ward.look()
    for number in range(4):
        assert ward.why() == ""
        ward.tell(number, run={"phase": "Preparing", "probeMisses": 1})
    assert TOO_MANY in ward.why()
    ward.tell(0, run={"phase": "Preparing", "probeMisses": 0, "restarts": 1})
    assert TOO_MANY in ward.why(), "a restart alone has cured nothing"
    ward.tell(0, run={"phase": "Executing", "probeMisses": 0, "restarts": 1})
    assert ward.why() == ""


@pytest.mark.parametrize(
    ("sandbox", "after"),
    [
        ({"state": "starting", "stateSince": "now"}, T.start_limit / 2),
        ({"state": "pulling_snapshot", "stateSince": "now"}, T.pull_limit / 2),
        ({"state": "stopped", "stateSince": "now", "startAskedAt": "now"}, T.start_limit / 2),
    ],
    ids=["starting", "pulling", "asked to start"],
)
async def test_so_do_those_that_are_on_their_way_for_long(
    sandbox: dict[str, str], after: timedelta
) -> None:
    ward = Ward()
    now = ward.moment()
    for number in range(4):
        ward.tell(
            number, sandbox={name: now if at == "now" else at for name, at in sandbox.items()}
        )
    ward.time.seconds += after.total_seconds() - 1
    await ward.look()
    assert ward.why() == ""
    ward.time.seconds += 1
    assert TOO_MANY in ward.why()
    ward.breaker.drop(ResourceKey("team", "r0", "u0"))
    assert ward.why() == ""


@pytest.mark.parametrize("limit", [20, 3600])
async def test_a_start_is_late_by_the_limit_of_its_own_resource(limit: int) -> None:
    ward = Ward()
    spec = {"sandbox": {"startTimeout": f"{limit}s"}}
    for number in range(4):
        ward.tell(number, spec, sandbox={"state": "starting", "stateSince": ward.moment()})
    ward.time.seconds += limit / 2 - 1
    await ward.look()
    assert ward.why() == ""
    ward.time.seconds += 1
    assert TOO_MANY in ward.why(), "before the first of them is replaced"


async def test_whoever_is_unwell_in_two_ways_is_one() -> None:
    ward = Ward()
    ward.states[:2] = ["error"] * 2
    for number in range(2):
        ward.tell(number, run={"phase": "Preparing", "probeMisses": 2}, sandbox={"failedStarts": 1})
    await ward.look()
    assert ward.why() == ""


async def test_one_that_merely_rests_is_well() -> None:
    ward = Ward()
    for number in range(5):
        ward.tell(number, sandbox={"state": "stopped", "stateSince": ward.moment()})
    ward.time.seconds += timedelta(days=1).total_seconds()
    await ward.look()
    assert ward.why() == ""


ASKED: dict[str, Any] = {"run": {"trigger": "1"}}
ENDED = {"run": {"phase": "Finished", "outcome": "Failed", "trigger": "1"}}
GIVEN_UP = {
    "conditions": [{"type": "Ready", "status": "False", "reason": "AttemptsExhausted"}],
    "sandbox": {"failedStarts": 1},
}


@pytest.mark.parametrize(
    ("metadata", "spec", "status"),
    [
        ({"deletionTimestamp": "2030-01-01T00:00:00Z"}, {}, {}),
        ({}, {"desiredState": "Stopped"}, {}),
        ({}, ASKED, ENDED),
        ({}, {}, GIVEN_UP),
    ],
    ids=["deleted", "stopped", "finished", "given up"],
)
async def test_what_nobody_wants_replaced_does_not_count(
    metadata: dict[str, str], spec: dict[str, Any], status: dict[str, Any]
) -> None:
    ward = Ward(6)
    ward.states = ["error"] * 6
    await ward.look()
    ward.metadata = metadata
    for number in range(3):
        assert TOO_MANY in ward.why()
        ward.tell(number, spec, **status)
    assert ward.why() == "", "the three that are left may be replaced"
    ward.metadata = {}
    ward.tell(0, {})
    assert TOO_MANY in ward.why(), "it is wanted again"


@pytest.mark.parametrize("spec", [{"run": {"trigger": "2"}}, {}], ids=["again", "without a run"])
async def test_a_resource_that_asks_again_counts(spec: dict[str, Any]) -> None:
    ward = Ward()
    ward.states = ["error"] * 4
    await ward.look()
    for number in range(4):
        ward.tell(number, spec, **ENDED)
    assert TOO_MANY in ward.why()


async def test_a_build_that_failed_is_the_fault_of_its_order() -> None:
    ward = Ward()
    ward.states = ["build_failed"] * 5
    await ward.look()
    assert ward.why() == ""


async def test_a_sandbox_that_was_given_up_says_nothing_of_the_one_in_its_place() -> None:
    ward = Ward()
    ward.states[:4] = ["error"] * 4
    await ward.look()
    ward.tell(0, sandbox={"id": "s9", "state": "started"}, retired=[{"id": "s0"}])
    assert ward.why() == ""
