"""For each rule a planted violation is named, and what only looks like one is not."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from checker_history import (
    BRANCH,
    COMMIT,
    PARENT,
    RUN,
    ZERO,
    Paper,
    begun,
    finished,
    iso,
    published,
)

from issuesandbox.local.checker.evidence import Comment, Span
from issuesandbox.local.checker.verdict import ALWAYS, AT_REST, check

HUMAN = {"kind": "user", "login": "octocat"}


def broken(paper: Paper) -> set[str]:
    return {violation.rule for violation in check(paper.evidence())}


def two_sandboxes(paper: Paper) -> None:
    paper.born("s2", name="claude-issue-7-abc")


def next_generation_of_one_that_nobody_tried_to_delete(paper: Paper) -> None:
    paper.born("s2", name="claude-issue-7-g2", attempt="2")


def another_name_beside_one_that_cannot_be_deleted(paper: Paper) -> None:
    paper.call("sandbox.delete", "s1", status=409)
    paper.born("s2", name="claude-issue-7-abc", attempt="2")


def second_sandbox_in_another_organisation(paper: Paper) -> None:
    paper.born("s2", organization="elsewhere")


def id_never_written(paper: Paper) -> None:
    paper.object["status"] = {**paper.object.get("status", {}), "phase": "Preparing"}
    paper.object["status"].pop("sandbox", None)
    paper.see()


def foreign_sandbox_deleted(paper: Paper) -> None:
    paper.state("f1", "started", before=None, cause="admin", installation="other")
    paper.call("sandbox.delete", "f1")


def foreign_toolbox_used(paper: Paper) -> None:
    paper.state("f1", "started", before=None, cause="admin", installation="other")
    paper.call("toolbox.execute", "f1")


def foreign_comment_edited(paper: Paper) -> None:
    paper.act("issue_comment.created", 7, 900, identity=HUMAN)
    paper.act("issue_comment.edited", 7, 900)


def label_missing(paper: Paper) -> None:
    paper.state("s1", "destroyed")
    paper.born("s2", attempt="")


def finalizer_over_live_sandbox(paper: Paper) -> None:
    paper.ask_for_deletion()
    paper.release()


def finalizer_over_create_in_flight(paper: Paper) -> None:
    paper.state("s1", "destroyed")
    paper.ask_for_deletion()
    paper.release()
    paper.pass_time()
    paper.born("s2")
    paper.state("s2", "destroyed")


def start_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.call("sandbox.start", "s1")


def stop_unasked_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.call("sandbox.stop", "s1")


def stop_no_longer_asked_while_paused(paper: Paper) -> None:
    paper.ask_for_stop()
    paper.object["spec"]["desiredState"] = "Running"
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.call("sandbox.stop", "s1")


def deletion_of_a_stopped_one_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.ask_for_stop()
    paper.pass_time()
    paper.call("sandbox.delete", "s1")


def comment_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.act("issue_comment.edited", 7, 501)


def agent_started_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.call("toolbox.execute", "s1")
    paper.see(run={"agentStartedAt": iso(paper.at)})


def run_begun_while_paused(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.object["status"]["history"] = [{"id": RUN, "outcome": "Failed"}]
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.see(run={"id": "run-2", "outcome": None, "startedAt": iso(paper.at)})


def agent_started_while_frozen(paper: Paper) -> None:
    paper.frozen.append(Span(paper.moment()))
    paper.pass_time()
    paper.see(run={"agentStartedAt": iso(paper.at)})


def work_saved_while_paused(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def work_saved_while_frozen(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.frozen.append(Span(paper.moment()))
    paper.pass_time()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def recover_while_frozen(paper: Paper) -> None:
    paper.frozen.append(Span(paper.moment()))
    paper.pass_time()
    paper.call("sandbox.recover", "s1")


def orphan_reaped_while_frozen(paper: Paper) -> None:
    paper.state("o1", "started", before=None, cause="admin", uid="uid-gone", number="99")
    paper.frozen.append(Span(paper.moment()))
    paper.pass_time()
    paper.call("sandbox.delete", "o1")
    paper.state("o1", "destroyed")


def outcome_changed(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.see(run={"outcome": "Failed"})


def outcome_lost(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.see(run={"outcome": None})


def outcome_rewritten_in_history(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.object["status"]["history"] = [{"id": RUN, "outcome": "Succeeded"}]
    paper.see(run={"id": "run-2", "outcome": None})


def gate_after_stop(paper: Paper) -> None:
    paper.ask_for_stop()
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_after_a_stop_that_was_taken_back(paper: Paper) -> None:
    paper.ask_for_stop()
    paper.object["spec"]["desiredState"] = "Running"
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_after_deletion(paper: Paper) -> None:
    paper.ask_for_deletion()
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_while_frozen(paper: Paper) -> None:
    paper.frozen.append(Span(paper.moment()))
    paper.pass_time()
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_after_deadline(paper: Paper) -> None:
    paper.see(run={"deadlines": {"run": iso(paper.at - 1)}})
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def gate_after_timeout(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def push_without_gate(paper: Paper) -> None:
    paper.push(BRANCH, ZERO, COMMIT)


def push_of_another_commit(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.push(BRANCH, COMMIT, "c" * 40)


def push_to_another_branch(paper: Paper) -> None:
    paper.gate()
    paper.push("main", PARENT, COMMIT)


def push_onto_another_tip(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, PARENT, COMMIT)


def push_before_gate(paper: Paper) -> None:
    paper.push(BRANCH, ZERO, COMMIT)
    paper.pass_time()
    paper.gate()


def work_saved_after_stop(paper: Paper) -> None:
    paper.ask_for_stop()
    paper.pass_time()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def work_salvaged_after_stop(paper: Paper) -> None:
    paper.ask_for_stop()
    paper.pass_time()
    paper.push("wip/issue-7-run-1-1", ZERO, COMMIT)


def work_saved_after_deletion_during_the_run(paper: Paper) -> None:
    paper.ask_for_deletion()
    paper.pass_time()
    paper.see(run={"outcome": "Cancelled"})
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def pull_request_after_stop(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.ask_for_stop()
    paper.pass_time()
    paper.act("pull_request.opened", 8, 601)
    paper.see(run={"pullRequest": {"number": 8}})


def secret_in_log(paper: Paper) -> None:
    paper.secrets["Daytona key"] = "dtn_0123456789"
    paper.texts["operator.log"] = "all well\ncalling with dtn_0123456789"


def installation_token_in_log(paper: Paper) -> None:
    paper.texts["operator.log"] = f"all well\ncalling with ghs_{'Ab1' * 12}"


def sandbox_without_resource(paper: Paper) -> None:
    paper.state("s9", "stopped", before=None, cause="admin", uid="gone")


def decided_and_never_pushed(paper: Paper) -> None:
    paper.gate()


def pushed_twice(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.push(BRANCH, ZERO, COMMIT)


def decided_twice(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.gate("c" * 40)
    paper.push(BRANCH, ZERO, "c" * 40)


def second_pull_request(paper: Paper) -> None:
    for number in (8, 9):
        paper.act("pull_request.opened", number, 600 + number)
        paper.see(run={"branch": BRANCH, "pullRequest": {"number": number}})


def success_without_pull_request(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.see(run={"outcome": "Succeeded"})


def success_without_pull_request_stopped_later(paper: Paper) -> None:
    success_without_pull_request(paper)
    paper.ask_for_stop()


def unknown_pull_request(paper: Paper) -> None:
    paper.act("pull_request.opened", 8, 601)


def second_comment(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.say(ident=502)


def no_comment(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.comments.clear()


PLANTED: dict[Callable[[Paper], None], str] = {
    two_sandboxes: "one-live-sandbox",
    next_generation_of_one_that_nobody_tried_to_delete: "one-live-sandbox",
    another_name_beside_one_that_cannot_be_deleted: "one-live-sandbox",
    second_sandbox_in_another_organisation: "one-live-sandbox",
    id_never_written: "id-before-use",
    foreign_sandbox_deleted: "foreign-untouched",
    foreign_toolbox_used: "foreign-untouched",
    foreign_comment_edited: "foreign-comments-untouched",
    label_missing: "all-labelled",
    finalizer_over_live_sandbox: "finalizer-last no-orphan",
    finalizer_over_create_in_flight: "finalizer-last",
    start_while_paused: "hands-off-while-paused",
    stop_unasked_while_paused: "hands-off-while-paused",
    stop_no_longer_asked_while_paused: "hands-off-while-paused",
    deletion_of_a_stopped_one_while_paused: "hands-off-while-paused",
    comment_while_paused: "hands-off-while-paused",
    agent_started_while_paused: "hands-off-while-paused",
    run_begun_while_paused: "hands-off-while-paused",
    agent_started_while_frozen: "hands-off-while-paused",
    work_saved_while_paused: "hands-off-while-paused",
    work_saved_while_frozen: "hands-off-while-paused",
    recover_while_frozen: "hands-off-while-paused",
    orphan_reaped_while_frozen: "hands-off-while-paused",
    outcome_changed: "outcome-once",
    outcome_lost: "outcome-once",
    outcome_rewritten_in_history: "outcome-once",
    gate_after_stop: "gate-before-stop",
    gate_after_a_stop_that_was_taken_back: "gate-before-stop",
    gate_after_deletion: "gate-before-stop",
    gate_while_paused: "gate-before-stop",
    gate_while_frozen: "gate-before-stop",
    gate_after_deadline: "gate-before-stop",
    gate_after_timeout: "gate-before-stop",
    push_without_gate: "push-through-gate",
    push_of_another_commit: "push-through-gate",
    push_to_another_branch: "push-through-gate",
    push_onto_another_tip: "push-through-gate",
    push_before_gate: "push-through-gate",
    work_saved_after_stop: "no-work-saved-after-stop",
    work_salvaged_after_stop: "no-work-saved-after-stop",
    work_saved_after_deletion_during_the_run: "no-work-saved-after-stop",
    pull_request_after_stop: "no-pull-request-after-stop",
    secret_in_log: "no-secret",
    installation_token_in_log: "no-secret",
    sandbox_without_resource: "no-orphan",
    decided_and_never_pushed: "one-push",
    pushed_twice: "one-push",
    decided_twice: "one-push",
    second_pull_request: "one-pull-request",
    success_without_pull_request: "one-pull-request",
    success_without_pull_request_stopped_later: "one-pull-request",
    unknown_pull_request: "one-pull-request",
    second_comment: "one-comment",
    no_comment: "one-comment",
}


@pytest.mark.parametrize("history", [begun, published, finished])
def test_a_clean_history_yields_nothing(history: Callable[[], Paper]) -> None:
    assert check(history().evidence()) == []


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_violation_is_named_and_nothing_else(plant: Callable[[Paper], None]) -> None:
    paper = begun()
    plant(paper)
    assert broken(paper) == set(PLANTED[plant].split())


def test_every_rule_has_a_planted_violation() -> None:
    assert {name for names in PLANTED.values() for name in names.split()} == {*ALWAYS, *AT_REST}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_rule_that_lapses_says_nothing(plant: Callable[[Paper], None]) -> None:
    paper = begun()
    plant(paper)
    assert check(paper.evidence(), lapsed=PLANTED[plant].split()) == []


def test_rules_of_rest_wait_for_rest() -> None:
    paper = begun()
    sandbox_without_resource(paper)
    assert check(paper.evidence(), at_rest=False) == []


def test_a_rule_that_does_not_exist_cannot_lapse() -> None:
    with pytest.raises(ValueError, match="no such rule: no-orphans"):
        check(begun().evidence(), lapsed=["no-orphans"])


def test_a_violation_tells_rule_subject_and_time() -> None:
    paper = begun()
    two_sandboxes(paper)
    [violation] = check(paper.evidence())
    assert str(violation).startswith(
        "one-live-sandbox: acme/shop#7: sandbox s2 was created while s1 was live (20"
    )


# What looks like a violation and is none.


def replaced_after_destruction(paper: Paper) -> None:
    paper.state("s1", "destroying")
    paper.born("s2", attempt="2")


def replaced_after_hidden_error(paper: Paper) -> None:
    paper.state("s1", "error")
    paper.state("s1", "hidden")
    paper.born("s2", attempt="2")


def next_generation_beside_one_that_cannot_be_deleted(paper: Paper) -> None:
    paper.call("sandbox.delete", "s1", status=409)
    paper.born("s2", name="claude-issue-7-g2", attempt="2")


def next_generation_beside_one_whose_deletion_is_never_answered(paper: Paper) -> None:
    paper.call("sandbox.delete", "s1", status=None)
    paper.born("s2", name="claude-issue-7-g2", attempt="2")


def planted_double(paper: Paper) -> None:
    paper.born("s2", cause="admin")


def same_number_elsewhere(paper: Paper) -> None:
    paper.born("s2", repository="acme/other")


def foreign_only_looked_at(paper: Paper) -> None:
    paper.state("f1", "started", before=None, cause="admin", installation="other")
    paper.call("sandbox.get", "f1")
    paper.call("sandbox.delete", "f1", identity="org/somebody-else")


def foreign_without_resource(paper: Paper) -> None:
    paper.state("f1", "started", before=None, cause="admin", installation="other", uid="gone")


def orphaned_by_policy(paper: Paper) -> None:
    paper.object["spec"]["deletionPolicy"] = "Orphan"
    paper.ask_for_deletion()
    paper.release()


def call_in_flight_when_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.call("sandbox.start", "s1")


def start_after_pause(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.annotate("paused", None)
    paper.call("sandbox.start", "s1")


def stop_asked_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.ask_for_stop()
    paper.call("toolbox.execute", "s1")
    paper.call("sandbox.stop", "s1")


def stop_seen_late_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.call("sandbox.stop", "s1")
    paper.ask_for_stop()


def deletion_asked_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.ask_for_deletion()
    paper.call("sandbox.delete", "s1")
    paper.state("s1", "destroyed")
    paper.release()


def time_out_while_paused(paper: Paper) -> None:
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.see(run={"outcome": "TimedOut"})
    paper.call("sandbox.stop", "s1")


def next_run_in_the_same_sandbox(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.object["status"]["history"] = [{"id": RUN, "outcome": "Failed"}]
    paper.see(run={"id": "run-2", "outcome": None})
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def stop_too_late_for_the_push(paper: Paper) -> None:
    paper.gate()
    paper.ask_for_stop()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.see(run={"outcome": "Succeeded", "reason": "TooLateToStop"})


def pull_request_before_stop(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.act("pull_request.opened", 8, 601)
    paper.ask_for_stop()
    paper.see(run={"pullRequest": {"number": 8}})


def work_saved_after_time_out(paper: Paper) -> None:
    paper.see(run={"outcome": "TimedOut"})
    paper.pass_time()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def work_salvaged_that_the_next_sandbox_came_to_as_well(paper: Paper) -> None:
    paper.push("wip/issue-7-run-1-1", ZERO, COMMIT)
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)


def work_saved_when_deleted_after_the_run(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.ask_for_deletion()
    paper.pass_time()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def save_in_flight_when_stopped(paper: Paper) -> None:
    paper.see(run={"outcome": "Failed"})
    paper.ask_for_stop()
    paper.push("wip/issue-7-run-1", ZERO, COMMIT)


def pushed_without_credentials_for_a_pull_request(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.see(run={"outcome": "Succeeded", "reason": "Pushed"})


def agent_started_before_the_pause_and_told_in_it(paper: Paper) -> None:
    started = iso(paper.at)
    paper.annotate("paused", "true")
    paper.pass_time()
    paper.see(run={"agentStartedAt": started})


def somebody_else_acts(paper: Paper) -> None:
    paper.push("main", PARENT, "d" * 40, identity=HUMAN)
    paper.act("pull_request.opened", 30, 31, identity=HUMAN)
    paper.comments.append(Comment("acme/shop", 7, 32, "me too"))


def remote_refused(paper: Paper) -> None:
    paper.gate()
    paper.see(run={"outcome": "Failed", "reason": "BranchMoved"})


def second_run_updates_the_pull_request(paper: Paper) -> None:
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.act("pull_request.opened", 8, 601)
    paper.see(run={"pullRequest": {"number": 8}, "outcome": "Succeeded"})
    publish = {"commit": "c" * 40, "old": COMMIT, "at": iso(paper.at)}
    paper.see(run={"id": "run-2", "outcome": None, "publish": publish})
    paper.push(BRANCH, COMMIT, "c" * 40)


INNOCENT = [
    replaced_after_destruction,
    replaced_after_hidden_error,
    next_generation_beside_one_that_cannot_be_deleted,
    next_generation_beside_one_whose_deletion_is_never_answered,
    planted_double,
    same_number_elsewhere,
    foreign_only_looked_at,
    foreign_without_resource,
    orphaned_by_policy,
    call_in_flight_when_paused,
    start_after_pause,
    stop_asked_while_paused,
    stop_seen_late_while_paused,
    deletion_asked_while_paused,
    time_out_while_paused,
    next_run_in_the_same_sandbox,
    stop_too_late_for_the_push,
    pull_request_before_stop,
    work_saved_after_time_out,
    work_salvaged_that_the_next_sandbox_came_to_as_well,
    work_saved_when_deleted_after_the_run,
    save_in_flight_when_stopped,
    pushed_without_credentials_for_a_pull_request,
    agent_started_before_the_pause_and_told_in_it,
    somebody_else_acts,
    remote_refused,
    second_run_updates_the_pull_request,
]


@pytest.mark.parametrize("act", INNOCENT, ids=lambda act: act.__name__)
def test_the_innocent_are_not_accused(act: Callable[[Paper], None]) -> None:
    paper = begun()
    act(paper)
    assert check(paper.evidence()) == []


def test_a_forced_finalizer_is_a_persons_decision() -> None:
    paper = begun()
    paper.annotate("force-finalize", "true")
    paper.ask_for_deletion()
    paper.release()
    assert broken(paper) == {"no-orphan"}


def test_without_github_nothing_is_asked_of_it() -> None:
    paper = begun()
    paper.with_github = False
    paper.see(run={"outcome": "Failed"})
    assert check(paper.evidence()) == []


def test_time_pushed_forward_at_daytona_does_not_disturb_the_order() -> None:
    paper = begun()
    hour = 3600
    for entry in paper.daytona:
        entry["at"] += hour
    paper.call("sandbox.delete", "s1")
    paper.state("s1", "destroyed")
    for entry in paper.daytona[-2:]:
        entry["at"] += hour
    paper.ask_for_deletion()
    paper.release()
    assert check(paper.evidence()) == []


SECRET = 'k+y/"with\nall&of=it?'


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("plain", SECRET),
        ("url-encoded", f"?key={quote(SECRET, safe='')}"),
        ("escaped", json.dumps({"key": SECRET})),
        *(
            ("base64", encode(f"{'x' * before}{SECRET}tail".encode()).decode())
            for before in range(3)
            for encode in (base64.b64encode, base64.urlsafe_b64encode)
        ),
    ],
)
def test_a_secret_is_found_in_every_disguise_and_not_repeated(form: str, text: str) -> None:
    paper = begun()
    paper.secrets["the key"] = SECRET
    paper.texts["some.log"] = f"one\ntwo\n{text}"
    [violation] = check(paper.evidence())
    assert (violation.subject, violation.text) == ("some.log", f"line 3 holds the key ({form})")


def test_a_secret_too_short_to_search_for_is_refused() -> None:
    paper = begun()
    paper.secrets["pin"] = "1234567"
    with pytest.raises(ValueError, match="secret pin is too short"):
        check(paper.evidence())
