"""The roll of phases and conditions, and the tally behind all counters."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from tests.fakes.clock import FakeClock, FakeTime

from issuesandbox.domain import numbers
from issuesandbox.engine.roll import Roll
from issuesandbox.engine.tally import Tally
from issuesandbox.entry.metrics_tally import TallyCollector
from issuesandbox.ports.resources import ResourceKey


def body(phase: str, ready: str = "True", since: str = "2026-01-02T03:04:05Z") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": "R", "lastTransitionTime": since}
    metadata = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [condition]}}


def test_the_roll_is_what_a_count_from_scratch_would_give() -> None:
    chance, roll = random.Random(7), Roll(FakeClock(FakeTime()))
    world: dict[ResourceKey, dict[str, Any]] = {}
    for _ in range(3000):
        key = ResourceKey("team", f"r{chance.randrange(50)}", "u")
        if chance.random() < 0.3:
            world.pop(key, None)
            roll.drop(key)
        else:
            world[key] = body(chance.choice(["Idle", "Booting"]), chance.choice(["True", "False"]))
            roll.put(key, world[key])
    phases = Counter(each["status"]["phase"] for each in world.values())
    ready = Counter(each["status"]["conditions"][0]["status"] for each in world.values())
    assert +roll.phases == phases
    assert {key[1]: count for key, count in (+roll.conditions).items()} == ready


def test_the_slowest_resource_of_a_passing_phase_shows_its_age() -> None:
    time = FakeTime()
    clock = FakeClock(time)
    roll = Roll(clock)
    then = (clock.now() - timedelta(minutes=40)).isoformat()
    soon = (clock.now() - timedelta(minutes=2)).isoformat()
    roll.put(ResourceKey("team", "slow", "1"), body("Booting", since=then))
    roll.put(ResourceKey("team", "quick", "2"), body("Booting", since=soon))
    roll.put(ResourceKey("team", "done", "3"), body("Idle", since=then))
    assert round(roll.oldest()["Booting"]) == 2400
    assert "Idle" not in roll.oldest()
    roll.put(ResourceKey("team", "slow", "1"), body("Idle"))
    assert round(roll.oldest()["Booting"]) == 120


def test_a_resource_that_nobody_looks_at_shows_its_age_and_one_that_is_held_back_does_not() -> None:
    time = FakeTime()
    clock = FakeClock(time)
    roll, then = Roll(clock), (clock.now() - timedelta(minutes=40)).isoformat()
    duplicate = body("Pending", since=then)
    duplicate["status"]["conditions"].append(
        {"type": "Admitted", "status": "False", "reason": "DuplicateIssue"}
    )
    roll.put(ResourceKey("team", "twin", "1"), duplicate)
    assert roll.oldest()["Pending"] == 0
    roll.put(ResourceKey("team", "new", "2"), {"metadata": {"creationTimestamp": then}})
    assert round(roll.oldest()["Pending"]) == 2400


def shown(tally: Tally) -> dict[str, Any]:
    registry = CollectorRegistry()
    registry.register(TallyCollector(tally))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        sample.name + str(sample.labels): sample.value for f in families for sample in f.samples
    }


def test_every_family_shows_from_the_start_so_that_its_first_count_is_a_rise() -> None:
    found = shown(Tally())
    assert found["issuesandbox_stops_total{'result': 'failed'}"] == 0
    assert found["issuesandbox_push_after_stop_total{}"] == 0
    assert found["issuesandbox_stop_response_seconds_count{}"] == 0


def test_times_fall_into_cumulative_buckets() -> None:
    tally = Tally()
    for seconds in (0.2, 5.0, 400.0, -3.0):
        tally.time(numbers.STOP_RESPONSE, seconds)
    found = shown(tally)
    assert found["issuesandbox_stop_response_seconds_bucket{'le': '0.5'}"] == 2
    assert found["issuesandbox_stop_response_seconds_bucket{'le': '5.0'}"] == 3
    assert found["issuesandbox_stop_response_seconds_bucket{'le': '+Inf'}"] == 4
    assert found["issuesandbox_stop_response_seconds_sum{}"] == 405.2


def test_a_label_never_grows_without_end() -> None:
    tally = Tally()
    for number in range(1000):
        tally.count(numbers.RUNS, "Failed", f"Reason{number}")
    found = dict(tally.counts(numbers.RUNS))
    assert len(found) <= 101
    assert sum(found.values()) == 1000
    assert found["Failed", "Other"] > 800
