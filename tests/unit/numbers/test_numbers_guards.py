"""The numbers of the guards: what a replica knew in a role counts only while it has the role."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from issuesandbox.domain.orphans import Doubt
from issuesandbox.entry.metrics_guards import GuardCollector


def numbers_of(*, acts: bool, tidies: bool) -> dict[tuple[str, str], float]:
    singleton = SimpleNamespace(holds=lambda: tidies)
    parts = {
        "role": SimpleNamespace(singleton=singleton, acts=lambda: acts, held=dict),
        "fleet": SimpleNamespace(age=1.0),
        "breaker": SimpleNamespace(is_open=True),
        "gate": SimpleNamespace(refused=Counter(), left=dict),
        "reaper": SimpleNamespace(
            orphans=7, kept=Counter(dict.fromkeys(Doubt, 2)), fates=Counter(), breaker="too many"
        ),
        "events": None,
    }
    collector = GuardCollector(**cast(dict[str, Any], parts))
    return {
        (sample.name, sample.labels.get("breaker", "")): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }


@pytest.mark.parametrize("held", [True, False])
def test_a_role_that_was_lost_leaves_no_alert_behind(held: bool) -> None:
    seen = numbers_of(acts=held, tidies=held)
    assert seen["issuesandbox_orphans", ""] == (7 if held else 0)
    assert seen["issuesandbox_orphans_kept", ""] == (2 if held else 0)
    assert seen["issuesandbox_breaker_open", "broken"] == held
    assert seen["issuesandbox_breaker_open", "orphans"] == held
