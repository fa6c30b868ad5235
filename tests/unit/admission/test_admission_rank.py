"""Who is admitted, who waits and why: single rules, then laws that hold for every crowd."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.api.conditions import Reason
from issuesandbox.domain.admission import Candidate, Limits, Verdict, rank

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def candidate(uid: str, repository: str = "octo/hello", **fields: object) -> Candidate:
    given = {
        "namespace": "team-a",
        "name": f"issue-{uid}",
        "number": zlib.crc32(uid.encode()) % 10**6 + 1,
        "created": f"2026-07-01T11:00:{len(uid):02}Z",
        "wants": True,
        **fields,
    }
    return Candidate(uid=uid, repository=repository, **given)  # type: ignore[arg-type]


def crowd(count: int, repository: str, **fields: object) -> list[Candidate]:
    return [
        candidate(
            f"{repository}-{place:03}",
            repository,
            number=place + 1,
            created=f"2026-07-01T11:{place // 60:02}:{place % 60:02}Z",
            **fields,
        )
        for place in range(count)
    ]


def admitted(verdicts: dict[str, Verdict]) -> list[str]:
    return sorted(uid for uid, verdict in verdicts.items() if verdict.admitted)


def test_the_oldest_go_first_and_the_others_learn_their_place() -> None:
    verdicts = rank(crowd(4, "octo/hello"), Limits(installation=2), NOW)
    assert admitted(verdicts) == ["octo/hello-000", "octo/hello-001"]
    third = verdicts["octo/hello-002"]
    assert (third.reason, third.position) == (Reason.QUEUED, 1)
    assert third.message.startswith("Number 1 waits: all 2 sandboxes are taken; those kept after")
    assert third.message.endswith(" ISSUESANDBOX_MAX_SANDBOXES.")
    assert verdicts["octo/hello-003"].position == 2


def test_between_resources_of_one_second_the_uid_decides() -> None:
    same = {"created": "2026-07-01T11:00:00Z"}
    verdicts = rank(
        [candidate("b", number=1, **same), candidate("a", number=2, **same)],
        Limits(installation=1),
        NOW,
    )
    assert admitted(verdicts) == ["a"]


def test_slots_in_use_are_not_given_twice() -> None:
    held = crowd(3, "octo/other", live=True, wants=False)
    verdicts = rank([*held, *crowd(2, "octo/hello")], Limits(installation=4), NOW)
    assert admitted(verdicts) == sorted([each.uid for each in held] + ["octo/hello-000"])


def test_turns_go_round_the_repositories_however_old_a_flood_is() -> None:
    flood = crowd(50, "octo/flood")
    late = candidate("late", "octo/small", created="2026-07-01T11:59:59Z")
    verdicts = rank([*flood, late], Limits(installation=2), NOW)
    assert admitted(verdicts) == ["late", "octo/flood-000"]


def test_a_repository_that_holds_slots_is_behind_one_that_holds_none() -> None:
    # One slot gets free at a time: without this the flood would take every one of them.
    held = crowd(1, "octo/flood", live=True, wants=False)
    flood = [
        candidate(f"flood-{n}", "octo/flood", number=100 + n, created="2026-07-01T10:00:00Z")
        for n in range(9)
    ]
    late = candidate("late", "octo/small", created="2026-07-01T11:59:59Z")
    verdicts = rank([*held, *flood, late], Limits(installation=2), NOW)
    assert "late" in admitted(verdicts)


def test_a_repository_gets_no_more_than_its_share() -> None:
    verdicts = rank(crowd(7, "octo/hello"), Limits(), NOW)
    assert len(admitted(verdicts)) == 5
    assert verdicts["octo/hello-005"].message == (
        "Number 1 waits: its repository has its 5 sandboxes; those kept after a run count, also "
        "when stopped. Room comes with the end of a run, with a shorter cleanup.retention, by "
        "deleting kept resources, or by raising ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY."
    )


def test_new_runs_of_one_author_in_one_repository_are_rationed() -> None:
    # R87
    limits = Limits(installation=100, repository=100, new_runs=3)
    begun = crowd(
        2, "octo/hello", live=True, wants=False, author="ann", starts=(NOW - timedelta(seconds=40),)
    )
    more = [
        candidate(f"more-{n}", author="ann", number=100 + n, created=f"2026-07-01T11:30:0{n}Z")
        for n in range(3)
    ]
    other = candidate("other", author="bob", number=900)
    verdicts = rank([*begun, *more, other], limits, NOW)
    assert {"more-0", "other"} <= set(admitted(verdicts))
    held_back = verdicts["more-1"]
    assert held_back.reason is Reason.RATE_LIMITED
    assert held_back.retry == timedelta(seconds=20)
    assert "3 runs for ann in octo/hello" in held_back.message
    assert rank([*begun, *more, other], limits, NOW + timedelta(seconds=20))["more-1"].admitted


def test_who_is_rationed_takes_no_turn_from_others_of_the_repository() -> None:
    limits = Limits(repository=2, new_runs=1)
    begun = candidate("begun", author="ann", number=1, wants=False, starts=(NOW,))
    flood = [
        candidate(f"flood-{n}", author="ann", number=10 + n, created="2026-07-01T11:00:00Z")
        for n in range(5)
    ]
    bob = candidate("bob", author="bob", number=99, created="2026-07-01T11:50:00Z")
    assert admitted(rank([begun, *flood, bob], limits, NOW)) == ["bob"]


def test_another_run_in_a_live_sandbox_needs_no_slot_but_is_rationed() -> None:
    again = candidate("again", live=True, author="ann")
    assert rank([again], Limits(installation=1), NOW)["again"].admitted
    verdict = rank([again], Limits(installation=1, new_runs=0), NOW)["again"]
    assert verdict.reason is Reason.RATE_LIMITED


def test_a_namespace_gets_only_the_repositories_it_is_allowed() -> None:
    limits = Limits(allowed={"team-a": ("Octo/*", "acme/tool-?"), "*": ("public/demo",)})
    wanted = {
        "octo": ("team-a", "octo/hello", True),
        "tool": ("team-a", "acme/tool-1", True),
        "else": ("team-a", "acme/secret", False),
        "near": ("team-a", "octopus/hello", False),
        "rest": ("team-b", "public/demo", True),
        "lack": ("team-b", "octo/hello", False),
    }
    verdicts = rank(
        [
            candidate(uid, repository, namespace=namespace, number=number)
            for number, (uid, (namespace, repository, _)) in enumerate(wanted.items(), 1)
        ],
        limits,
        NOW,
    )
    assert {uid: verdict.admitted for uid, verdict in verdicts.items()} == {
        uid: allowed for uid, (_, _, allowed) in wanted.items()
    }
    assert verdicts["lack"].reason is Reason.REPOSITORY_NOT_ALLOWED
    assert verdicts["lack"].message == (
        "Namespace team-b may not use octo/hello; "
        "an administrator can allow it in the operator's settings."
    )


@pytest.mark.parametrize(("glob", "matches"), [("*", True), ("oct*", True), ("oct*/x", False)])
def test_a_glob_without_a_slash_names_owners(glob: str, matches: bool) -> None:
    assert Limits(allowed={"*": (glob,)}).allow("any", "octo/hello") is matches


def test_of_two_for_one_issue_the_older_owns_it_across_namespaces() -> None:
    old = candidate("old", number=7, created="2026-07-01T10:00:00Z")
    new = candidate("new", number=7, namespace="team-b", created="2026-07-01T11:00:00Z")
    verdicts = rank([new, old], Limits(), NOW)
    assert admitted(verdicts) == ["old"]
    assert verdicts["new"].reason is Reason.DUPLICATE_ISSUE
    assert "team-a/issue-old" in verdicts["new"].message


def test_who_has_the_sandbox_owns_the_issue_even_if_younger_and_idle() -> None:
    old = candidate("old", number=7, created="2026-07-01T10:00:00Z")
    holder = candidate("young", number=7, live=True, wants=False, created="2026-07-01T11:00:00Z")
    verdicts = rank([old, holder], Limits(), NOW)
    assert verdicts["old"].reason is Reason.DUPLICATE_ISSUE
    assert verdicts["young"].admitted


def test_who_has_the_sandbox_keeps_the_issue_though_its_namespace_lost_the_right() -> None:
    holder = candidate("holder", number=7, namespace="team-b", live=True, wants=False)
    other = candidate("other", number=7, created="2026-07-01T09:00:00Z")
    verdicts = rank([holder, other], Limits(allowed={"team-a": ("octo/*",)}), NOW)
    assert verdicts["other"].reason is Reason.DUPLICATE_ISSUE
    assert verdicts["holder"].reason is Reason.REPOSITORY_NOT_ALLOWED


def test_an_idle_owner_still_owns() -> None:
    old = candidate("old", number=7, wants=False, created="2026-07-01T10:00:00Z")
    new = candidate("new", number=7, created="2026-07-01T11:00:00Z")
    assert rank([old, new], Limits(), NOW)["new"].reason is Reason.DUPLICATE_ISSUE


def test_a_namespace_without_the_right_cannot_take_an_issue_away() -> None:
    intruder = candidate("intruder", number=7, namespace="evil", created="2026-07-01T09:00:00Z")
    rightful = candidate("rightful", number=7, created="2026-07-01T11:00:00Z")
    verdicts = rank([intruder, rightful], Limits(allowed={"team-a": ("octo/*",)}), NOW)
    assert verdicts["intruder"].reason is Reason.REPOSITORY_NOT_ALLOWED
    assert verdicts["rightful"].admitted


def test_ten_thousand_are_ranked_well_under_fifty_milliseconds_of_cpu() -> None:
    everybody = [
        candidate(
            f"{n:05}",
            f"octo/r{n % 100}",
            number=n + 1,
            created=f"2026-07-01T{n % 24:02}:{n % 60:02}:00Z",
        )
        for n in range(10_000)
    ]

    def cost() -> float:
        before = time.process_time()
        rank(everybody, Limits(), NOW)
        return time.process_time() - before

    # Twice the goal: the machine may be busy, and a quadratic rank would take minutes.
    assert min(cost() for _ in range(5)) < 0.1


def from_number(place: int, number: int) -> Candidate:
    """Return a resource whose fields all hang on one number: quick to draw, easy to shrink."""

    def pick(*choices: Any) -> Any:
        nonlocal number
        number, choice = divmod(number, len(choices))
        return choices[choice]

    return Candidate(
        uid=f"{pick(*range(9))}-{place}",
        namespace=pick("team-a", "team-b"),
        name="some",
        repository=pick("octo/a", "octo/b", "octo/c"),
        number=pick(*range(1, 7)),
        created=f"2026-07-01T11:00:0{pick(*range(6))}Z",
        author=pick("ann", "bob"),
        live=pick(False, False, True),
        wants=pick(True, True, False),
        starts=pick(
            (), (), (NOW,), (NOW - timedelta(seconds=59), NOW), (NOW - timedelta(hours=1),)
        ),
    )


candidates = st.lists(st.integers(0, 2**24), min_size=8, max_size=40).map(
    lambda numbers: [from_number(*each) for each in enumerate(numbers)]
)
all_limits = st.builds(
    Limits,
    installation=st.integers(0, 12),
    repository=st.integers(1, 5),
    new_runs=st.integers(0, 6),
    allowed=st.sampled_from([None, {"team-a": ("octo/*",), "team-b": ("octo/a",)}]),
)


def newly_admitted(everybody: list[Candidate], verdicts: dict[str, Verdict]) -> list[Candidate]:
    return [
        each
        for each in everybody
        if each.wants and not each.live and each.uid in verdicts and verdicts[each.uid].admitted
    ]


@settings(deadline=None)
@given(candidates, all_limits)
def test_no_limit_is_ever_exceeded(everybody: list[Candidate], limits: Limits) -> None:
    verdicts = rank(everybody, limits, NOW)
    new = newly_admitted(everybody, verdicts)
    live = [each for each in everybody if each.live]
    assert len(new) <= max(0, limits.installation - len(live))
    held = Counter(each.repository for each in live)
    for repository, count in Counter(each.repository for each in new).items():
        assert held[repository] + count <= limits.repository
    begun = Counter(
        each.by for each in everybody for start in each.starts if start > NOW - limits.window
    )
    starting = Counter(each.by for each in everybody if each.wants and verdicts[each.uid].admitted)
    assert all(begun[by] + count <= limits.new_runs for by, count in starting.items())
    assert all(limits.allow(each.namespace, each.repository) for each in new)


@settings(deadline=None)
@given(candidates, all_limits)
def test_no_issue_is_admitted_twice(everybody: list[Candidate], limits: Limits) -> None:
    verdicts = rank(everybody, limits, NOW)
    going_on = [
        each for each in everybody if verdicts.get(each.uid, Verdict(Reason.QUEUED))[0] is None
    ]
    assert max(Counter(each.issue for each in going_on).values(), default=0) <= 1


@settings(deadline=None)
@given(candidates, all_limits)
def test_no_repository_waits_while_another_gets_ahead_of_it(
    everybody: list[Candidate], limits: Limits
) -> None:
    verdicts = rank(everybody, limits, NOW)
    has = Counter(each.repository for each in everybody if each.live)
    new = Counter(each.repository for each in newly_admitted(everybody, verdicts))
    queued = {
        each.repository
        for each in everybody
        if each.uid in verdicts and verdicts[each.uid].reason is Reason.QUEUED
    }
    for waiting in queued:
        for repository, count in new.items():
            assert has[repository] + count <= has[waiting] + new[waiting] + 1


@settings(deadline=None)
@given(candidates, all_limits, st.randoms(use_true_random=False))
def test_the_order_in_which_resources_are_seen_does_not_matter(
    everybody: list[Candidate], limits: Limits, chance: object
) -> None:
    shuffled = list(everybody)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert rank(shuffled, limits, NOW) == rank(everybody, limits, NOW)


@settings(deadline=None)
@given(candidates, all_limits)
def test_free_slots_are_left_only_to_those_who_may_not_have_them(
    everybody: list[Candidate], limits: Limits
) -> None:
    verdicts = rank(everybody, limits, NOW)
    has = Counter(each.repository for each in everybody if each.live)
    new = newly_admitted(everybody, verdicts)
    has.update(each.repository for each in new)
    if has.total() >= limits.installation:
        return
    for each in everybody:
        if each.uid in verdicts and verdicts[each.uid].reason is Reason.QUEUED:
            assert has[each.repository] >= limits.repository


@settings(deadline=None)
@given(candidates, all_limits)
def test_the_queue_is_numbered_without_gaps(everybody: list[Candidate], limits: Limits) -> None:
    numbers = sorted(
        each.position for each in rank(everybody, limits, NOW).values() if each.position
    )
    assert numbers == list(range(1, len(numbers) + 1))
