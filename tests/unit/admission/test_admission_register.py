"""What a body alone says at the desk: any replica, also after a restart, reads the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from test_admission_desk import HandClock

from issuesandbox.api.conditions import Reason
from issuesandbox.domain.admission import Limits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.admission import AdmissionDesk
from issuesandbox.engine.candidates import register
from issuesandbox.ports.resources import ResourceKey

ANNOUNCED = "issuesandbox.dev/first-create"


def stamp(clock: HandClock, ago: float = 0.0) -> str:
    moment: datetime = clock.now() - timedelta(seconds=ago)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class Register:
    """A desk that is fed with bodies, as the cache feeds it."""

    def __init__(self, **limits: int) -> None:
        self.clock = HandClock()
        self.desk = AdmissionDesk(Limits(**limits), Timings(), self.clock)
        self._put = register(self.desk)

    def put(self, number: int, status: dict[str, Any] | None = None, **more: Any) -> None:
        """Take a body of `octo/hello#number` by ann, which asks for a run."""
        metadata = {"creationTimestamp": "2026-07-01T11:00:00Z", **more.pop("metadata", {})}
        issue = {"repository": "octo/hello", "number": number, "author": "ann", **more}
        spec = {"issue": issue, "run": {"trigger": "1"}}
        body = {"metadata": metadata, "spec": spec, "status": status or {}}
        self._put(ResourceKey("team", f"issue-{number}", str(number)), body)

    def verdict(self, number: int) -> Reason | None:
        answer = self.desk.ask(str(number))
        assert answer is not None
        return answer.reason


def test_what_was_admitted_counts_also_after_its_own_write_came_back() -> None:
    # R87
    here = Register(new_runs=1)
    here.put(1)
    assert here.verdict(1) is None
    note = f'{{"kind":"Create","at":"{stamp(here.clock)}"}}'
    here.put(1, metadata={"annotations": {ANNOUNCED: note}})
    here.put(2)
    assert here.verdict(2) is Reason.RATE_LIMITED
    here.put(3, author="bob")
    assert here.verdict(3) is None, "another author's runs are counted apart"
    here.clock.seconds += 61
    assert here.verdict(2) is None


def test_runs_that_began_under_another_replica_count() -> None:
    # R87
    here = Register(new_runs=2)
    last = {"id": "b", "startedAt": stamp(here.clock, 10), "outcome": "Succeeded", "trigger": "1"}
    before = [{"id": "b", "startedAt": last["startedAt"]}, {"startedAt": stamp(here.clock, 20)}]
    here.put(1, {"run": last, "history": before})
    here.put(2)
    assert here.verdict(2) is Reason.RATE_LIMITED
    here.clock.seconds += 45
    assert here.verdict(2) is None, "the older of the two is more than a minute ago"


def test_another_run_in_the_same_sandbox_is_a_new_run() -> None:
    # R87
    here = Register(new_runs=1)
    done = {"startedAt": stamp(here.clock, 10), "outcome": "Succeeded", "trigger": "1"}
    sandbox = {"id": "sandbox-1"}
    here.put(1, {"sandbox": sandbox, "run": done})
    assert here.verdict(1) is None, "it asks for nothing"
    here.put(1, {"sandbox": sandbox, "run": {**done, "trigger": "0"}})
    assert here.verdict(1) is Reason.RATE_LIMITED
    assert here.desk.live == 1, "it keeps its place"


def test_an_announcement_that_somebody_edited_counts_for_nothing() -> None:
    here = Register(new_runs=1)
    for number, note in enumerate(("", "{", '{"at":"noon"}', '{"at":"2026-07-01T12:00:00"}'), 1):
        here.put(number, metadata={"annotations": {ANNOUNCED: note}})
    here.put(9)
    assert here.verdict(9) is None
