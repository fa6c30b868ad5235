"""Every switch that makes the service misbehave can be seen from outside."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    DaytonaBadGatewayError,
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaConnectionError,
    DaytonaError,
    DaytonaNotFoundError,
    SandboxState,
    SessionExecuteRequest,
)
from daytona.common import errors
from daytona_admin import KEY, Admin, eventually
from daytona_api_client_async import CreateSandbox, SandboxApi
from daytona_api_client_async.exceptions import ApiException

from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.faults import Name
from issuesandbox.local.daytona.server import Simulator

NEW = CreateSandbox(name="claude-issue-1")


@pytest.mark.parametrize("status", sorted(errors.STATUS_CODE_TO_ERROR))
async def test_each_status_raises_the_error_class_of_the_sdk(
    daytona: AsyncDaytona, admin: Admin, status: int
) -> None:
    await admin.fault("status", "sandbox.get", status=status)
    with pytest.raises(DaytonaError) as caught:
        await daytona.get("x")
    assert type(caught.value) is errors.STATUS_CODE_TO_ERROR[status]
    assert caught.value.status_code == status


async def test_a_status_has_no_effect_on_the_sandbox(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.fault("status", "sandbox.create", status=500)
    with pytest.raises(ApiException):
        await sandbox_api.create_sandbox(NEW)
    assert await admin.rows() == []


async def test_a_throttled_call_names_its_bucket(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin
) -> None:
    await admin.fault("status", "sandbox.create", status=429, retry_after=7)
    async with http.post(f"{simulator.url}/sandbox", json={}) as response:
        assert response.status == 429
        assert response.headers["Retry-After-sandbox-create"] == "7"


async def test_a_lost_answer_leaves_the_effect(
    daytona: AsyncDaytona, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("lost_answer", "sandbox.create", count=1)
    with pytest.raises(DaytonaConnectionError):
        await daytona.create(CreateSandboxFromSnapshotParams(name="claude-issue-1"), timeout=10)
    assert (await daytona.get("claude-issue-1")).state == SandboxState.STARTED
    (request,) = await admin.journal(kind="sandbox.create")
    assert (request["fault"], request["effect"]) == ("lost_answer", "created")
    assert request["status"] is None


async def test_a_refusal_is_lost_as_well(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.plant(name="claude-issue-1")
    await admin.fault("lost_answer", "sandbox.create", count=1)
    with pytest.raises(aiohttp.ClientError):
        await sandbox_api.create_sandbox(NEW)
    assert len(await admin.rows()) == 1


async def test_a_reset_leaves_nothing(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.fault("reset", "sandbox.create", count=1)
    with pytest.raises(aiohttp.ClientError):
        await sandbox_api.create_sandbox(NEW)
    assert await admin.rows() == []


async def test_a_late_effect_lands_after_the_caller_gave_up(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("late_effect", "sandbox.create", count=1, delay=1)
    with pytest.raises(aiohttp.ClientError):
        await sandbox_api.create_sandbox(NEW)
    assert await admin.rows() == []
    (row,) = await eventually(admin.rows)
    assert row["name"] == "claude-issue-1"

    async def written() -> bool:
        entries = await admin.journal(kind="sandbox.create")
        return [entry["effect"] for entry in entries] == [None, "created"]

    await eventually(written)


async def test_a_late_effect_may_come_with_a_status(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.fault("late_effect", "sandbox.create", count=1, delay=0.05, status=504)
    with pytest.raises(ApiException) as caught:
        await sandbox_api.create_sandbox(NEW)
    assert caught.value.status == 504
    await eventually(admin.rows)


async def test_a_failed_start_answers_400_and_keeps_the_row_and_the_name(
    daytona: AsyncDaytona, admin: Admin
) -> None:
    params = CreateSandboxFromSnapshotParams(name="claude-issue-1")
    await admin.fault("row_exists_400", "sandbox.create", count=1, reason="no disk")
    with pytest.raises(DaytonaBadRequestError, match="Sandbox failed to start: no disk"):
        await daytona.create(params, timeout=10)
    seen = await daytona.get("claude-issue-1")
    assert (seen.state, seen.error_reason) == (SandboxState.ERROR, "no disk")
    with pytest.raises(DaytonaConflictError):
        await daytona.create(params, timeout=10)


async def test_a_failed_restart_answers_400(sandbox: AsyncSandbox, admin: Admin) -> None:
    await sandbox.stop(timeout=10)
    await admin.fault("row_exists_400", "sandbox.start", count=1, recoverable=True)
    with pytest.raises(DaytonaBadRequestError, match="failed to start"):
        await sandbox.start(timeout=10)
    await sandbox.recover(timeout=10)
    assert sandbox.state == SandboxState.STARTED


async def listed(sandbox_api: SandboxApi) -> dict[str, str]:
    return {item.id: str(item.state) for item in (await sandbox_api.list_sandboxes()).items}


async def test_a_stale_list_shows_the_past_and_get_the_present(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    (old,) = await admin.plant(name="old")
    fault = await admin.fault("stale_list", "sandbox.list")
    (new,) = await admin.plant(name="new")
    await admin.call("POST", "/sandboxes/old/destroy")
    assert list(await listed(sandbox_api)) == [old["id"]]
    assert (await sandbox_api.get_sandbox("new")).id == new["id"]
    await admin.call("DELETE", f"/faults/{fault}")
    assert list(await listed(sandbox_api)) == [new["id"]]


async def test_a_stale_list_catches_up_after_its_delay(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("stale_list", "sandbox.list", delay=30)
    await admin.plant()
    assert await listed(sandbox_api) == {}
    await admin.advance(31)
    assert len(await listed(sandbox_api)) == 1


async def test_a_flapping_list_takes_back_and_forth_what_changed(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    (steady,) = await admin.plant(name="steady")
    (going,) = await admin.plant(name="going")
    await admin.fault("flapping_list", "sandbox.list", delay=60)
    await admin.fault("stuck_transition", "sandbox.delete")
    await sandbox_api.delete_sandbox("going")
    views = [await listed(sandbox_api) for _ in range(40)]
    assert all(steady["id"] in view for view in views)
    assert {view.get(going["id"]) for view in views} == {
        None,
        str(SandboxState.STARTED),
        str(SandboxState.DESTROYING),
    }


async def test_the_second_page_can_fail(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.plant(count=150)
    await admin.fault("failing_page", "sandbox.list", page=2, count=1)
    first = await sandbox_api.list_sandboxes()
    with pytest.raises(ApiException) as caught:
        await sandbox_api.list_sandboxes(cursor=first.next_cursor)
    assert caught.value.status == 500
    assert len((await sandbox_api.list_sandboxes(cursor=first.next_cursor)).items) == 50


async def test_one_poison_item_makes_the_sdk_give_up_on_the_list(
    daytona: AsyncDaytona, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.plant(count=3)
    await admin.fault("poison_item", "sandbox.list", count=1)
    with pytest.raises(DaytonaError, match="cobol"):
        _ = [item async for item in daytona.list()]
    await admin.fault("poison_item", "sandbox.list", count=1, how="type")
    with pytest.raises(ValueError, match="cpu"):
        await sandbox_api.list_sandboxes()
    assert len((await sandbox_api.list_sandboxes()).items) == 3


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        ("unknown_state", "unknown_default_open_api"),
        ("state_unknown", "unknown"),
        ("state_missing", None),
    ],
)
async def test_a_state_can_be_one_that_nobody_knows(
    sandbox_api: SandboxApi, admin: Admin, fault: str, shown: str | None
) -> None:
    await admin.plant(name="odd")
    await admin.plant(name="even")
    await admin.fault(fault, "sandbox.*", sandbox="odd")
    assert (await sandbox_api.get_sandbox("odd")).state == shown
    assert (await sandbox_api.get_sandbox("even")).state == "started"
    items = {item.name: item.state for item in (await sandbox_api.list_sandboxes()).items}
    assert items == {"odd": shown, "even": "started"}


async def test_a_delete_may_forget_to_free_the_name(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("kept_name", "sandbox.delete", count=1)
    await admin.fault("stuck_transition", "sandbox.delete", count=1)
    await sandbox_api.delete_sandbox(sandbox.id)
    with pytest.raises(ApiException) as caught:
        await sandbox_api.create_sandbox(NEW)
    assert caught.value.status == 409
    await admin.call("POST", f"/sandboxes/{sandbox.id}/release")

    async def free() -> bool:
        return await admin.rows() == []

    await eventually(free)
    await sandbox_api.create_sandbox(NEW)


async def test_a_destroy_that_fails_leaves_a_row_that_nobody_sees(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("failed_destroy", "sandbox.delete", count=1)
    deleted = await sandbox_api.delete_sandbox(sandbox.id)
    assert deleted.state == SandboxState.DESTROYING

    async def unseen() -> bool:
        try:
            await sandbox_api.get_sandbox(sandbox.id)
        except ApiException as error:
            return error.status == 404
        return False

    await eventually(unseen)
    assert (await sandbox_api.list_sandboxes()).items == []
    (row,) = await admin.rows()
    assert (row["state"], row["desiredState"], row["visibleState"]) == (
        "error",
        "destroyed",
        "hidden",
    )
    assert row["errorReason"] == "Failed to destroy the container"
    again = await sandbox_api.create_sandbox(CreateSandbox(name="claude-issue-1"))
    assert again.id != sandbox.id


async def test_a_stuck_transition_goes_on_when_released(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("stuck_transition", "sandbox.stop", count=1)
    await sandbox_api.stop_sandbox(sandbox.id)
    await admin.advance(7200)
    assert (await sandbox_api.get_sandbox(sandbox.id)).state == SandboxState.STOPPING
    with pytest.raises(ApiException) as caught:
        await sandbox_api.delete_sandbox(sandbox.id)
    assert caught.value.status == 409
    await admin.call("POST", f"/sandboxes/{sandbox.id}/release")
    await sandbox.wait_for_sandbox_stop(timeout=10)


async def test_a_stuck_transition_may_last_a_while(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("stuck_transition", "sandbox.stop", count=1, delay=60)
    await sandbox_api.stop_sandbox(sandbox.id)
    await admin.advance(59)
    assert (await sandbox_api.get_sandbox(sandbox.id)).state == SandboxState.STOPPING
    await admin.advance(2)
    assert (await sandbox_api.get_sandbox(sandbox.id)).state == SandboxState.STOPPED


async def test_the_toolbox_can_be_down_while_the_sandbox_is_started(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await admin.fault("toolbox_down", "toolbox.*")
    with pytest.raises(DaytonaBadGatewayError):
        await sandbox.process.exec("true")
    await sandbox.refresh_data()
    assert sandbox.state == SandboxState.STARTED
    await admin.clear()
    assert (await sandbox.process.exec("true")).exit_code == 0


async def test_a_restarted_daemon_forgets_sessions_but_not_processes(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="sleep 1000", run_async=True)
    await sandbox.process.execute_session_command("s", request)

    async def running() -> bool:
        return "sleep 1000" in await admin.commands(sandbox.id)

    await eventually(running)
    await admin.fault("daemon_restart", "toolbox.*", count=1)
    with pytest.raises(DaytonaBadGatewayError):
        await sandbox.process.exec("true")
    with pytest.raises(DaytonaNotFoundError):
        await sandbox.process.get_session("s")
    assert await running()


async def test_answers_can_be_slow(daytona: AsyncDaytona, admin: Admin) -> None:
    await admin.plant(name="a")
    await admin.fault("slow", "sandbox.get", count=1, delay=0.3)
    began = time.monotonic()
    await daytona.get("a")
    assert time.monotonic() - began >= 0.3


async def test_a_toolbox_status_comes_in_the_daemons_envelope(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await admin.fault("status", "toolbox.execute", status=404, message="gone")
    with pytest.raises(DaytonaNotFoundError) as caught:
        await sandbox.process.exec("true")
    assert (caught.value.code, caught.value.source) == ("NOT_FOUND", "DAYTONA_DAEMON")


async def test_a_fault_strikes_as_often_as_told_and_where_told(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.plant(name="a")
    await admin.plant(name="b")
    await admin.fault("status", "sandbox.get", sandbox="a", skip=1, count=2, status=503)

    async def ask(name: str) -> int:
        try:
            await sandbox_api.get_sandbox(name)
        except ApiException as error:
            return int(error.status)
        return 200

    assert [await ask(name) for name in "abaaba"] == [200, 200, 503, 503, 200, 200]
    assert await admin.call("GET", "/faults") == []


async def test_chance_is_the_same_again_with_the_same_seed(config: SimulatorConfig) -> None:
    async def strikes(seed: int) -> list[str | None]:
        async with (
            Simulator(replace(config, seed=seed)) as simulator,
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session,
        ):
            admin = Admin(simulator.admin_url, session)
            await admin.fault("status", "sandbox.get", probability=0.5)
            for _ in range(40):
                async with session.get(f"{simulator.url}/sandbox/x"):
                    pass
            return [entry["fault"] for entry in await admin.journal(kind="sandbox.get")]

    first = await strikes(7)
    assert 5 < first.count("status") < 35
    assert await strikes(7) == first
    assert await strikes(8) != first


@pytest.mark.parametrize(
    "body",
    [
        {"fault": "nonsense"},
        {"fault": "slow", "probability": 2},
        {"fault": "status", "status": 200},
        {"fault": "slow", "typo": 1},
        {"fault": "row_exists_400", "state": "started"},
        [],
    ],
)
async def test_a_bad_switch_is_refused(
    admin: Admin, http: aiohttp.ClientSession, body: object
) -> None:
    async with http.post(f"{admin.url}/faults", json=body) as response:
        assert response.status == 400
        assert (await response.json())["message"]
    assert await admin.call("GET", "/faults") == []


async def test_the_lookup_cache_serves_the_past_for_a_while(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.call("PATCH", "/settings", {"lookup_cache_seconds": 10})
    with pytest.raises(ApiException):
        await sandbox_api.get_sandbox("late")
    await admin.plant(name="late")
    with pytest.raises(ApiException):  # the answer of a moment ago
        await sandbox_api.get_sandbox("late")
    await admin.advance(11)
    assert (await sandbox_api.get_sandbox("late")).state == "started"
    await admin.call("POST", "/sandboxes/late/stop")
    assert (await sandbox_api.get_sandbox("late")).state == "started"
    await admin.advance(2)
    assert (await sandbox_api.get_sandbox("late")).state == "stopped"


async def test_a_lost_answer_of_a_delete_is_retried_by_the_sdk_and_then_not_found(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    await admin.fault("lost_answer", "sandbox.delete", count=1)
    with pytest.raises((DaytonaConflictError, DaytonaNotFoundError)):
        await sandbox.delete(timeout=10)
    assert len(await admin.journal(kind="sandbox.delete")) >= 2


def test_every_switch_is_tried() -> None:
    here = Path(__file__).parent
    text = "".join(path.read_text() for path in here.glob("test_*.py"))
    assert [
        name for name in Name if f'fault("{name}"' not in text and f'("{name}",' not in text
    ] == []
