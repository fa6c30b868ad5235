"""Where the load scenarios play: a fleet of a given size, and one program that serves it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cluster import BenchError, Cluster, encode, until
from fleet import NAMESPACE, Etcd, body_of, grow
from issuesandbox.domain.naming import sandbox_name
from programs import Program, log_tail

_FIRST_PROBE = 1_000_000
_PROBE = "probe"
_QUIET_SHARE = 0.10
_QUIET_SECONDS = 1.0
_EMPTY_STARTS = 3


@dataclass(frozen=True)
class Seen:
    """What the Daytona stub was asked."""

    creates: dict[str, float]
    pages: list[tuple[float, bool]]
    calls: Counter[str]

    @property
    def ticks(self) -> list[float]:
        """Return when each fleet tick asked for its first page."""
        return [at for at, first in self.pages if first]


@dataclass
class Stage:
    """A cluster, a Daytona stub, and as many resources as are asked for."""

    cluster: Cluster
    stub: Program
    etcd: Etcd
    size: int = 0
    empty: dict[str, float] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(_FIRST_PROBE))

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[Program]:
        """Run the operator for the time of a block, then remove what came during it."""
        programs = self.cluster.programs
        async with self._running(programs.operator(NAMESPACE, self.stub.url)) as program:
            yield program

    @asynccontextmanager
    async def baseline(self, *, announce: bool = False) -> AsyncIterator[Program]:
        """Run the baseline for the time of a block, then remove what came during it."""
        start = self.cluster.programs.baseline
        async with self._running(start(NAMESPACE, self.stub.url, announce=announce)) as program:
            yield program

    @asynccontextmanager
    async def _running(self, program: Program) -> AsyncIterator[Program]:
        try:
            yield program
        except BenchError as error:
            raise BenchError(f"{error}; {program.child.name} said {log_tail(program)}") from error
        finally:
            code = await program.child.stop(30)
            await self.forget()
        if program.child.name == "operator" and code != 0:
            raise BenchError(f"the operator ended with {code}: {program.child.last_lines(5)}")

    async def grow_to(self, size: int) -> None:
        """Add resources with a running sandbox until there are `size` of them."""
        if self.size == 0:
            # What is taken off of every start must not hang on the luck of one.
            empty = [await self._start_empty() for _ in range(_EMPTY_STARTS)]
            self.empty = {name: median(each[name] for each in empty) for name in empty[0]}
            await self._live_through_one()
        address = self.stub.url
        await grow(self.etcd, self.cluster.http, address, range(self.size + 1, size + 1))
        self.size = size

    async def _start_empty(self) -> dict[str, float]:
        async with self.operator() as program:
            await self.cluster.until_ready(program)
            # As in every start: what comes after it is no part of what a start costs.
            ready = program.cpu()
            await self.until_quiet(program)
            return {"cpu_s": ready, "rss_mib": program.memory().now}

    async def _live_through_one(self) -> None:
        async with self.operator() as program:
            await self.cluster.until_ready(program)
            body = body_of(1)
            await self.cluster.create(encode(body), NAMESPACE)

            async def idle() -> bool:
                found = await self.cluster.get(NAMESPACE, body["metadata"]["name"]) or {}
                return bool(found.get("status", {}).get("phase") == "Idle")

            self.size = 1
            await until(idle, "the first resource to be idle", 30)

    def next_bodies(
        self, count: int, namespace: str = NAMESPACE, *, announced: bool = True
    ) -> list[tuple[str, bytes]]:
        """Return new resources, encoded, with the name that each one's sandbox will have.

        They are as the webhook adapter makes them, or as a user does who announces nothing.
        """
        return [
            (sandbox_name(number), encode(body_of(number, _PROBE, namespace, announced=announced)))
            for number in itertools.islice(self._numbers, count)
        ]

    async def create(self, body: bytes, namespace: str = NAMESPACE) -> float:
        """Create a resource; return the moment its request was sent."""
        sent = time.monotonic()
        await self.cluster.create(body, namespace)
        return sent

    async def served(self, name: str, seconds: float = 120.0) -> float:
        """Wait until Daytona was asked for a sandbox; return the moment of that request."""

        async def asked() -> float | None:
            return (await self.seen()).creates.get(name)

        moment = await until(asked, f"the create of {name}", seconds)
        assert moment is not None
        return moment

    async def seen(self) -> Seen:
        """Return what the stub was asked since the last clean-up."""
        async with self.cluster.http.get(f"{self.stub.url}/_bench/log") as answer:
            log: dict[str, Any] = await answer.json(content_type=None)
        creates: dict[str, float] = {}
        for name, at in log["creates"]:
            creates.setdefault(name, at)
        pages = [(at, first) for at, first in log["lists"]]
        return Seen(creates, pages, Counter(log["calls"]))

    async def until_quiet(
        self, program: Program, seconds: float = 60.0, share: float = _QUIET_SHARE
    ) -> float:
        """Wait until the program uses next to no CPU; return what it had used by then."""
        used = program.cpu()
        for _ in range(int(seconds / _QUIET_SECONDS)):
            await asyncio.sleep(_QUIET_SECONDS)
            now = program.cpu()
            if now - used < share * _QUIET_SECONDS:
                return used
            used = now
        raise BenchError(f"{program.child.name} was still busy after {seconds:g} s")

    async def forget(self) -> None:
        """Remove what came beside the fleet, its sandboxes included."""
        await self.etcd.forget(_PROBE)
        url = f"{self.stub.url}/_bench/after/{self.size}"
        async with self.cluster.http.delete(url) as answer:
            answer.raise_for_status()
