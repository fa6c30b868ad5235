"""What the plugin computes by itself: spans of time, sums of usage, facts of a status."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from issuesandbox.entry.plugin.settings_status import refused
from issuesandbox.entry.plugin.shape import span
from issuesandbox.entry.plugin.status import facts
from issuesandbox.entry.plugin.usage import used

BODY = {
    "metadata": {"namespace": "team", "name": "one"},
    "spec": {"issue": {"repository": "octo/hello", "number": 7}},
    "status": {
        "phase": "Failed",
        "counters": {"runs": 2},
        "usage": {
            "states": [{"state": "started", "seconds": 90}, {"state": "stopped", "seconds": 30}],
            "inputTokens": 5,
            "costUSD": "0.10",
        },
        "run": {
            "id": "r2",
            "phase": "Finished",
            "outcome": "Failed",
            "reason": "BranchMoved",
            "startedAt": "2030-01-01T00:00:00Z",
            "pullRequest": {"number": 4, "url": "https://example.com/4"},
        },
        "history": [{"id": "r1", "outcome": "Succeeded"}],
    },
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (45, "45s"), (200, "3m20s"), (7290, "2h1m"), (187_200, "2d4h")],
)
def test_a_span_is_told_in_its_two_largest_units(seconds: int, text: str) -> None:
    assert span(timedelta(seconds=seconds)) == text


def test_usage_counts_time_tokens_and_exact_money() -> None:
    row = used(BODY)
    assert (row["runs"], row["running"], row["total"], row["input"]) == (2, 90, 120, 5)
    assert row["cost"] == Decimal("0.10")


def test_the_facts_name_run_reason_and_pull_request() -> None:
    told = dict(facts(BODY))
    assert told["Run"] == "r2  Failed (BranchMoved)"
    assert told["Pull request"] == "#4 https://example.com/4"
    assert told["Sandbox"] == "none"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, None),
        ({}, None),
        ({"settings": '{"valid": true, "message": "fine"}'}, None),
        ({"settings": '{"valid": false, "message": "bad"}'}, "bad"),
        ({"settings": "edited by hand"}, None),
    ],
)
def test_refused_settings_are_read_from_what_the_operator_wrote(
    data: dict[str, str] | None, why: str | None
) -> None:
    assert refused(data) == why
