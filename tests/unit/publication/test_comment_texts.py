"""What the comment on the issue says, by kind of ending."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from publication_values import NOW, PULL, UID, ended, pushed, resource, status

from issuesandbox.api.status import Status
from issuesandbox.domain.comment import Activity, comment_text, marker_of


def _body(of: Status) -> str:
    return comment_text(resource(), of, NOW).body


def test_while_it_runs_it_tells_how_to_stop_it() -> None:
    made = comment_text(resource(), status(), NOW, Activity("Bash", 4))
    assert made.body.startswith(marker_of(UID))
    for part in (
        "Working on it: executing",
        "#12 It breaks",
        "`claude-issue-12`",
        "`r1`",
        "3 min",
        "`Bash`, turn 4",
        "`/stop`",
        "kubectl isb stop acme-app-12 -n team",
    ):
        assert part in made.body


def test_minutes_and_tools_are_no_news() -> None:
    first = comment_text(resource(), status(), NOW, Activity("Bash"))
    second = comment_text(resource(), status(), NOW + timedelta(minutes=1), Activity("Edit"))
    assert first.digest == second.digest
    assert first.body != second.body
    assert comment_text(resource(), status("Collecting"), NOW).digest != first.digest


@pytest.mark.parametrize(
    ("of", "parts"),
    [
        (
            ended("Succeeded", {**pushed(), "pullRequest": PULL}),
            ["Solved: see pull request [#13](https://github.com/acme/app/pull/13)", "/continue"],
        ),
        (
            ended("Failed", {**pushed(), "reason": "PullRequestFailed", "message": "no rights"}),
            ["branch `claude-fix-issue-12`, but have no pull request", "> no rights", "by hand"],
        ),
        (
            ended("Succeeded", {"reason": "NoChanges"}, summary={"text": "All is well."}),
            ["Analysed: nothing had to be changed", "> All is well."],
        ),
        (
            ended("Failed", {"reason": "AgentUnauthorized", "message": "401 from the model"}),
            ["Failed: `AgentUnauthorized`", "> 401 from the model", "replace it"],
        ),
        (ended("Failed", {"reason": "Whatever"}), ["Failed: `Whatever`", "/retry"]),
        (ended("Cancelled", {"reason": "StopRequested"}), ["### Stopped\n", "/retry"]),
        (
            ended("Cancelled", {**pushed(), "reason": "TooLateToStop"}),
            ["Stopped, after the branch was pushed", "`claude-fix-issue-12`"],
        ),
        (
            ended("TimedOut", {"reason": "InactivityTimeout"}),
            ["Timed out", "InactivityTimeout", "fell silent"],
        ),
    ],
)
def test_each_ending_has_its_own_words(of: Status, parts: list[str]) -> None:
    body = _body(of)  # R44
    for part in parts:
        assert part in body


def test_the_final_summary_has_everything() -> None:
    of = ended(
        "Succeeded",
        {
            **pushed(),
            "pullRequest": PULL,
            "changes": [{"path": f"f{index}`.py", "kind": "Modified"} for index in range(14)],
        },
        summary={"text": "Fixed it.", "tests": "12 passed"},
        sandboxDeletion={"success": True, "message": "Sandbox deleted.", "sandboxId": "s1"},
    )
    body = _body(of)  # R48
    for part in (
        "**Task:** #12 It breaks",
        "1 created, 2 modified, 0 deleted",
        "`claude-fix-issue-12`, commit `c0ffee000000`",
        "**Tests:** 12 passed",
        "`claude-issue-12` deleted",
        "**Status:** Succeeded",
        "took 4 min",
        "> Fixed it.",
        "- and 4 more",
    ):
        assert part in body
    assert "f1'.py" in body


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({"success": False, "message": "x"}, "is being deleted"),
        ({"success": False, "message": "x", "error": "500"}, "could not be deleted yet"),
        (
            {"success": False, "message": "x", "skipped": True, "skipReason": "for debugging"},
            "kept: for debugging",
        ),
    ],
)
def test_cleanup_is_told_and_is_news(record: dict[str, Any], line: str) -> None:
    before = comment_text(resource(), ended("Failed"), NOW)
    after = comment_text(resource(), ended("Failed", sandboxDeletion=record), NOW)
    assert line in after.body
    assert after.digest != before.digest


def test_saved_work_is_named() -> None:
    saved = {"kind": "Branch", "ref": "wip/issue-12-r1", "at": NOW.isoformat()}
    assert "saved in branch `wip/issue-12-r1`" in _body(ended("TimedOut", {"savedWork": saved}))


def test_nobodys_words_can_forge_the_marker_or_notify() -> None:
    nasty = f"{marker_of(UID)} @octocat <img src=x> closes #5"
    of = ended("Failed", {"reason": "X", "message": nasty}, summary={"text": nasty * 300})
    body = comment_text(resource(title=nasty[:200]), of, NOW).body
    assert body.count(marker_of(UID)) == 1
    assert "@octocat" not in body
    assert "<img" not in body
    assert "#5" not in body
    assert len(body) < 65536
