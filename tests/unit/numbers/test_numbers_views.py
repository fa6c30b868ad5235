"""The numbers of the views: what the fleet view shows is counted by what it means."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

from issuesandbox.engine.cache import ResourceCache
from issuesandbox.entry.metrics import ViewCollector


def test_sandboxes_without_a_known_state_are_counted_apart() -> None:
    states = ["started", "unknown", None, "brand_new", "brand_new"]
    group = tuple(SimpleNamespace(state=each) for each in states)
    roll = SimpleNamespace(phases=Counter(), oldest=dict, conditions={})
    parts = (
        ResourceCache(),
        SimpleNamespace(view=SimpleNamespace(by_uid={"u1": group})),
        SimpleNamespace(depth=0, overdue=lambda: 0.0),
        SimpleNamespace(actions=Counter()),
        roll,
    )
    collector = ViewCollector(*cast(Any, parts))
    samples = [sample for metric in collector.collect() for sample in metric.samples]
    assert {
        sample.labels["state"]: sample.value
        for sample in samples
        if sample.name == "issuesandbox_sandboxes"
    } == {"started": 1, "unknown": 1, "none": 1, "brand_new": 2}
    (strange,) = [each.value for each in samples if each.name == "issuesandbox_strange_sandboxes"]
    assert strange == 3
