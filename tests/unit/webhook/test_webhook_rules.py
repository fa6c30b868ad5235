"""The pure rules: signatures, names, commands, the policy and who may start what."""

from __future__ import annotations

import re

import pytest
from webhook_values import BOT, NOON, OWNER, STRANGER, at, issue, resource

from issuesandbox.domain.webhook.answers import deleted_marker, was_done, with_marker
from issuesandbox.domain.webhook.commands import (
    STATUS_MARKER,
    Command,
    Verb,
    mentions,
    read_command,
)
from issuesandbox.domain.webhook.hints import CommentHint, Happening, Ignored, IssueHint
from issuesandbox.domain.webhook.issue import Person
from issuesandbox.domain.webhook.judge import (
    asks_for,
    is_heard,
    is_permitted,
    judge_command,
    judge_issue,
    listens_to,
)
from issuesandbox.domain.webhook.live import ANNOTATION_ISSUE_TIME, ANNOTATION_ORDER, read_live
from issuesandbox.domain.webhook.orders import Act, Order, Refusal, StopReason
from issuesandbox.domain.webhook.plan import Change, Nothing, Question, plan
from issuesandbox.domain.webhook.policy import Policy, PolicyError, Rules, Source, read_policy
from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.domain.webhook.signature import is_signed, sign
from issuesandbox.domain.webhook.stamps import Stamp, moment, read_stamp
from issuesandbox.engine.inbox.index import IssueIndex

DEFAULTS = Rules()


def test_the_signature_is_githubs_own() -> None:
    # The example of GitHub's documentation.
    wanted = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    secret = b"It's a Secret to Everybody"
    assert sign(secret, b"Hello, World!") == wanted
    assert is_signed((b"new", secret), b"Hello, World!", wanted)
    assert not is_signed((b"new",), b"Hello, World!", wanted)
    assert not is_signed((secret,), b"Hello, World?", wanted)


def test_names_are_safe_readable_and_never_shared() -> None:
    names = {
        resource_name(repository, number)
        for repository in ("acme/app", "acme-app/x", "acme/app-x", "a" * 39 + "/" + "_" * 100)
        for number in (1, 12, 2**31 - 1)
    }
    assert len(names) == 12
    for name in names:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name), name
    assert resource_name("Acme/App", 1) == resource_name("acme/app", 1)
    assert resource_name("acme/app", 12).startswith("acme-app-12-")


COMMANDS = {
    "/run": Command(Verb.RUN, "", "run"),
    "  /run it\r\nand more ": Command(Verb.RUN, "it\nand more", "run"),
    "/stop": Command(Verb.STOP, "", "stop"),
    "/dance now": Command(Verb.UNKNOWN, "now", "dance"),
    "please /run": None,
    "> /run": None,
    "    /run": Command(Verb.RUN, "", "run"),
    "/etc/hosts is wrong": None,
    "/RUN": None,
    "/run <!-- issuesandbox:x -->": None,
    "": None,
}


@pytest.mark.parametrize(("body", "wanted"), COMMANDS.items(), ids=repr)
def test_only_the_beginning_of_a_comment_is_a_command(body: str, wanted: Command | None) -> None:
    assert read_command(body) == wanted


def test_a_mention_is_a_word_of_its_own_and_not_a_quote() -> None:
    assert mentions("hey @Agent, fix this", "agent")
    assert not mentions("mail me@agent", "agent")
    assert not mentions("@agent-smith", "agent")
    assert not mentions("> @agent do it", "agent")
    assert not mentions("@agent", "")


def test_stamps_survive_being_written_down() -> None:
    for stamp in (Stamp(NOON), Stamp(NOON, 7)):
        assert read_stamp(str(stamp)) == stamp
    assert Stamp(NOON) < Stamp(NOON, 7) < Stamp(NOON, 8) < Stamp(at(1))
    assert read_stamp("yesterday") is None
    assert read_stamp("2026-01-01T12:00:00Z x") is None


def test_the_first_entry_that_matches_counts_and_changes_the_defaults() -> None:
    policy = read_policy(
        """
        defaults: {label: bot, on: [opened]}
        repositories:
          - match: ["acme/*", "!acme/secret*"]
            rules: {namespace: acme}
          - match: ["*/special"]
            rules: {label: other}
        """
    )
    found = policy.rules_for("Acme/App")
    assert found is not None
    assert (found.label, found.namespace) == ("bot", "acme")
    assert found.on == {Source.OPENED}
    assert policy.rules_for("acme/secret-1") is None
    special = policy.rules_for("x/special")
    assert special is not None
    assert special.label == "other"
    assert Policy().rules_for("any/thing") == DEFAULTS


BAD_POLICIES = {
    "defaults: [": "not YAML, line 1",
    "- 1": "valid dictionary",
    "surprise: 1": "surprise",
    "defaults: {on: [everything]}": "defaults.on",
    "defaults: {template: {sandbox: {snapshto: x}}}": "snapshto",
    "defaults: {template: {issue: {number: 1}}}": "filled in by the webhook adapter",
    "defaults: {template: {run: {trigger: x}}}": "without `trigger`",
    "repositories: [{match: []}]": "repositories.0.match",
    "repositories: [{match: [a], rules: {label: 1}}]": "label",
    "defaults: {namespace: Not_A_Name}": "namespace",
}


@pytest.mark.parametrize(("text", "wanted"), BAD_POLICIES.items(), ids=BAD_POLICIES)
def test_a_bad_policy_is_refused_in_one_line_that_names_the_place(text: str, wanted: str) -> None:
    with pytest.raises(PolicyError, match=re.escape(wanted)) as error:
        read_policy(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("glob", "repository", "is_served"),
    [
        ("acme/*", "Acme/App", True),
        ("acme/*", "acme-evil/app", False),
        ("acme*lib", "acme-evil/lib", False),
        ("*lib", "evil/lib", False),
        ("acme", "acme/app", True),
        ("acme", "acme-evil/app", False),
    ],
)
def test_a_glob_does_not_reach_into_another_owners_name(
    glob: str, repository: str, is_served: bool
) -> None:
    policy = read_policy(f'repositories: [{{match: ["{glob}"]}}]')
    assert (policy.rules_for(repository) is not None) is is_served


def test_bots_and_we_ourselves_are_not_heard() -> None:
    assert is_heard(OWNER, DEFAULTS, "us[bot]")
    assert not is_heard(OWNER, DEFAULTS, "Owner")
    assert not is_heard(BOT, DEFAULTS, "us[bot]")
    assert is_heard(BOT, Rules(allowed_bots=frozenset({"Helper[bot]"})), "us[bot]")
    assert not is_heard(BOT, Rules(allowed_bots=frozenset({"*[bot]"})), "us[bot]")
    assert is_permitted(BOT, DEFAULTS) is False


def test_permission_is_asked_for_where_an_event_does_not_tell() -> None:
    assert is_permitted(OWNER, DEFAULTS) is True
    assert is_permitted(STRANGER, DEFAULTS) is False
    assert is_permitted(Person("somebody"), DEFAULTS) is None
    assert is_permitted(STRANGER, Rules(minimum_permission="write")) is None


def _judged(hint: IssueHint, rules: Rules = DEFAULTS) -> Order | Ignored:
    people = asks_for(hint, rules)
    permitted = all(is_permitted(each, rules) for each in people) if people else None
    return judge_issue(hint, rules, permitted)


def test_an_owners_issue_starts_a_run_and_a_strangers_does_not() -> None:
    for happening in (Happening.OPENED, Happening.EDITED):
        judged = _judged(IssueHint(happening, issue(), OWNER))
        assert isinstance(judged, Order)
        assert judged.act is Act.START
        assert judged.trigger is None
        refused = _judged(IssueHint(happening, issue(STRANGER), STRANGER))
        assert isinstance(refused, Ignored)


def test_a_label_counts_by_who_put_it_on() -> None:
    mine = IssueHint(Happening.LABELED, issue(STRANGER), STRANGER, "Agent")
    assert isinstance(_judged(mine), Ignored)
    theirs = IssueHint(Happening.LABELED, issue(STRANGER), Person("member"), "agent")
    assert asks_for(theirs, DEFAULTS) == (Person("member"),)
    judged = judge_issue(theirs, DEFAULTS, True)
    assert isinstance(judged, Order)
    assert judged.act is Act.START
    other = _judged(IssueHint(Happening.LABELED, issue(), OWNER, "bug"))
    assert isinstance(other, Order)
    assert other.act is Act.REFRESH


STOPS = {
    Happening.CLOSED: StopReason.CLOSED,
    Happening.DELETED: StopReason.GONE,
    Happening.TRANSFERRED: StopReason.GONE,
    Happening.UNLABELED: StopReason.UNLABELED,
}


@pytest.mark.parametrize("happening", STOPS)
def test_the_end_of_an_issue_stops_whoever_caused_it(happening: Happening) -> None:
    # R60
    judged = _judged(IssueHint(happening, issue(STRANGER), BOT, "agent"))
    assert isinstance(judged, Order)
    assert (judged.act, judged.reason) == (Act.STOP, STOPS[happening])
    assert judged.issue is None, "a stranger's text is not taken over"


def test_whatever_happens_to_a_closed_issue_shows_that_it_is_closed() -> None:
    judged = _judged(IssueHint(Happening.EDITED, issue(is_open=False), OWNER))
    assert isinstance(judged, Order)
    assert judged.reason is StopReason.CLOSED


def test_a_locked_issue_starts_nothing_unless_the_policy_says_so() -> None:
    hint = IssueHint(Happening.OPENED, issue(is_locked=True), OWNER)
    assert isinstance(_judged(hint), Ignored)
    assert isinstance(_judged(hint, Rules(ignore_locked=False)), Order)


def _said(text: str, *, permitted: bool = True, is_open: bool = True) -> object:
    hint = CommentHint(issue(is_open=is_open), 9, OWNER, text, NOON)
    command = listens_to(text, DEFAULTS)
    assert command is not None
    return judge_command(command, hint, DEFAULTS, permitted)


def test_commands_become_orders_only_for_permitted_people() -> None:
    run = _said("/run with care")
    assert isinstance(run, Order)
    assert (run.trigger, run.prompt, run.stamp) == ("c9", "with care", Stamp(NOON, 9))
    assert run.creates
    retry = _said("/retry")
    assert isinstance(retry, Order)
    assert retry.keeps_prompt
    assert not retry.creates
    stop = _said("/stop")
    assert isinstance(stop, Order)
    assert stop.act is Act.STOP
    assert _said("/status") is None
    for verb in ("run", "stop", "delete", "keep", "status"):
        refused = _said(f"/{verb}", permitted=False)
        assert isinstance(refused, Refusal)
        assert refused.is_stranger
    assert isinstance(_said("/dance", permitted=False), Ignored), "nobody answers noise"
    assert isinstance(_said("/continue"), Refusal)
    assert isinstance(_said("/run", is_open=False), Refusal)
    assert isinstance(_said("/stop", is_open=False), Order)


def test_our_own_words_are_known_by_their_place() -> None:
    stamp = Stamp(NOON, 9)
    told = with_marker("It is being deleted.", deleted_marker(stamp))
    assert was_done(stamp, [(told, at(0))])
    assert not was_done(Stamp(NOON, 10), [(told, at(0))])
    forged = f"changed `{deleted_marker(stamp)}`, and\n{deleted_marker(stamp)}\n\nBye."
    assert not was_done(stamp, [(forged, at(0))])
    assert was_done(stamp, [(f"{STATUS_MARKER} u -->\n\nSolved.", at(1))])
    assert not was_done(stamp, [(f"`{STATUS_MARKER} u -->` is our marker", at(1))])


def test_an_issue_that_is_gone_stops_whatever_was_ordered_since() -> None:
    body = resource(run={}, desiredState="Running")
    body["metadata"]["annotations"] = {ANNOTATION_ORDER: str(Stamp(at(60), 9))}
    live = read_live(body)
    late = plan(live, Order(Act.STOP, Stamp(NOON), reason=StopReason.CLOSED))
    assert isinstance(late, Nothing)
    gone = plan(live, Order(Act.STOP, Stamp(NOON), reason=StopReason.GONE))
    assert isinstance(gone, Change)
    assert not gone.is_running
    assert gone.order == live.order


def test_an_old_version_of_a_resource_hides_no_newer_one() -> None:
    index, newer, older = IssueIndex(()), resource(), resource()
    newer["metadata"]["resourceVersion"], older["metadata"]["resourceVersion"] = "10", "9"
    index.put(newer)
    index.put(older)
    live = index.owner("acme/app", 1)
    assert live is not None
    assert live.version == "10"
    # A list shows all there is, also after the store went back in time.
    index.replace("", [older])
    live = index.owner("acme/app", 1)
    assert live is not None
    assert live.version == "9"


def test_whatever_differs_within_one_second_is_asked_of_the_issue_itself() -> None:
    body = resource()
    body["metadata"]["annotations"] = {ANNOTATION_ISSUE_TIME: moment(NOON)}
    body["spec"]["issue"] |= issue(labels=("bug",)).fields
    live = read_live(body)
    assert isinstance(plan(live, Order(Act.REFRESH, Stamp(NOON), issue(labels=("bug",)))), Nothing)
    for other in (
        issue(labels=("bug", "agent")),
        issue(labels=("bug",), title="It bends"),
        issue(labels=("bug",), body="A little."),
    ):
        assert plan(live, Order(Act.REFRESH, Stamp(NOON), other)) is Question.ISSUE
