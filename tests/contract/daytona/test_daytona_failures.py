"""What the operator makes of Daytona's refusals: seven kinds, told apart, and no endless call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from daytona_admin import KEY, Admin, eventually

from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.domain.timings import Timings
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.ports.errors import (
    Busy,
    CallError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)
from issuesandbox.ports.sandboxes import SandboxOrder

ORDER = SandboxOrder(name="claude-issue-1", labels={})
TIMINGS = Timings(
    read_timeout=timedelta(seconds=0.2),
    change_timeout=timedelta(seconds=0.3),
    create_timeout=timedelta(seconds=0.4),
)
BUSY = "Sandbox state change in progress"
REFUSALS: list[tuple[dict[str, Any], type[CallError], str]] = [
    ({"status": 400}, Invalid, "Invalid"),
    ({"status": 422}, Invalid, "Invalid"),
    ({"status": 401}, Denied, "Unauthorized"),
    ({"status": 403}, Denied, "Denied"),
    ({"status": 403, "message": "Organization is suspended"}, Denied, "OrganizationSuspended"),
    ({"status": 404}, NotFound, "NotFound"),
    ({"status": 410}, NotFound, "NotFound"),
    ({"status": 409}, Busy, "Busy"),
    ({"status": 409, "message": "Sandbox was recovered recently, try again later"}, Busy, "Busy"),
    ({"status": 409, "message": BUSY}, Busy, "Busy"),
    ({"status": 400, "message": BUSY}, Busy, "Busy"),
    ({"status": 429}, Throttled, "Throttled"),
    ({"status": 400, "message": "Total CPU limit exceeded"}, Throttled, "QuotaExceeded"),
    ({"status": 400, "message": "No available runners"}, Throttled, "NoCapacity"),
    ({"status": 408}, Unavailable, "Unavailable"),
    ({"status": 500}, Unavailable, "Unavailable"),
    ({"status": 502}, Unavailable, "Unavailable"),
    ({"status": 503}, Unavailable, "Unavailable"),
    ({"status": 504}, Unavailable, "Unavailable"),
]

Call = Callable[[DaytonaSandboxes], Awaitable[Any]]
# Each call, and how long it may take.
CALLS: dict[str, tuple[Call, float]] = {
    "get": (lambda sandboxes: sandboxes.get("odd"), 0.2),
    "list": (lambda sandboxes: sandboxes.list_owned({}), 0.2),
    "organization": (lambda sandboxes: sandboxes.organization(), 0.2),
    "start": (lambda sandboxes: sandboxes.start("odd"), 0.3),
    "stop": (lambda sandboxes: sandboxes.stop("odd"), 0.3),
    "recover": (lambda sandboxes: sandboxes.recover("odd"), 0.3),
    "archive": (lambda sandboxes: sandboxes.archive("odd"), 0.3),
    "delete": (lambda sandboxes: sandboxes.delete("odd"), 0.3),
    "relabel": (lambda sandboxes: sandboxes.relabel("odd", {}), 0.3),
    "renew": (lambda sandboxes: sandboxes.renew("odd"), 0.3),
    "create": (lambda sandboxes: sandboxes.create(ORDER), 0.4),
}


@pytest.fixture
async def sandboxes(simulator: Simulator) -> AsyncIterator[DaytonaSandboxes]:
    sandboxes = DaytonaSandboxes(simulator.url, KEY, TIMINGS)
    yield sandboxes
    await sandboxes.close()


@pytest.mark.parametrize(
    ("refusal", "kind", "code"), REFUSALS, ids=lambda each: str(getattr(each, "__name__", each))
)
async def test_every_refusal_is_one_of_seven_kinds(
    sandboxes: DaytonaSandboxes,
    admin: Admin,
    refusal: dict[str, Any],
    kind: type[CallError],
    code: str,
) -> None:
    await admin.plant(name="odd")
    await admin.fault("status", "sandbox.stop", retry_after=7, **refusal)
    with pytest.raises(CallError) as caught:
        await sandboxes.stop("odd")
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert caught.value.retry_after == (7 if refusal["status"] == 429 else None)
    assert refusal.get("message", "") in str(caught.value)


async def test_what_exists_already_and_what_does_not_are_told_apart(
    sandboxes: DaytonaSandboxes, admin: Admin
) -> None:
    await admin.plant(name=ORDER.name)
    with pytest.raises(Conflict):
        await sandboxes.create(ORDER)
    with pytest.raises(NotFound):
        await sandboxes.get("no-such")


async def test_a_connection_that_breaks_proves_nothing(
    sandboxes: DaytonaSandboxes, admin: Admin
) -> None:
    await admin.plant(name="odd")
    for fault in ("reset", "lost_answer"):
        await admin.fault(fault, "sandbox.stop", count=1)
        with pytest.raises(Unavailable):
            await sandboxes.stop("odd")


@pytest.mark.parametrize("name", CALLS)
async def test_no_call_takes_longer_than_its_own_time(
    sandboxes: DaytonaSandboxes, admin: Admin, name: str
) -> None:
    call, seconds = CALLS[name]
    await admin.plant(name="odd")
    await admin.fault("slow", "*", delay=0.7)
    with pytest.raises(Unavailable, match=f"within {seconds:g} s"):
        await call(sandboxes)

    async def over() -> bool:
        return bool(await admin.journal(fault="slow"))

    await eventually(over)
