"""Which bucket a call is counted in, and what Daytona's answers tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
import pytest_asyncio
from multidict import CIMultiDict

from issuesandbox.adapters.daytona.rate_limits import classify, rate_limited, read_answer
from issuesandbox.clock import SystemClock
from issuesandbox.domain.buckets import Allowance, Answer, Bucket, NoLimit, Priority, Refusal
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.rates import RateGate, while_allowed
from issuesandbox.local.daytona.config import DEFAULT_KEY, RateLimits, SimulatorConfig
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.ports.errors import Throttled

ONE = "/api/sandbox/claude-issue-1"


@pytest.mark.parametrize(
    ("method", "path", "bucket", "priority"),
    [
        ("POST", "/api/sandbox", Bucket.CREATE, Priority.CREATE),
        ("POST", "/api/sandbox/", Bucket.CREATE, Priority.CREATE),
        ("POST", f"{ONE}/fork", Bucket.CREATE, Priority.CREATE),
        ("DELETE", ONE, Bucket.LIFECYCLE, Priority.KILL),
        ("POST", f"{ONE}/stop", Bucket.LIFECYCLE, Priority.STOP),
        ("POST", f"{ONE}/start", Bucket.LIFECYCLE, Priority.CREATE),
        ("POST", f"{ONE}/recover", Bucket.LIFECYCLE, Priority.CREATE),
        ("GET", ONE, Bucket.GENERAL, Priority.READ),
        ("GET", "/api/sandbox", Bucket.GENERAL, Priority.READ),
        ("PUT", f"{ONE}/labels", Bucket.GENERAL, Priority.READ),
        ("POST", f"{ONE}/last-activity", Bucket.GENERAL, Priority.READ),
        ("POST", "/api/snapshots", Bucket.GENERAL, Priority.READ),
        ("DELETE", "/behind/a/proxy/sandbox/x", Bucket.LIFECYCLE, Priority.KILL),
    ],
)
def test_every_call_has_one_bucket_and_one_urgency(
    method: str, path: str, bucket: Bucket, priority: Priority
) -> None:
    assert classify(method, path) == (bucket, priority)


@pytest.mark.parametrize(
    ("status", "headers", "answer"),
    [
        (
            200,
            {
                "x-ratelimit-limit-sandbox-create": "300",
                "X-RateLimit-Remaining-Sandbox-Create": "12",
                "X-RateLimit-Reset-sandbox-create": "41",
            },
            Allowance(300, 12, 41),
        ),
        (
            404,
            {
                "X-RateLimit-Limit-sandbox-create": "300",
                "X-RateLimit-Remaining-sandbox-create": "0",
            },
            Allowance(300, 0, 60),
        ),
        (200, {}, NoLimit()),
        (200, {"X-RateLimit-Remaining-authenticated": "5"}, NoLimit()),
        (503, {}, None),
        (200, {"X-RateLimit-Remaining-sandbox-create": "many"}, None),
        (429, {"Retry-After-sandbox-create": "17"}, Refusal(17)),
        (429, {"Retry-After-authenticated": "17"}, Refusal(60)),
        (429, {"Retry-After": "5"}, Refusal(5)),
        (429, {"Retry-After-sandbox-create": "soon"}, Refusal(60)),
    ],
)
def test_an_answer_tells_of_its_bucket(
    status: int, headers: dict[str, str], answer: Answer | None
) -> None:
    assert read_answer(Bucket.CREATE, status, CIMultiDict(headers)) == answer


@pytest_asyncio.fixture
async def simulator() -> AsyncIterator[Simulator]:
    limits = RateLimits(create=5, lifecycle=10, authenticated=10, window=2.0)
    async with Simulator(SimulatorConfig(rate_limits=limits, warm=True)) as simulator:
        yield simulator


@pytest_asyncio.fixture
async def session(simulator: Simulator) -> AsyncIterator[aiohttp.ClientSession]:
    gate = RateGate(SystemClock(), Timings(gate_patience=timedelta(seconds=1)))
    async with aiohttp.ClientSession(
        middlewares=(rate_limited(gate),), headers={"Authorization": f"Bearer {DEFAULT_KEY}"}
    ) as session:
        yield session


async def test_once_told_no_call_is_sent_that_daytona_would_refuse(
    simulator: Simulator, session: aiohttp.ClientSession
) -> None:
    async def create() -> int:
        try:
            async with session.post(f"{simulator.url}/sandbox", json={}) as answer:
                return answer.status
        except Throttled:
            return 0

    first = await create()
    rest = [await create() for _ in range(9)]
    assert [first, *rest] == [200] * 5 + [0] * 5
    async with asyncio.timeout(10):
        while not (status := await create()):
            await asyncio.sleep(0.05)
    assert status == 200


class LeaseLost(Exception):
    """Another replica acts now."""


class LongLine(RateGate):
    """A gate at which everybody waits so long that the lease is lost meanwhile."""

    lost = False

    async def pass_through(
        self, bucket: Bucket, priority: Priority, deadline: float | None = None
    ) -> None:
        await super().pass_through(bucket, priority, deadline)
        self.lost = True

    def check(self) -> None:
        if self.lost:
            raise LeaseLost


async def test_a_change_is_checked_after_it_has_waited_for_its_turn(simulator: Simulator) -> None:
    gate = LongLine(SystemClock(), Timings())
    key = {"Authorization": f"Bearer {DEFAULT_KEY}"}
    session = aiohttp.ClientSession(middlewares=(rate_limited(gate),), headers=key)
    async with session:
        with while_allowed(gate.check), pytest.raises(LeaseLost):
            await session.post(f"{simulator.url}/sandbox", json={})
        with while_allowed(gate.check):
            async with session.get(f"{simulator.url}/sandbox") as answer:
                found = await answer.json()
    assert found["items"] == [], "who may not act may still look"


async def test_starts_leave_a_fifth_to_deletes_of_the_same_bucket(
    simulator: Simulator, session: aiohttp.ClientSession
) -> None:
    async def start() -> int:
        async with session.post(f"{simulator.url}/sandbox/none/start") as answer:
            return answer.status

    for _ in range(8):
        assert await start() == 404
    with pytest.raises(Throttled):
        await start()
    for _ in range(2):
        async with session.delete(f"{simulator.url}/sandbox/none") as answer:
            assert answer.status == 404


async def test_a_429_closes_the_bucket_and_no_other(
    simulator: Simulator, session: aiohttp.ClientSession
) -> None:
    async with aiohttp.ClientSession() as other:
        fault = {
            "fault": "status",
            "status": 429,
            "kind": "sandbox.create",
            "retry_after": 30,
            "count": 1,
        }
        await other.post(f"{simulator.admin_url}/faults", json=fault)
    async with session.post(f"{simulator.url}/sandbox", json={}) as answer:
        assert answer.status == 429
    with pytest.raises(Throttled) as refused:
        await session.post(f"{simulator.url}/sandbox", json={})
    assert refused.value.retry_after == pytest.approx(30, abs=1)
    async with session.get(f"{simulator.url}/sandbox") as answer:
        assert answer.status == 200
