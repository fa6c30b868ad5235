"""What the service does on its own, with the clock pushed forward."""

from __future__ import annotations

import aiohttp
import pytest
from daytona import AsyncDaytona, AsyncSandbox, DaytonaNotFoundError, SandboxState
from daytona_admin import Admin
from daytona_api_client_async import CreateBuildInfo, CreateSandbox, SandboxApi

MINUTE, HOUR, DAY = 60, 3600, 86_400


async def state(sandbox: AsyncSandbox) -> SandboxState | None:
    await sandbox.refresh_data()
    return sandbox.state


async def test_an_idle_sandbox_is_stopped_after_its_interval(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await admin.advance(14 * MINUTE)
    assert await state(sandbox) == SandboxState.STARTED
    await admin.advance(2 * MINUTE)
    assert await state(sandbox) == SandboxState.STOPPED
    last = (await admin.journal(type="state", sandbox=sandbox.id))[-1]
    assert (last["to"], last["cause"]) == ("stopped", "time")


async def test_toolbox_calls_keep_a_sandbox_alive_and_api_calls_do_not(
    sandbox: AsyncSandbox, daytona: AsyncDaytona, admin: Admin
) -> None:
    await admin.advance(10 * MINUTE)
    await sandbox.process.exec("true")
    await admin.advance(10 * MINUTE)
    assert await state(sandbox) == SandboxState.STARTED
    await daytona.get(sandbox.id)
    await sandbox.set_labels({"a": "b"})
    await admin.advance(10 * MINUTE)
    assert await state(sandbox) == SandboxState.STOPPED


async def test_last_activity_keeps_a_sandbox_alive(sandbox: AsyncSandbox, admin: Admin) -> None:
    await admin.advance(10 * MINUTE)
    await sandbox.refresh_activity()
    await admin.advance(10 * MINUTE)
    assert await state(sandbox) == SandboxState.STARTED


async def test_a_probe_may_ask_not_to_count(
    sandbox: AsyncSandbox, admin: Admin, http: aiohttp.ClientSession
) -> None:
    await admin.advance(10 * MINUTE)
    url = f"{sandbox.toolbox_proxy_url}/{sandbox.id}/work-dir"
    headers = {"X-Daytona-Skip-Last-Activity-Update": "true"}
    async with http.get(url, headers=headers) as response:
        assert response.status == 200
    await admin.advance(10 * MINUTE)
    assert await state(sandbox) == SandboxState.STOPPED


async def test_a_background_process_does_not_count(sandbox: AsyncSandbox, admin: Admin) -> None:
    await sandbox.process.exec("nohup sleep 1000 >/dev/null 2>&1 &")
    await admin.advance(16 * MINUTE)
    assert await state(sandbox) == SandboxState.STOPPED
    assert await admin.call("GET", "/processes") == {}


async def test_auto_stop_can_be_switched_off(sandbox: AsyncSandbox, admin: Admin) -> None:
    await sandbox.set_autostop_interval(0)
    await admin.advance(30 * DAY)
    assert await state(sandbox) == SandboxState.STARTED


async def test_a_stopped_sandbox_is_archived_then_started_again(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await sandbox.set_auto_archive_interval(60)
    await sandbox.stop(timeout=10)
    await admin.advance(2 * HOUR)
    assert await state(sandbox) == SandboxState.ARCHIVED
    assert sandbox.backup_state == "Completed"
    await sandbox.start(timeout=10)


async def test_a_stopped_sandbox_is_deleted_after_its_interval(
    sandbox: AsyncSandbox, daytona: AsyncDaytona, admin: Admin
) -> None:
    await sandbox.set_auto_delete_interval(30)
    await sandbox.stop(timeout=10)
    await admin.advance(29 * MINUTE)
    assert await state(sandbox) == SandboxState.STOPPED
    await admin.advance(2 * MINUTE)
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(sandbox.id)


async def test_the_time_to_live_ends_a_sandbox_in_any_state(
    sandbox: AsyncSandbox, daytona: AsyncDaytona, admin: Admin
) -> None:
    await sandbox.set_ttl(7 * 24 * 60)
    await admin.advance(7 * DAY - MINUTE)
    assert (await daytona.get(sandbox.id)).state == SandboxState.STOPPED
    await admin.advance(2 * MINUTE)
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(sandbox.id)


async def test_the_whole_life_of_a_forgotten_sandbox_is_in_the_journal_in_order(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    wanted = CreateSandbox(
        auto_stop_interval=60, auto_archive_interval=1440, auto_delete_interval=4320
    )
    made = await sandbox_api.create_sandbox(wanted)
    await admin.advance(10 * DAY)
    entries = await admin.journal(type="state", sandbox=made.id)
    assert [entry["to"] for entry in entries] == [
        "creating",
        "started",
        "stopping",
        "stopped",
        "archiving",
        "archived",
    ]
    assert entries[0]["from"] is None
    assert entries[2]["at"] - entries[1]["at"] == pytest.approx(HOUR, abs=1)
    assert entries[4]["at"] - entries[3]["at"] == pytest.approx(DAY, abs=1)


@pytest.mark.parametrize(
    ("minutes", "shown", "end"),
    [
        (15, "creating", SandboxState.ERROR),
        (30, "pulling_snapshot", SandboxState.ERROR),
        (60, "building_snapshot", SandboxState.BUILD_FAILED),
        (5, "starting", SandboxState.ERROR),
        (30, "restoring", SandboxState.ERROR),
    ],
)
async def test_the_service_gives_up_on_what_takes_too_long(
    sandbox_api: SandboxApi, admin: Admin, minutes: int, shown: str, end: SandboxState
) -> None:
    timings = {"answer_hold": 0.01, "pulling_snapshot": 0.01}
    await admin.call("PATCH", "/settings", {"timings": timings})
    await admin.fault("stuck_transition", "sandbox.*", state=shown)
    if shown in ("starting", "restoring"):
        resting = {"starting": "stopped", "restoring": "archived"}[shown]
        name = (await admin.plant(state=resting))[0]["id"]
        await sandbox_api.start_sandbox(name)
    else:
        image = CreateBuildInfo(dockerfile_content="FROM debian:12\n")
        wanted = CreateSandbox(build_info=image if shown == "building_snapshot" else None)
        name = (await sandbox_api.create_sandbox(wanted)).id
    await admin.advance((minutes - 1) * MINUTE)
    assert (await sandbox_api.get_sandbox(name)).state == shown
    await admin.advance(2 * MINUTE)
    seen = await sandbox_api.get_sandbox(name)
    assert (seen.state, seen.recoverable) == (end, False)
    assert f"Timeout while {shown}" in (seen.error_reason or "")


async def test_a_restore_that_never_begins_is_given_up_too(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    await admin.fault("stuck_transition", "sandbox.start")
    (planted,) = await admin.plant(state="archived")
    await sandbox_api.start_sandbox(planted["id"])
    await admin.advance(29 * MINUTE)
    assert (await sandbox_api.get_sandbox(planted["id"])).state == SandboxState.ARCHIVED
    await admin.advance(2 * MINUTE)
    assert (await sandbox_api.get_sandbox(planted["id"])).state == SandboxState.ERROR


async def test_a_timeout_is_recoverable_where_a_backup_was_completed(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await sandbox.stop(timeout=10)
    await sandbox.archive()
    await admin.advance(MINUTE)
    await sandbox.start(timeout=10)
    await sandbox.stop(timeout=10)
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    await admin.fault("stuck_transition", "sandbox.start", count=1)
    await sandbox_api.start_sandbox(sandbox.id)
    await admin.advance(6 * MINUTE)
    seen = await sandbox_api.get_sandbox(sandbox.id)
    assert (seen.state, seen.recoverable) == (SandboxState.ERROR, True)
    await sandbox.recover(timeout=10)
    assert sandbox.state == SandboxState.STARTED


async def test_time_does_not_go_back(admin: Admin, http: aiohttp.ClientSession) -> None:
    async with http.post(f"{admin.url}/advance", json={"seconds": -1}) as response:
        assert response.status == 400
