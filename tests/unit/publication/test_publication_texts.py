"""Branch names, commit messages and pull requests."""

from __future__ import annotations

import re
import subprocess
from itertools import islice

from publication_values import pushed, resource, status

from issuesandbox.domain.collection import CommitOrder
from issuesandbox.domain.publication import (
    branch_names,
    commit_message,
    pull_order,
    revised,
    wip_branch,
)


def test_branches_are_numbered_when_taken() -> None:
    assert list(islice(branch_names(12), 3)) == [  # R42
        "claude-fix-issue-12",
        "claude-fix-issue-12-2",
        "claude-fix-issue-12-3",
    ]
    assert len(set(branch_names(12))) == 20


def test_saved_work_has_a_branch_that_git_takes() -> None:
    assert wip_branch(12, "abc123") == "wip/issue-12-abc123"
    name = wip_branch(12, "..odd~^: id/../x.lock")
    subprocess.run(["git", "check-ref-format", "--branch", name], check=True, capture_output=True)


def test_the_commit_message_names_issue_and_run() -> None:
    text = commit_message(12, "It\nbreaks @octocat fixes #1 " + "x" * 100, "r1")
    subject, blank, closes, *_ = text.split("\n")
    assert subject.startswith("Fix #12: It breaks @\u2060octocat fixes #\u20601")
    assert len(subject) <= 72
    assert (blank, closes) == ("", "Closes #12")
    assert "Run: r1" in text
    assert commit_message(12, " ", "r1").startswith("Fix #12\n")
    assert CommitOrder("0" * 40, "a", "b", status().run.started_at, text).rest()  # type: ignore[union-attr]


def test_a_pull_request_closes_its_issue_and_no_other() -> None:
    summary = {"text": "Closes #99\n\n```\nopen @octocat <!-- x -->", "tests": "12 passed"}
    order = pull_order(resource(), status(run=pushed(), summary=summary), "main")
    assert (order.head, order.base, order.draft) == ("claude-fix-issue-12", "main", False)
    assert order.title == "Fix #12: It breaks"
    assert re.findall(r"(?i)closes #\d+", order.body) == ["Closes #12"]
    assert "@octocat" not in order.body
    assert "3 files changed (1 created, 2 modified, 0 deleted)" in order.body
    assert "Tests: 12 passed" in order.body


def test_a_pull_request_needs_neither_title_nor_summary() -> None:
    order = pull_order(resource(title=None, draft=True), status(), "develop")
    assert order.title == "Fix #12"
    assert order.draft
    assert "Closes #12" in order.body


def test_texts_stay_within_githubs_limits() -> None:
    summary = {"text": "@a #1 <b> " * 2000}
    long = resource(title="@x " * 85)
    order = pull_order(long, status(run=pushed(), summary=summary), "main")
    assert len(order.title) <= 256
    assert len(order.body) <= 65536


def test_what_people_wrote_into_a_pull_request_stays() -> None:
    first = pull_order(resource(), status(run=pushed(), summary={"text": "one"}), "main")
    second = pull_order(resource(), status(run=pushed(), summary={"text": "two"}), "main")
    edited = f"Please review.\n\n{first.body}\n\nThanks!"
    made = revised(second, "A better title", edited)
    assert made.title == "A better title"
    assert made.body == f"Please review.\n\n{second.body}\n\nThanks!"
    assert revised(second, "t", first.body).body == second.body
    assert revised(second, "t", "All mine now.").body == "All mine now."
    assert revised(second, "", "").body == second.body
