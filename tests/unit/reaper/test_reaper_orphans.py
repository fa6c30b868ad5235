"""Which sandboxes are orphans, and the gates on their way to the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.api.names import LABEL_INSTALLATION, LABEL_NAMESPACE, LABEL_RESOURCE, LABEL_UID
from issuesandbox.domain.orphans import (
    ORPHANS,
    Assessment,
    Caps,
    Doubt,
    Look,
    OrphanRules,
    Scope,
    Verdict,
)
from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.domain.timings import Timings

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
RULES = OrphanRules(Scope("here"), Timings())


def sandbox(name: str = "one", uid: str | None = None, **fields: Any) -> SandboxView:
    labels = {
        LABEL_INSTALLATION: "here",
        LABEL_NAMESPACE: "team-a",
        LABEL_RESOURCE: name,
        LABEL_UID: uid or f"uid-{name}",
        **fields.pop("labels", {}),
    }
    given = {"state": "started", "created_at": NOW - timedelta(hours=1), **fields}
    return SandboxView(id=SandboxId(name), name=name, labels=labels, **given)


def look(*living: str, after: float = 0.0, before: Assessment | None = None) -> Look:
    return Look(
        frozenset(living),
        NOW + timedelta(seconds=after),
        after,
        before.sightings if before is not None else {},
    )


def verdict(one: SandboxView, rules: OrphanRules = RULES) -> Verdict:
    """Return the verdict on a sandbox that was seen before, long enough ago."""
    first = rules.assess([one], look())
    (finding,) = rules.assess([one], look(after=61, before=first)).findings
    return finding.verdict


def test_an_orphan_is_due_at_its_second_sighting_a_minute_after_the_first() -> None:
    # R80
    first = RULES.assess([sandbox()], look())
    assert (first.orphans, first.due) == (1, ())
    early = RULES.assess([sandbox()], look(after=59, before=first))
    assert early.due == ()
    late = RULES.assess([sandbox()], look(after=60, before=early))
    assert [each.sandbox.id for each in late.due] == ["one"]


def test_an_orphan_that_had_an_owner_in_between_starts_anew() -> None:
    first = RULES.assess([sandbox()], look())
    owned = RULES.assess([sandbox()], look("uid-one", after=30, before=first))
    again = RULES.assess([sandbox()], look(after=90, before=owned))
    assert again.due == ()


def test_an_orphan_that_was_relabelled_in_between_starts_anew() -> None:
    first = RULES.assess([sandbox(uid="old")], look())
    assert RULES.assess([sandbox(uid="new")], look(after=90, before=first)).due == ()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Verdict.DUE),
        ({"state": "stopped"}, Verdict.DUE),
        ({"state": "creating"}, Verdict.DUE),
        ({"state": "error"}, Verdict.DUE),
        ({"created_at": NOW.replace(tzinfo=None) - timedelta(hours=1)}, Verdict.DUE),
        # R88
        ({"labels": {LABEL_INSTALLATION: "elsewhere"}}, Verdict.OUTSIDE),
        ({"labels": {LABEL_INSTALLATION: ""}}, Verdict.OUTSIDE),
        ({"labels": {LABEL_UID: ""}}, Verdict.UNCLEAR),
        ({"labels": {LABEL_RESOURCE: ""}}, Verdict.UNCLEAR),
        ({"state": "destroying"}, Verdict.ENDING),
        ({"desired_state": "destroyed"}, Verdict.ENDING),
        ({"created_at": NOW - timedelta(minutes=3)}, Verdict.HELD),
        ({"created_at": NOW + timedelta(hours=1)}, Verdict.HELD),
        ({"created_at": None}, Verdict.HELD),
        ({"state": "hibernating"}, Verdict.HELD),
        ({"state": None}, Verdict.HELD),
        ({"state": "resizing"}, Verdict.HELD),
    ],
)
def test_every_doubt_keeps_a_sandbox(fields: dict[str, Any], expected: Verdict) -> None:
    assert verdict(sandbox(**fields)) is expected


def test_an_orphan_that_resizes_for_an_hour_is_due() -> None:
    one = sandbox(state="resizing")
    first = RULES.assess([one], look())
    assert RULES.assess([one], look(after=3599, before=first)).due == ()
    assert RULES.assess([one], look(after=3600, before=first)).due != ()


def test_namespaces_outside_the_watch_are_left_alone() -> None:
    narrow = OrphanRules(Scope("here", ("team-b",)), Timings())
    assert verdict(sandbox(), narrow) is Verdict.OUTSIDE
    assert verdict(sandbox(labels={LABEL_NAMESPACE: "team-b"}), narrow) is Verdict.DUE


@pytest.mark.parametrize(
    ("orphans", "owned", "trips"),
    [(3, 0, False), (4, 0, True), (4, 15, True), (4, 16, False), (20, 80, False), (21, 79, True)],
)
def test_too_many_orphans_at_once_stop_everything(orphans: int, owned: int, trips: bool) -> None:
    crowd = [sandbox(f"orphan-{n}") for n in range(orphans)]
    crowd += [sandbox(f"owned-{n}", uid="alive") for n in range(owned)]
    first = RULES.assess(crowd, look("alive"))
    second = RULES.assess(crowd, look("alive", after=60, before=first))
    assert bool(second.breaker) is trips
    assert len(second.due) == (0 if trips else orphans)


def test_after_a_trip_everybody_needs_two_new_sightings() -> None:
    crowd = [sandbox(f"{n}") for n in range(4)]
    first = RULES.assess(crowd[:3], look())
    tripped = RULES.assess(crowd, look(after=60, before=first))
    assert tripped.breaker == "4 of 4 sandboxes look like orphans, too many to believe"
    calm = RULES.assess(crowd[:3], look(after=120, before=tripped))
    assert calm.due == ()
    assert len(RULES.assess(crowd[:3], look(after=180, before=calm)).due) == 3


def test_a_sweep_is_capped_and_takes_those_seen_longest_first() -> None:
    rules = OrphanRules(Scope("here"), Timings(), Caps(per_sweep=2))
    old = rules.assess([sandbox("c")], look())
    all_seen = rules.assess([sandbox("a"), sandbox("b"), sandbox("c")], look(after=9, before=old))
    due = rules.assess(
        [sandbox("a"), sandbox("b"), sandbox("c")], look(after=90, before=all_seen)
    ).due
    assert [each.sandbox.id for each in due] == ["c", "a"]


def test_what_keeps_orphans_is_counted() -> None:
    rules = OrphanRules(Scope("here"), Timings(), Caps(per_sweep=1, few=9))
    crowd = [
        sandbox("a"),
        sandbox("b"),
        sandbox("young", created_at=NOW),
        sandbox("ageless", created_at=None),
        sandbox("odd", state="strange"),
        sandbox("owned", uid="alive"),
    ]
    first = rules.assess(crowd, look("alive"))
    assert +first.kept == {Doubt.NEW: 2, Doubt.YOUNG: 1, Doubt.AGE: 1, Doubt.STATE: 1}
    second = rules.assess(crowd, look("alive", after=90, before=first))
    assert +second.kept == {Doubt.CAP: 1, Doubt.YOUNG: 1, Doubt.AGE: 1, Doubt.STATE: 1}
    many = RULES.assess([sandbox(f"{n}") for n in range(4)], look())
    assert +many.kept == {Doubt.BREAKER: 4}


sandboxes = st.lists(
    st.builds(
        sandbox,
        st.integers(0, 99).map(str),
        state=st.sampled_from(["started", "stopped", "destroying", "creating", "strange", None]),
        created_at=st.sampled_from([None, NOW, NOW - timedelta(hours=1)]),
        labels=st.sampled_from(
            [{}, {LABEL_INSTALLATION: "elsewhere"}, {LABEL_UID: ""}, {LABEL_NAMESPACE: "team-b"}]
        ),
    ),
    unique_by=lambda each: each.id,
    max_size=25,
)


@settings(deadline=None)
@given(st.lists(st.tuples(sandboxes, st.sets(st.integers(0, 99)), st.integers(0, 200)), max_size=5))
def test_whatever_comes_only_seasoned_orphans_of_our_own_are_due(
    sweeps: list[tuple[list[SandboxView], set[int], int]],
) -> None:
    rules = OrphanRules(Scope("here", ("team-a",)), Timings())
    before, now = None, 0.0
    orphan_since: dict[str, float] = {}
    for listed, living, pause in sweeps:
        now += pause
        uids = [f"uid-{number}" for number in living]
        before = rules.assess(listed, look(*uids, after=now, before=before))
        orphans = {each.sandbox.id for each in before.findings if each.verdict in ORPHANS}
        orphan_since = {one: orphan_since.get(one, now) for one in orphans}
        for finding in before.due:
            labels = finding.sandbox.labels
            assert labels[LABEL_INSTALLATION] == "here"
            assert labels[LABEL_NAMESPACE] == "team-a"
            assert labels[LABEL_UID] not in uids
            assert now - orphan_since[finding.sandbox.id] >= 60
            assert finding.age is not None
            assert finding.age >= timedelta(minutes=5)
        assert not (before.breaker and before.due)
        assert len(before.due) <= max(3, len(listed) // 5)
