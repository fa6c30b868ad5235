"""`kubectl isb verify`: the steps of the manual test, judged by what a resource says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from issuesandbox.entry.plugin.checks import Finding, Verdict
from issuesandbox.entry.plugin.verify_steps import (
    STEPS,
    continued,
    refused,
    replaced,
    restarted,
    sandbox_runs,
    stopped,
    succeeded,
    used,
)

PAGE = (Path(__file__).parents[3] / "docs" / "manual-test.md").read_text()
Look = Callable[[dict[str, Any]], Iterator[Finding]]

RUN = {
    "id": "r1",
    "phase": "Finished",
    "outcome": "Succeeded",
    "branch": "claude-fix-issue-7",
    "publish": {"confirmedAt": "2030-01-01T00:00:00Z"},
    "pullRequest": {"number": 4, "url": "https://example.com/4"},
    "usage": {"outputTokens": 10, "costUSD": "0.10"},
}
DONE = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "Done."}
REFUSED = {"type": "Synced", "status": "False", "reason": "Unauthorized", "message": "No."}
BOX = {"id": "new", "name": "claude-issue-7", "state": "started", "attempt": 1}


def body(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": "one"},
        "spec": {"issue": {"repository": "octo/hello", "number": 7}},
        "status": status,
    }


CASES: list[tuple[Look, dict[str, Any], dict[str, Any]]] = [
    (sandbox_runs, {"phase": "Idle", "sandbox": BOX}, {"sandbox": {**BOX, "state": "stopped"}}),
    (
        restarted,
        {"phase": "Idle", "sandbox": BOX, "counters": {"starts": 1}},
        {"counters": {"starts": 0}},
    ),
    (
        replaced,
        {"phase": "Idle", "sandbox": {**BOX, "attempt": 2}, "retired": [{"id": "old"}]},
        {"retired": [{"id": "new"}]},
    ),
    (
        succeeded,
        {"run": RUN, "comment": {"id": 1}, "conditions": [DONE]},
        {"run": {**RUN, "publish": {}}},
    ),
    (
        stopped,
        {"run": {"outcome": "Cancelled"}, "sandbox": {**BOX, "state": "stopped"}},
        {"run": {"outcome": "Cancelled", "publish": {"commit": "c"}}},
    ),
    (
        stopped,
        {
            "run": {"outcome": "Cancelled", "finishedAt": "2030-01-01T00:00:29Z"},
            "stopRequestedAt": "2030-01-01T00:00:00Z",
        },
        {"stopRequestedAt": "2029-12-31T23:59:00Z"},
    ),
    (
        continued,
        {
            "run": RUN,
            "comment": {"id": 1},
            "conditions": [DONE],
            "history": [{"pullRequestNumber": 4}, {}],
        },
        {"history": [{"pullRequestNumber": 3}]},
    ),
    (refused, {"conditions": [REFUSED], "sandbox": BOX}, {"sandbox": {}}),
    (
        used,
        {
            "usage": {
                "states": [{"state": "started", "seconds": 9}],
                "outputTokens": 1,
                "costUSD": "0.10",
            }
        },
        {"usage": {}},
    ),
]


@pytest.mark.parametrize(("look", "good", "spoilt"), CASES)
def test_a_step_is_content_with_what_is_right_and_finds_what_is_not(
    look: Look, good: dict[str, Any], spoilt: dict[str, Any]
) -> None:
    assert {each.verdict for each in look(body(**good))} == {Verdict.OK}
    assert Verdict.FAILED in {each.verdict for each in look(body(**{**good, **spoilt}))}
    assert Verdict.FAILED in {each.verdict for each in look(body())}, "an empty status is not right"


def test_the_page_has_the_same_steps_and_each_is_verified() -> None:
    steps = re.findall(r"^(\d+)\. \*\*(.+?)\.\*\*(.*?)(?=^\d+\. |\Z)", PAGE, re.M | re.S)
    assert [(int(number), title) for number, title, _ in steps] == [
        (number, step.title) for number, step in enumerate(STEPS, 1)
    ]
    for number, _, text in steps:
        named = " [A-Za-z]" if STEPS[int(number) - 1].about_a_resource else "`"
        assert re.search(rf"`kubectl isb verify {number}{named}", text), f"step {number}"
