"""Sandboxes from creation to destruction, as the real SDK sees them."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromImageParams,
    CreateSandboxFromSnapshotParams,
    DaytonaBadRequestError,
    DaytonaConflictError,
    DaytonaNotFoundError,
    DaytonaUnprocessableEntityError,
    Image,
    Resources,
    SandboxState,
)
from daytona_admin import ORGANIZATION, Admin, eventually
from daytona_api_client_async import CreateSandbox, SandboxApi
from daytona_api_client_async.exceptions import ApiException

from issuesandbox.local.daytona.model import State


async def test_a_created_sandbox_has_what_was_asked_for(daytona: AsyncDaytona) -> None:
    params = CreateSandboxFromSnapshotParams(
        name="claude-issue-7",
        snapshot="daytona-medium",
        labels={"issuesandbox.dev/number": "7"},
        env_vars={"A": "b"},
        auto_stop_interval=60,
        auto_archive_interval=1440,
        auto_delete_interval=4320,
        ttl_minutes=10080,
        target="eu",
    )
    created = await daytona.create(params, timeout=10)
    seen = await daytona.get("claude-issue-7")
    assert seen.id == created.id
    assert uuid.UUID(seen.id).version == 4
    assert seen.state == SandboxState.STARTED
    assert seen.organization_id == ORGANIZATION
    assert seen.labels["issuesandbox.dev/number"] == "7"
    assert seen.env == {"A": "b"}
    assert (seen.cpu, seen.memory, seen.disk) == (2, 4, 8)
    assert (seen.auto_stop_interval, seen.auto_archive_interval) == (60, 1440)
    assert seen.auto_delete_interval == 4320
    assert seen.auto_destroy_at is not None
    assert seen.target == "eu"


async def test_a_sandbox_without_a_name_is_called_by_its_id(sandbox_api: SandboxApi) -> None:
    created = await sandbox_api.create_sandbox(CreateSandbox())
    assert created.name == created.id
    assert (created.auto_stop_interval, created.auto_archive_interval) == (15, 10080)
    assert created.auto_delete_interval == -1


async def test_a_cold_create_answers_creating_although_it_waited(
    sandbox_api: SandboxApi,
) -> None:
    created = await sandbox_api.create_sandbox(CreateSandbox(name="a"))
    assert created.state == SandboxState.CREATING
    assert (await sandbox_api.get_sandbox("a")).state == SandboxState.STARTED


async def test_a_warm_create_answers_started(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.call("PATCH", "/settings", {"warm": True})
    created = await sandbox_api.create_sandbox(CreateSandbox(name="a"))
    assert created.state == SandboxState.STARTED


async def test_an_image_is_built_first_and_its_logs_can_be_followed(
    daytona: AsyncDaytona, admin: Admin
) -> None:
    logs: list[str] = []
    params = CreateSandboxFromImageParams(
        name="built", image=Image.base("debian:12"), resources=Resources(cpu=2, memory=3, disk=5)
    )
    built = await daytona.create(params, timeout=20, on_snapshot_create_logs=logs.append)
    assert (built.cpu, built.memory, built.disk) == (2, 3, 5)
    assert "FROM debian:12" in "".join(logs)
    states = [entry["to"] for entry in await admin.journal(type="state", sandbox=built.id)]
    assert states == ["pending_build", "building_snapshot", "creating", "started"]


async def test_one_name_is_won_once_by_a_hundred_parallel_creates(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    async def create() -> int:
        try:
            await sandbox_api.create_sandbox(CreateSandbox(name="claude-issue-1"))
        except ApiException as error:
            return int(error.status)
        return 200

    answers = await asyncio.gather(*(create() for _ in range(100)))
    assert sorted(answers) == [200] + [409] * 99
    assert len(await admin.rows()) == 1


async def test_the_sdk_calls_a_taken_name_a_conflict(
    daytona: AsyncDaytona, sandbox: AsyncSandbox
) -> None:
    with pytest.raises(DaytonaConflictError, match="claude-issue-1 already exists"):
        await daytona.create(CreateSandboxFromSnapshotParams(name="claude-issue-1"), timeout=10)


async def test_an_id_wins_over_a_name_that_looks_like_it(
    daytona: AsyncDaytona, sandbox: AsyncSandbox
) -> None:
    await daytona.create(CreateSandboxFromSnapshotParams(name=sandbox.id), timeout=10)
    assert (await daytona.get(sandbox.id)).name == "claude-issue-1"


async def test_names_with_odd_characters_are_found(daytona: AsyncDaytona) -> None:
    created = await daytona.create(CreateSandboxFromSnapshotParams(name="a b/ü?#"), timeout=10)
    assert (await daytona.get("a b/ü?#")).id == created.id


async def test_stop_and_start_keep_the_sandbox(sandbox: AsyncSandbox) -> None:
    await sandbox.stop(timeout=10)
    assert sandbox.state == SandboxState.STOPPED
    await sandbox.start(timeout=10)
    assert sandbox.state == SandboxState.STARTED


async def test_stop_answers_stopping_at_once(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi
) -> None:
    assert (await sandbox_api.stop_sandbox(sandbox.id)).state == SandboxState.STOPPING


async def test_starting_a_started_sandbox_changes_nothing(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    before = await admin.journal(type="state")
    assert (await sandbox_api.start_sandbox(sandbox.id)).state == SandboxState.STARTED
    assert await admin.journal(type="state") == before


async def test_an_archived_sandbox_is_restored(
    sandbox: AsyncSandbox, daytona: AsyncDaytona
) -> None:
    await sandbox.stop(timeout=10)
    await sandbox.archive()

    async def archived() -> bool:
        return (await daytona.get(sandbox.id)).state == SandboxState.ARCHIVED

    await eventually(archived)
    await sandbox.start(timeout=10)
    assert sandbox.state == SandboxState.STARTED


async def test_while_restoring_the_list_and_get_disagree(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.call("POST", f"/sandboxes/{sandbox.id}/state", {"state": "archived"})
    await admin.fault("stuck_transition", "sandbox.start")
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    await sandbox_api.start_sandbox(sandbox.id)
    assert (await sandbox_api.get_sandbox(sandbox.id)).state == SandboxState.ARCHIVED
    (item,) = (await sandbox_api.list_sandboxes()).items
    assert item.state == SandboxState.RESTORING


async def test_a_virtual_machine_can_be_paused_and_a_container_cannot(
    daytona: AsyncDaytona, sandbox: AsyncSandbox
) -> None:
    machine = await daytona.create(
        CreateSandboxFromSnapshotParams(snapshot="daytona-vm"), timeout=9
    )
    assert (machine.auto_stop_interval, machine.auto_pause_interval) == (0, 60)
    await machine.pause(timeout=10)
    assert machine.state == SandboxState.PAUSED
    await machine.start(timeout=10)
    assert machine.state == SandboxState.STARTED
    with pytest.raises(DaytonaUnprocessableEntityError):
        await sandbox.pause(timeout=10)


async def test_a_recoverable_error_is_recovered_once_an_hour(
    sandbox: AsyncSandbox, admin: Admin
) -> None:
    broken = {"state": "error", "reason": "job timed out", "recoverable": True}
    await admin.call("POST", f"/sandboxes/{sandbox.id}/state", broken)
    await sandbox.refresh_data()
    assert (sandbox.state, sandbox.recoverable) == (SandboxState.ERROR, True)
    await sandbox.recover(timeout=10)
    assert sandbox.state == SandboxState.STARTED
    await admin.call("POST", f"/sandboxes/{sandbox.id}/state", broken)
    with pytest.raises(DaytonaConflictError):
        await sandbox.recover(timeout=10)


async def test_an_unrecoverable_error_can_only_be_deleted(
    sandbox: AsyncSandbox, daytona: AsyncDaytona, admin: Admin
) -> None:
    await admin.call("POST", f"/sandboxes/{sandbox.id}/state", {"state": "error", "reason": "x"})
    for attempt in (sandbox.start, sandbox.stop, sandbox.recover):
        with pytest.raises(DaytonaBadRequestError):
            await attempt(timeout=10)
    await sandbox.delete(timeout=10)
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(sandbox.id)
    states = [entry["to"] for entry in await admin.journal(type="state", sandbox=sandbox.id)]
    assert states[:4] == ["creating", "started", "error", "hidden"]


async def test_delete_frees_the_name_before_the_sandbox_is_gone(
    sandbox: AsyncSandbox, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("stuck_transition", "sandbox.delete")
    deleted = await sandbox_api.delete_sandbox(sandbox.id)
    assert deleted.state == SandboxState.DESTROYING
    assert deleted.name.startswith("DESTROYED_claude-issue-1_")
    again = await sandbox_api.create_sandbox(CreateSandbox(name="claude-issue-1"))
    assert again.id != sandbox.id
    assert (await sandbox_api.get_sandbox(sandbox.id)).state == SandboxState.DESTROYING
    listed = {item.id: item.name for item in (await sandbox_api.list_sandboxes()).items}
    assert listed[sandbox.id].startswith("DESTROYED_")
    with pytest.raises(ApiException) as caught:
        await sandbox_api.delete_sandbox(sandbox.id)
    assert caught.value.status == 409


async def test_a_deleted_sandbox_is_not_found(sandbox: AsyncSandbox, daytona: AsyncDaytona) -> None:
    await sandbox.delete(timeout=10, wait=True)
    for reference in (sandbox.id, "claude-issue-1"):
        with pytest.raises(DaytonaNotFoundError):
            await daytona.get(reference)


async def test_stopping_an_ephemeral_sandbox_deletes_it(daytona: AsyncDaytona) -> None:
    made = await daytona.create(CreateSandboxFromSnapshotParams(ephemeral=True), timeout=10)
    await made.stop(timeout=10)
    with pytest.raises(DaytonaNotFoundError):
        await daytona.get(made.id)


# What each state answers to delete, start, stop, archive and recover.
ALLOWED = {
    State.STARTED: (200, 200, 200, 400, 400),
    State.STOPPED: (200, 200, 400, 200, 400),
    State.PAUSED: (200, 200, 400, 400, 400),
    State.ARCHIVED: (200, 200, 400, 400, 400),
    State.ARCHIVING: (200, 200, 400, 409, 400),
    State.ERROR: (200, 400, 400, 400, 400),
    State.BUILD_FAILED: (200, 400, 400, 400, 400),
    State.PENDING_BUILD: (200, 409, 409, 409, 409),
    State.DESTROYED: (404, 404, 404, 404, 404),
}
CALLS = ("delete_sandbox", "start_sandbox", "stop_sandbox", "archive_sandbox", "recover_sandbox")


@pytest.mark.parametrize("way", ["planted", "put there"])
@pytest.mark.parametrize("state", State)
async def test_a_call_that_does_not_fit_the_state_is_refused(
    sandbox_api: SandboxApi, admin: Admin, state: State, way: str
) -> None:
    # On its way somewhere, a sandbox refuses everything.
    expected = ALLOWED.get(state, (409,) * len(CALLS))
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    for call, status in zip(CALLS, expected, strict=True):
        (planted,) = await admin.plant(state=state if way == "planted" else "started")
        if way == "put there":
            await admin.call("POST", f"/sandboxes/{planted['id']}/state", {"state": state})
        assert await _status(sandbox_api, call, planted["id"]) == status, call
        if status in (400, 409):
            shown = (await sandbox_api.get_sandbox(planted["id"])).state
            assert shown == ("creating" if state is State.UNKNOWN else state), call


async def _status(sandbox_api: SandboxApi, call: str, reference: str) -> int:
    try:
        await getattr(sandbox_api, call)(reference)
    except ApiException as error:
        return int(error.status)
    return 200


@pytest.mark.parametrize(
    ("kind", "call"),
    [("create", "delete"), ("start", "delete"), ("start", "start"), ("stop", "stop")],
)
async def test_a_call_during_a_transition_is_refused(
    sandbox_api: SandboxApi, admin: Admin, kind: str, call: str
) -> None:
    await admin.call("PATCH", "/settings", {"timings": {"answer_hold": 0.01}})
    await admin.fault("stuck_transition", "sandbox.*")
    if kind == "create":
        name = (await sandbox_api.create_sandbox(CreateSandbox())).id
    else:
        (planted,) = await admin.plant(state={"start": "stopped", "stop": "started"}[kind])
        name = planted["id"]
        assert await _status(sandbox_api, f"{kind}_sandbox", name) == 200
    assert await _status(sandbox_api, f"{call}_sandbox", name) == 409


async def test_settings_are_kept(sandbox: AsyncSandbox, daytona: AsyncDaytona) -> None:
    await sandbox.set_labels({"only": "this"})
    await sandbox.set_autostop_interval(5)
    await sandbox.set_auto_archive_interval(6)
    await sandbox.set_auto_delete_interval(7)
    await sandbox.set_ttl(8)
    await sandbox.refresh_activity()
    seen = await daytona.get(sandbox.id)
    assert seen.labels == {"only": "this"}
    assert (seen.auto_stop_interval, seen.auto_archive_interval) == (5, 6)
    assert (seen.auto_delete_interval, seen.auto_destroy_at is None) == (7, False)
    await sandbox.set_ttl(0)
    assert (await daytona.get(sandbox.id)).auto_destroy_at is None


async def test_last_activity_answers_201(sandbox: AsyncSandbox, sandbox_api: SandboxApi) -> None:
    response = await sandbox_api.update_last_activity_with_http_info(sandbox.id)
    assert response.status_code == 201


async def test_snapshots_are_listed_and_found(daytona: AsyncDaytona) -> None:
    names = [snapshot.name for snapshot in (await daytona.snapshot.list()).items]
    assert "daytona-small" in names
    assert (await daytona.snapshot.get("daytona-large")).cpu == 4
    with pytest.raises(DaytonaNotFoundError):
        await daytona.snapshot.get("nowhere")
