"""Roles: one leader by default; with shards, each shard acted for by exactly one replica."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from election_world import Fate, Node, World
from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.clock import Clock
from issuesandbox.domain.sharding import shard_of
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.roles import Role
from issuesandbox.ports.leases import Leases

SHARDS = 8
REPOSITORIES = tuple(
    next(f"octocat/{n}" for n in range(1000) if shard_of(f"octocat/{n}", SHARDS) == shard)
    for shard in range(SHARDS)
)


@dataclass
class Replica:
    role: Role
    heard: list[bool] = field(default_factory=list)

    def served(self) -> set[str]:
        return {each for each in REPOSITORIES if self.role.may_act_for(each)}


@contextmanager
def world_of(shards: int) -> Iterator[World[Replica]]:
    def starter(
        identity: str, leases: Leases, clock: Clock
    ) -> tuple[Replica, Coroutine[Any, Any, None]]:
        replica = Replica(Role(shards, identity, leases, Timings(), clock))
        return replica, replica.role.run(replica.heard.append)

    with World(starter) as world:

        def check() -> None:
            served = [each.program.served() for each in world.nodes]
            assert sum(map(len, served)) == len(set().union(*served))
            assert sum(each.program.role.singleton.holds() for each in world.nodes) <= 1

        world.check = check
        yield world


def all_served_by(nodes: list[Node[Replica]]) -> bool:
    return set().union(*(each.program.served() for each in nodes)) == set(REPOSITORIES)


def test_with_one_shard_the_leader_acts_for_every_repository() -> None:
    with world_of(1) as world:
        leader = world.start()
        world.run(5)
        standby = world.start()
        world.run(30)
        assert leader.program.served() == set(REPOSITORIES)
        assert leader.program.heard == [True]
        assert leader.program.role.singleton.holds()
        assert standby.program.served() == set()
        assert (leader.program.role.acts(), standby.program.role.acts()) == (True, False)
        assert (leader.program.role.replicas(), standby.program.role.replicas()) == (1, 1)
        assert set(world.store.records) == {"leader", "singleton"}
        assert {call for _, _, call in world.requests} == {"get", "create", "replace"}

        world.terminate(leader)
        world.run(3)
        assert standby.program.served() == set(REPOSITORIES)
        assert standby.program.role.singleton.holds()


def test_with_one_shard_the_leader_is_the_one_that_tidies_up() -> None:
    with world_of(1) as world:
        # The first replica's first look at `singleton` is lost, so others are faster there.
        world.fates = [Fate(lands=False)]
        nodes = [world.start() for _ in range(3)]

        def roles() -> list[tuple[bool, bool]]:
            programs = [each.program.role for each in nodes]
            return [(each.acts(), each.singleton.holds()) for each in programs]

        world.run(30)
        assert sorted(roles()) == [(False, False), (False, False), (True, True)]
        leader = nodes[roles().index((True, True))]
        world.kill(leader)
        nodes.remove(leader)
        world.run(20)
        assert sorted(roles()) == [(False, False), (True, True)]


def test_members_share_the_shards_and_one_that_joins_takes_its_part() -> None:
    with world_of(SHARDS) as world:
        first = world.start()
        world.run(10)
        assert first.program.served() == set(REPOSITORIES)
        second = world.start()
        world.run(10)
        assert all_served_by([first, second])
        assert second.program.served()
        assert first.program.served()


def test_the_shards_of_a_killed_member_are_served_again_within_twenty_seconds() -> None:
    with world_of(SHARDS) as world:
        nodes = [world.start() for _ in range(3)]
        world.run(40)
        assert all(each.program.served() for each in nodes)
        assert all_served_by(nodes)
        assert [each.program.role.replicas() for each in nodes] == [3, 3, 3]
        victim, *others = nodes
        world.kill(victim)
        assert world.run(60, until=lambda: all_served_by(others)) <= 20
        assert [each.program.role.replicas() for each in others] == [2, 2]


@pytest.mark.parametrize("moment", [0, 0.4, 0.8, 1.2, 1.6])
def test_the_shards_of_a_terminated_member_are_served_again_within_three_seconds(
    moment: float,
) -> None:
    with world_of(SHARDS) as world:
        nodes = [world.start() for _ in range(3)]
        world.run(40 + moment)
        victim, *others = nodes
        world.terminate(victim)
        assert world.run(60, until=lambda: all_served_by(others)) <= 3


def test_members_that_cannot_see_the_others_do_not_think_them_dead() -> None:
    with world_of(SHARDS) as world:
        nodes = [world.start() for _ in range(2)]
        world.run(40)
        shares = [each.program.served() for each in nodes]
        for each in nodes:
            each.cut_off = True
        world.run(60)
        assert not any(each.program.served() for each in nodes)
        for each in nodes:
            each.cut_off = False
        world.run(40)
        assert [each.program.served() for each in nodes] == shares


def test_the_leases_of_dead_members_do_not_pile_up() -> None:
    with world_of(SHARDS) as world:
        for _ in range(5):
            world.kill(world.start())
            node = world.start()
            world.run(10)
            world.kill(node)
        last = world.start()
        world.run(120)
        members = {each.holder for name, each in world.store.records.items() if "member" in name}
        assert members == {last.identity}
        assert last.program.served() == set(REPOSITORIES)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 20), st.sampled_from(["start", "kill", "freeze"]), st.integers(0)),
        max_size=8,
    )
)
def test_no_shard_is_ever_served_twice_and_all_are_in_the_end(
    happenings: list[tuple[float, str, int]],
) -> None:
    with world_of(SHARDS) as world:
        world.start()
        for after, kind, number in happenings:
            world.run(after)
            node = world.nodes[number % len(world.nodes)]
            if kind == "start":
                world.start()
            elif kind == "kill":
                world.kill(node)
            else:
                world.freeze(node, 20)
        world.start()
        world.run(70)
        assert all_served_by([each for each in world.nodes if each.alive])
