"""Shards and their owners: the same answer everywhere, and little moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.domain.sharding import owner, shard_of

MEMBERS = st.sets(st.text(min_size=1), min_size=1, max_size=8)
SHARDS = range(64)


@given(st.text(), st.integers(1, 100))
def test_a_repository_is_in_one_shard_however_its_name_is_spelled(name: str, shards: int) -> None:
    assert shard_of(name.lower(), shards) == shard_of(name, shards)
    assert 0 <= shard_of(name, shards) < shards


def test_shards_and_owners_never_change_between_versions() -> None:
    assert shard_of("octocat/Hello-World", 8) == 1
    assert [owner(each, ("a", "b", "c")) for each in range(6)] == ["a", "c", "b", "a", "c", "b"]


def test_repositories_and_shards_are_spread_evenly() -> None:
    load = Counter(shard_of(f"octocat/repository-{each}", 8) for each in range(8000))
    assert min(load.values()) > 850
    assert max(load.values()) < 1150
    owned = Counter(owner(each, ("a", "b", "c")) for each in range(3000))
    assert min(owned.values()) > 900


@given(MEMBERS)
def test_every_replica_names_the_same_owner(members: set[str]) -> None:
    ordered = sorted(members)
    for shard in SHARDS:
        assert owner(shard, ordered) == owner(shard, reversed(ordered))
        assert owner(shard, ordered) in members


@given(MEMBERS, st.text(min_size=1))
def test_a_member_that_comes_or_goes_moves_its_own_shards_only(
    members: set[str], other: str
) -> None:
    without, within = members - {other}, members | {other}
    for shard in SHARDS:
        assert owner(shard, within) in (other, owner(shard, without))


def test_nobody_owns_a_shard_without_members() -> None:
    assert owner(0, ()) is None
