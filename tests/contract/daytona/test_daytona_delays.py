"""Each switch takes a delay, and strikes only the kind of call, as often and as likely as told."""

from __future__ import annotations

import aiohttp
import pytest
from daytona import AsyncSandbox
from daytona_admin import Admin

from issuesandbox.local.daytona.faults import Name
from issuesandbox.local.daytona.server import Simulator

DELAY = 0.3
GET, LIST = ("GET", "/sandbox/claude-issue-1"), ("GET", "/sandbox")
# How to be struck by each fault whose delay holds the answer back.
HELD = {
    Name.SLOW: ("sandbox.get", GET),
    Name.STATUS: ("sandbox.get", GET),
    Name.RESET: ("sandbox.get", GET),
    Name.LOST_ANSWER: ("sandbox.stop", ("POST", "/sandbox/claude-issue-1/stop")),
    Name.ROW_EXISTS_400: ("sandbox.create", ("POST", "/sandbox")),
    Name.FAILING_PAGE: ("sandbox.list", LIST),
    Name.POISON_ITEM: ("sandbox.list", LIST),
    Name.UNKNOWN_STATE: ("sandbox.list", LIST),
    Name.STATE_UNKNOWN: ("sandbox.get", GET),
    Name.STATE_MISSING: ("sandbox.get", GET),
    Name.KEPT_NAME: ("sandbox.delete", ("DELETE", "/sandbox/claude-issue-1")),
    Name.FAILED_DESTROY: ("sandbox.delete", ("DELETE", "/sandbox/claude-issue-1")),
    Name.TOOLBOX_DOWN: ("toolbox.execute", ("POST", "toolbox")),
    Name.DAEMON_RESTART: ("toolbox.execute", ("POST", "toolbox")),
}
# What the delay of the others means is shown where they are.
OTHERS = {
    Name.LATE_EFFECT,
    Name.STALE_LIST,
    Name.FLAPPING_LIST,
    Name.STUCK_TRANSITION,
    Name.LOST_EVENT,
}


def test_no_switch_is_forgotten() -> None:
    assert set(HELD) | OTHERS == set(Name)


@pytest.mark.parametrize("name", HELD)
async def test_a_delay_holds_the_answer_back(
    simulator: Simulator,
    sandbox: AsyncSandbox,
    http: aiohttp.ClientSession,
    admin: Admin,
    name: Name,
) -> None:
    kind, (method, path) = HELD[name]
    await admin.fault(name, kind, count=1, delay=DELAY, page=1)
    url = f"{simulator.url}{path}"
    body: dict[str, str] = {}
    if path == "toolbox":
        url = f"{sandbox.toolbox_proxy_url}/{sandbox.id}/process/execute"
        body = {"command": "true"}
    try:
        async with http.request(method, url, json=body if method == "POST" else None) as response:
            await response.read()
    except aiohttp.ClientError:
        assert name in (Name.RESET, Name.LOST_ANSWER)
    struck = [entry for entry in await admin.journal(kind=kind) if entry["fault"] == name]
    assert [entry["dur_ms"] >= DELAY * 1000 for entry in struck] == [True]
    assert await admin.call("GET", "/faults") == []


@pytest.mark.parametrize("name", sorted(set(Name) - {Name.LOST_EVENT}))
async def test_a_switch_for_another_kind_of_call_or_without_a_chance_strikes_nobody(
    sandbox: AsyncSandbox, admin: Admin, name: Name
) -> None:
    await admin.fault(name, "snapshot.*", delay=DELAY)
    await admin.fault(name, probability=0)
    await sandbox.refresh_data()
    await sandbox.process.exec("true")
    await sandbox.stop(timeout=10)
    await sandbox.delete(timeout=10)
    assert {entry.get("fault") for entry in await admin.journal(type="request")} <= {None}
    assert [fault["struck"] for fault in await admin.call("GET", "/faults")] == [0, 0]


async def test_two_pages_can_fail_each_in_its_turn(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin
) -> None:
    await admin.plant(count=250)
    for page, status in ((2, 502), (1, 503)):
        await admin.fault("failing_page", "sandbox.list", page=page, status=status, count=1)

    async def ask(**query: str) -> tuple[int, str | None]:
        async with http.get(f"{simulator.url}/sandbox", params=query) as response:
            return response.status, (await response.json()).get("nextCursor")

    assert (await ask())[0] == 503
    status, cursor = await ask()
    assert (status, cursor is None) == (200, False)
    assert (await ask(cursor=str(cursor)))[0] == 502
    assert (await ask(cursor=str(cursor)))[0] == 200
