"""Several replicas, one API server and a bad network, in made-up time.

Each replica is a real asyncio program on an event loop of its own, with clocks of its own. The
world alone decides when a loop runs and when a request lands or is answered, so a replica can
be frozen or killed between any two steps, and a request can land long after its sender gave up.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import selectors
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from issuesandbox.clock import Clock
from issuesandbox.ports.errors import CallError, Conflict, NotFound, Unavailable
from issuesandbox.ports.leases import LeaseRecord, Leases

_TICK = 1e-6
Program = TypeVar("Program")
Starter = Callable[[str, Leases, Clock], tuple[Program, Coroutine[Any, Any, None]]]


class LeaseStore:
    """What the API server keeps: compare-and-swap, and no write without a change."""

    def __init__(self) -> None:
        self.records: dict[str, LeaseRecord] = {}
        self._versions = itertools.count(1)

    def get(self, name: str) -> LeaseRecord:
        if name not in self.records:
            raise NotFound(name)
        return self.records[name]

    def starting_with(self, prefix: str) -> Sequence[LeaseRecord]:
        return [each for name, each in self.records.items() if name.startswith(prefix)]

    def create(self, record: LeaseRecord) -> LeaseRecord:
        if record.name in self.records:
            raise Conflict(record.name)
        return self._store(record)

    def replace(self, record: LeaseRecord) -> LeaseRecord:
        current = self._at_version(record)
        return current if record == current else self._store(record)

    def delete(self, record: LeaseRecord) -> None:
        del self.records[self._at_version(record).name]

    def _at_version(self, record: LeaseRecord) -> LeaseRecord:
        current = self.records.get(record.name)
        if current is None or record.version != current.version:
            raise Conflict(record.name)
        return current

    def _store(self, record: LeaseRecord) -> LeaseRecord:
        stored = replace(record, version=str(next(self._versions)))
        self.records[record.name] = stored
        return stored


@dataclass(frozen=True)
class Fate:
    """What the network does to one request."""

    outward: float = 0.005
    inward: float = 0.005
    lands: bool = True
    answered: bool = True
    error: Exception | None = None


@dataclass
class NodeClock:
    """A replica's clocks: the monotonic one drifts, the wall clock may say anything."""

    real: Callable[[], float]
    rate: float = 1.0
    wall_offset: timedelta = timedelta()
    wall_stuck: datetime | None = None

    def monotonic(self) -> float:
        return 1000.0 + self.real() * self.rate

    def now(self) -> datetime:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        return self.wall_stuck or start + timedelta(seconds=self.real()) + self.wall_offset


class _IdleStops(selectors.SelectSelector):
    """Stops its loop instead of waiting, and remembers for how long it would have waited."""

    loop: asyncio.AbstractEventLoop
    idle_for = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self.idle_for = math.inf if timeout is None else timeout
            self.loop.stop()
        return []


class _NodeLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: NodeClock, selector: _IdleStops) -> None:
        super().__init__(selector)
        self._node_clock = clock
        selector.loop = self

    def time(self) -> float:
        return self._node_clock.monotonic()


@dataclass(eq=False)
class Node(Generic[Program]):
    """One replica."""

    identity: str
    clock: NodeClock
    cut_off: bool = False
    frozen_until: float = 0.0
    alive: bool = True
    wakes: int = 0
    program: Program = field(init=False)
    task: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self._selector = _IdleStops()
        self.loop = _NodeLoop(self.clock, self._selector)

    def start(self, starter: Starter[Program], leases: Leases) -> None:
        self.program, work = starter(self.identity, leases, self.clock)
        self.task = self.loop.create_task(work)

    def run(self) -> float:
        """Run until there is nothing to do; return for how many real seconds."""
        self.loop.run_forever()
        if self.task.done():
            self.alive = False
        return max(self._selector.idle_for / self.clock.rate, _TICK)


class NodeLeases:
    """The API server as one replica reaches it."""

    def __init__(self, world: World[Any], node: Node[Any]) -> None:
        self._world = world
        self._node = node

    async def get(self, name: str) -> LeaseRecord:
        answer: LeaseRecord = await self._send("get", name)
        return answer

    async def starting_with(self, prefix: str) -> Sequence[LeaseRecord]:
        answer: Sequence[LeaseRecord] = await self._send("starting_with", prefix)
        return answer

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        answer: LeaseRecord = await self._send("create", record)
        return answer

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        answer: LeaseRecord = await self._send("replace", record)
        return answer

    async def delete(self, record: LeaseRecord) -> None:
        await self._send("delete", record)

    async def _send(self, call: str, argument: object) -> Any:
        answer: asyncio.Future[Any] = self._node.loop.create_future()
        self._world.carry(self._node, call, argument, answer)
        return await answer


class World(Generic[Program]):
    """Runs the replicas; `check` is asked after everything that happens."""

    def __init__(self, starter: Starter[Program], fates: Iterable[Fate] = ()) -> None:
        self.now = 0.0
        self.store = LeaseStore()
        self.nodes: list[Node[Program]] = []
        self.requests: list[tuple[float, str, str]] = []
        self.fates = list(reversed(list(fates)))
        self.check: Callable[[], None] = lambda: None
        self._starter = starter
        self._closed = False
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def __enter__(self) -> World[Program]:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        for node in self.nodes:
            node.task.cancel()
            node.loop.run_until_complete(asyncio.wait([node.task]))
            node.loop.close()

    def start(self, *, rate: float = 1.0) -> Node[Program]:
        """Start one more replica."""
        clock = NodeClock(lambda: self.now, rate)
        node: Node[Program] = Node(f"node-{len(self.nodes)}", clock)
        self.nodes.append(node)
        node.start(self._starter, NodeLeases(self, node))
        self._wake(node, 0)
        return node

    def terminate(self, node: Node[Program]) -> None:
        """Ask a replica to end, as SIGTERM does."""
        node.task.cancel()
        self._wake(node, 0)

    def kill(self, node: Node[Program]) -> None:
        """End a replica, as SIGKILL does."""
        node.alive = False

    def freeze(self, node: Node[Program], seconds: float) -> None:
        """Let a replica do nothing for a while, its clocks going on."""
        node.frozen_until = max(node.frozen_until, self.now + seconds)

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """Let time pass; return how much did until the condition held."""
        began, end = self.now, self.now + seconds
        while not until() and self._events and self._events[0][0] <= end:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
            self.check()
        if not until():
            self.now = end
        return self.now - began

    def at(self, delay: float, happen: Callable[[], None]) -> None:
        """Let something happen after a while."""
        heapq.heappush(self._events, (self.now + delay, next(self._order), happen))

    def carry(
        self, node: Node[Program], call: str, argument: object, answer: asyncio.Future[Any]
    ) -> None:
        """Take one request of a replica into the network."""
        if self._closed:
            answer.set_exception(Unavailable("the world has ended"))
            return
        self.requests.append((self.now, node.identity, call))
        fate = self.fates.pop() if self.fates else Fate()
        if node.cut_off or not fate.lands:
            return
        if fate.error is not None:
            self.at(0, lambda: self._deliver(node, answer, fate.error))
            return

        def land() -> None:
            outcome: object
            try:
                outcome = getattr(self.store, call)(argument)
            except CallError as error:
                outcome = error
            if fate.answered:
                self.at(fate.inward, lambda: self._deliver(node, answer, outcome))

        self.at(fate.outward, land)

    def _deliver(self, node: Node[Program], answer: asyncio.Future[Any], outcome: object) -> None:
        if node.cut_off or not node.alive:
            return
        if self.now < node.frozen_until:
            self.at(node.frozen_until - self.now, lambda: self._deliver(node, answer, outcome))
            return
        if not answer.done():
            if isinstance(outcome, Exception):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)
        self._wake(node, 0)

    def _wake(self, node: Node[Program], delay: float) -> None:
        """Run a replica after a while, instead of when it was to run so far."""
        node.wakes += 1
        wake = node.wakes
        if math.isfinite(delay):
            self.at(delay, lambda: self._run(node, wake))

    def _run(self, node: Node[Program], wake: int) -> None:
        if not node.alive or wake != node.wakes:
            return
        if self.now < node.frozen_until:
            self._wake(node, node.frozen_until - self.now)
            return
        self._wake(node, node.run())
