"""The checker's bounds in time, and which of them lapse with which flag: those and no others."""

from __future__ import annotations

from typing import Any

import pytest

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_UID
from issuesandbox.domain.flags import Flag, Flags
from issuesandbox.local.checker.evidence import Evidence, Moment, Observation
from issuesandbox.local.checker.journals import DaytonaJournal, StateChange
from issuesandbox.local.checker.rules_bounds import LAPSES
from issuesandbox.local.checker.verdict import ALWAYS, AT_REST, BOUNDS, check

STARTED = "2026-01-02T03:00:00Z"


def seen(at: float, run: dict[str, Any], own: dict[str, bool] | None = None, **spec: Any) -> Any:
    body = {
        "metadata": {"name": "one", "namespace": "team", "uid": "u1"},
        "spec": {"issue": {"repository": "octo/hello", "number": 1}, **spec},
        "status": {"run": {"id": "r1", "phase": "Executing", "startedAt": STARTED, **run}},
    }
    if own is not None:
        body["spec"]["flags"] = own
    return Observation(Moment(at), "MODIFIED", body)


def state(at: float, before: str | None, after: str) -> StateChange:
    labels = {LABEL_INSTALLATION: "ours", LABEL_UID: "u1"}
    return StateChange(int(at), at, "sb", "claude-issue-1", "org", labels, before, after, "call")


def broken(observations: list[Observation], states: list[StateChange], *off: Flag) -> set[str]:
    evidence = Evidence(
        installation="ours",
        observations=tuple(observations),
        daytona=DaytonaJournal(tuple(states)),
        flags=(Flags(), Flags(dict.fromkeys(off, 0))),
    )
    found = check(evidence, at_rest=False, bounds=True, lapsed=set(ALWAYS))
    return {each.rule for each in found}


BORN = state(0, None, "started")
TIMES = {"finishedAt": "2026-01-02T03:01:30Z", "lastOutputAt": "2026-01-02T03:00:10Z"}
LIMITS = {"effective": {"limits": {"inactivity": "60s"}}}
CASES: dict[str, tuple[list[Observation], list[StateChange]]] = {
    "stop-in-time": (
        [seen(1, {}), seen(10, {}, desiredState="Stopped"), seen(60, {}, desiredState="Stopped")],
        [BORN, state(45, "started", "stopped")],
    ),
    "timeout-in-time": (
        [seen(1, {}), seen(10, {"outcome": "TimedOut"}), seen(90, {"outcome": "TimedOut"})],
        [BORN, state(80, "started", "stopped")],
    ),
    "silence-in-time": ([seen(1, {"outcome": "TimedOut", **TIMES, **LIMITS})], []),
}


def test_every_bound_has_a_case_that_breaks_it() -> None:
    assert set(CASES) == set(BOUNDS)


@pytest.mark.parametrize("rule", CASES)
def test_a_broken_bound_is_named(rule: str) -> None:
    assert broken(*CASES[rule]) == {rule}


@pytest.mark.parametrize("flag", list(Flag))
@pytest.mark.parametrize("rule", CASES)
def test_a_bound_lapses_with_its_flags_and_with_no_other(rule: str, flag: Flag) -> None:
    assert broken(*CASES[rule], flag) == (set() if rule in LAPSES[flag] else {rule})


def test_a_resource_of_its_own_mind_is_judged_by_its_own_flags() -> None:
    own = {"cancellationChecks": False}
    unheard = [seen(1, {}, own), seen(10, {}, own, desiredState="Stopped"), seen(60, {}, own)]
    states = [BORN, state(45, "started", "stopped")]
    assert broken(unheard, states) == set()


def test_what_is_in_time_breaks_nothing() -> None:
    observations, _ = CASES["stop-in-time"]
    assert broken(observations, [BORN, state(30, "started", "stopping")]) == set()


def test_no_promise_ever_lapses_with_a_flag() -> None:
    lapsing = frozenset().union(*LAPSES.values())
    assert lapsing == set(BOUNDS)
    assert not lapsing & (set(ALWAYS) | set(AT_REST))
    assert set(LAPSES) == set(Flag)
