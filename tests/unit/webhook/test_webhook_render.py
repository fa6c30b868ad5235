"""What is applied to a resource, and what of it is left to others."""

from __future__ import annotations

from typing import Any

import pytest
from webhook_values import NOON, STRANGER, issue, managed, resource

from issuesandbox.api.names import ANNOTATION_ANNOUNCED, FINALIZER
from issuesandbox.domain.webhook.issue import Person
from issuesandbox.domain.webhook.live import MANAGER, foreign_paths, read_live
from issuesandbox.domain.webhook.orders import Act, Order
from issuesandbox.domain.webhook.plan import Change, plan_new
from issuesandbox.domain.webhook.render import render_change, render_new
from issuesandbox.domain.webhook.stamps import Stamp

OURS = managed(MANAGER, {"f:issue": {"f:repository": {}, "f:number": {}}})
RUN: dict[str, Any] = {"setup": ["make"], "limits": {"agent": "9m"}}
TEMPLATE: dict[str, Any] = {"sandbox": {"snapshot": "base"}, "run": RUN}
RUNNING = Change(is_running=True, trigger="t2", keeps_prompt=False)


def test_a_new_resource_is_the_template_and_the_issue() -> None:
    change = plan_new(Order(Act.START, Stamp(NOON), issue(labels=("bug",))))
    assert isinstance(change, Change)
    made = render_new(change, ("issues", "name"), TEMPLATE, by_global_id=True)
    assert made["spec"]["issue"] == {
        "repository": "acme/app",
        "number": 1,
        "id": 77,
        "title": "It breaks",
        "body": "Badly.",
        "labels": ["bug"],
        "author": "owner",
    }
    assert made["spec"]["sandbox"] == {"snapshot": "base"}
    assert made["spec"]["run"] == {**RUN, "trigger": issue().trigger}
    assert "trigger" not in RUN
    assert made["metadata"]["finalizers"] == [FINALIZER]
    assert made["metadata"]["annotations"][ANNOTATION_ANNOUNCED] == "claude-issue-77"


def test_a_change_leaves_on_what_the_operator_relies_on() -> None:
    body = resource([OURS])
    body["metadata"] |= {
        "finalizers": ["example.com/other", FINALIZER],
        "annotations": {ANNOTATION_ANNOUNCED: "claude-issue-1"},
    }
    applied, _ = render_change(RUNNING, body, TEMPLATE)
    assert applied["metadata"]["finalizers"] == [FINALIZER]
    assert applied["metadata"]["annotations"][ANNOTATION_ANNOUNCED] == "claude-issue-1"
    released, _ = render_change(RUNNING, resource([OURS]), TEMPLATE)
    assert "finalizers" not in released["metadata"], "what was taken off stays off"
    assert ANNOTATION_ANNOUNCED not in released["metadata"]["annotations"]


def test_the_issues_fields_fit_the_resources_limits() -> None:
    long = issue(
        Person("not a login!"),
        title="x" * 300,
        body="é" * 40_000,
        labels=("", "y" * 51, *(f"l{n}" for n in range(200))),
        url="javascript:x",
    )
    fields = long.fields
    assert len(fields["title"]) == 256
    assert len(fields["body"].encode()) <= 65536
    assert len(fields["labels"]) == 100
    assert "author" not in fields
    assert "url" not in fields


def _applied(managers: list[dict[str, Any]], **spec: Any) -> tuple[dict[str, Any], Any]:
    return render_change(RUNNING, resource(managers, **spec), TEMPLATE)


def test_a_resource_of_ours_gets_the_whole_of_our_part_again() -> None:
    applied, held = _applied([OURS], run={"trigger": "t1", "prompt": "old"})
    assert applied["spec"]["issue"] == {"repository": "Acme/App", "number": 1}
    assert applied["spec"]["sandbox"] == {"snapshot": "base"}
    assert applied["spec"]["run"] == {**RUN, "trigger": "t2"}
    assert applied["metadata"]["resourceVersion"] == "5"
    assert applied["metadata"]["uid"] == "u"
    assert held == ()


def test_a_resource_made_by_hand_gets_no_template() -> None:
    applied, _ = _applied([managed("kubectl", {"f:issue": {"f:number": {}}})], run={})
    assert applied["spec"] == {"issue": {}, "desiredState": "Running", "run": {"trigger": "t2"}}


def test_what_others_wrote_is_left_out_and_named_where_it_matters() -> None:
    theirs = managed(
        "argocd-controller",
        {
            "f:sandbox": {"f:snapshot": {}},
            "f:desiredState": {},
            "f:run": {".": {}, "f:limits": {"f:agent": {}}, "f:trigger": {}},
        },
    )
    spec = {"desiredState": "Stopped", "sandbox": {"snapshot": "mine"}, "run": {"trigger": "x"}}
    applied, held = _applied([OURS, theirs], **spec)
    assert "desiredState" not in applied["spec"]
    assert applied["spec"]["sandbox"] == {}
    assert applied["spec"]["run"] == {"setup": ["make"], "limits": {}}
    assert held == (("spec", "desiredState"), ("spec", "run", "trigger"))


@pytest.mark.parametrize(
    ("manager", "operation", "is_overruled"),
    [
        ("kubectl-patch", "Update", True),
        ("kubectl-edit", "Update", True),
        ("kubectl", "Apply", False),
        ("kubectl-client-side-apply", "Update", False),
        ("flux", "Apply", False),
    ],
)
def test_who_patched_a_trigger_ordered_one_run_and_who_applies_it_means_it(
    manager: str, operation: str, is_overruled: bool
) -> None:
    theirs = managed(manager, {"f:run": {"f:trigger": {}, "f:prompt": {}}})
    theirs["operation"] = operation
    change = Change(is_running=True, trigger="t2", prompt="new", keeps_prompt=False)
    body = resource([OURS, theirs], run={"trigger": "t1", "prompt": "old"})
    applied, held = render_change(change, body, {})
    ordered = {"trigger": "t2", "prompt": "new"}
    assert applied["spec"]["run"] == (ordered if is_overruled else {})
    assert [path[-1] for path in held] == ([] if is_overruled else ["prompt", "trigger"])
    # Without words of its own the next order does not inherit theirs, unless they last.
    applied, _ = render_change(RUNNING, body, {})
    assert applied["spec"]["run"] == ({"trigger": "t2", "prompt": ""} if is_overruled else {})
    applied, _ = render_change(RUNNING, body, {"run": {"prompt": "always"}})
    assert applied["spec"]["run"].get("prompt") == ("always" if is_overruled else None)


def test_running_that_the_api_server_filled_in_is_nobodys_word() -> None:
    filled = managed("kubectl-create", {"f:desiredState": {}})
    assert foreign_paths(resource([filled], desiredState="Running")) == frozenset()
    assert foreign_paths(resource([filled], desiredState="Stopped"))


def test_our_own_command_line_may_be_overruled_from_github() -> None:
    tool = managed("kubectl-isb", {"f:desiredState": {}, "f:run": {"f:trigger": {}}})
    assert foreign_paths(resource([tool], desiredState="Stopped")) == frozenset()


def test_annotations_that_somebody_broke_count_as_nothing() -> None:
    body = resource([OURS])
    body["metadata"]["annotations"] = {
        "issuesandbox.dev/issue-time": "soon",
        "issuesandbox.dev/order": "first",
        "issuesandbox.dev/stopped-for": "fun",
    }
    live = read_live(body)
    assert (live.issue_time, live.order, live.stopped_for) == (None, None, None)
    assert live.is_ours
    assert live.repository == "acme/app"


def test_a_strangers_author_name_is_kept_as_data() -> None:
    assert issue(STRANGER).fields["author"] == "stranger"
