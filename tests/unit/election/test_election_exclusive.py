"""At any instant at most one replica holds a lease, and once the faults end, exactly one."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from election_world import Fate, Node, World
from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.election import Elector
from issuesandbox.ports.errors import Unavailable
from issuesandbox.ports.leases import Leases

SECONDS = st.floats(0, 25)
FATES = st.lists(
    st.builds(
        Fate,
        outward=st.sampled_from([0.001, 0.01, 1.9]) | SECONDS,
        inward=st.sampled_from([0.001, 0.01, 1.9]) | SECONDS,
        lands=st.sampled_from([True, True, True, False]),
        answered=st.sampled_from([True, True, True, False]),
        error=st.sampled_from([None, None, None, None, Unavailable("no route")]),
    ),
    max_size=80,
)


@dataclass(frozen=True)
class Happening:
    """Something that befalls one of the replicas."""

    after: float
    kind: str
    index: int
    length: float


HAPPENINGS = st.lists(
    st.builds(
        Happening,
        after=SECONDS,
        kind=st.sampled_from(["freeze", "cut off", "kill", "terminate", "start", "wall clock"]),
        index=st.integers(0, 5),
        length=SECONDS,
    ),
    max_size=25,
)
# Clocks that run apart by less than the hold is shorter than the duration (10 s and 15 s).
RATES = st.lists(st.floats(0.85, 1.15), min_size=1, max_size=4)


def starter(
    identity: str, leases: Leases, clock: Clock
) -> tuple[Elector, Coroutine[Any, Any, None]]:
    elector = Elector("leader", identity, leases, Timings(), clock)
    return elector, elector.run(lambda _: None)


def befall(world: World[Elector], node: Node[Elector], happening: Happening) -> None:
    match happening.kind:
        case "freeze":
            world.freeze(node, happening.length)
        case "cut off":
            node.cut_off = True
            world.at(happening.length, lambda: setattr(node, "cut_off", False))
        case "kill":
            world.kill(node)
        case "terminate":
            world.terminate(node)
        case "start":
            world.start(rate=node.clock.rate)
        case "wall clock":
            node.clock.wall_offset = timedelta(hours=happening.length - 12)


@settings(max_examples=200, deadline=None)
@given(FATES, HAPPENINGS, RATES)
def test_no_two_replicas_ever_hold_the_lease_and_one_does_in_the_end(
    fates: list[Fate], happenings: list[Happening], rates: list[float]
) -> None:
    with World(starter, fates) as world:

        def check() -> None:
            # The dead and the frozen count too: what they last knew must have run out.
            holders = [each.identity for each in world.nodes if each.program.holds()]
            assert len(holders) <= 1, f"{holders} at {world.now}"

        world.check = check
        for rate in rates:
            world.start(rate=rate)
        for happening in happenings:
            world.run(happening.after)
            befall(world, world.nodes[happening.index % len(world.nodes)], happening)

        world.fates.clear()
        last = world.start()
        world.run(25)  # the longest fault of those still going on
        world.run(25)  # the longest request still under way
        world.run(25)
        assert [each for each in world.nodes if each.program.holds()], "nobody holds the lease"
        assert last.alive
