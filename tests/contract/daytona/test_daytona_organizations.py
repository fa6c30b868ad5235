"""Keys, organisations, permissions, quotas and the three request buckets."""

from __future__ import annotations

import asyncio
import math

import aiohttp
import pytest
from daytona import (
    AsyncDaytona,
    AsyncSandbox,
    CreateSandboxFromSnapshotParams,
    DaytonaAuthenticationError,
    DaytonaBadRequestError,
    DaytonaForbiddenError,
    DaytonaNotFoundError,
    DaytonaRateLimitError,
)
from daytona_admin import KEY, ORGANIZATION, OTHER_KEY, READ_ONLY_KEY, Admin, sdk
from daytona_api_client_async import ApiClient, ApiKeysApi, Configuration, OrganizationsApi

from issuesandbox.local.daytona.server import Simulator


async def test_another_organisations_key_finds_nothing(
    simulator: Simulator, sandbox: AsyncSandbox
) -> None:
    async with sdk(simulator.url, OTHER_KEY) as other:
        assert [item async for item in other.list()] == []
        for reference in (sandbox.id, sandbox.name):
            with pytest.raises(DaytonaNotFoundError):
                await other.get(reference)
        again = await other.create(CreateSandboxFromSnapshotParams(name=sandbox.name), timeout=10)
        assert again.id != sandbox.id


async def test_another_organisations_key_cannot_touch_anything(
    simulator: Simulator, sandbox: AsyncSandbox, admin: Admin
) -> None:
    headers = {"Authorization": f"Bearer {OTHER_KEY}"}
    one = f"{simulator.url}/sandbox/{sandbox.id}"
    calls = [("DELETE", one), ("POST", f"{one}/stop"), ("PUT", f"{one}/labels")]
    async with aiohttp.ClientSession(headers=headers) as session:
        for method, url in calls:
            async with session.request(method, url, json={"labels": {}}) as response:
                assert response.status == 404
        toolbox = f"{sandbox.toolbox_proxy_url}/{sandbox.id}/process/execute"
        async with session.post(toolbox, json={"command": "true"}) as response:
            assert response.status == 401
    assert (await admin.rows())[0]["labels"] != {}


async def test_a_wrong_key_is_refused_everywhere(simulator: Simulator) -> None:
    async with sdk(simulator.url, "wrong") as nobody:
        with pytest.raises(DaytonaAuthenticationError, match="Invalid credentials"):
            await nobody.get("x")
        with pytest.raises(DaytonaAuthenticationError):
            await nobody.create(timeout=5)


async def test_a_key_without_permissions_may_only_read(
    simulator: Simulator, sandbox: AsyncSandbox
) -> None:
    async with sdk(simulator.url, READ_ONLY_KEY) as reader:
        seen = await reader.get(sandbox.id)
        with pytest.raises(DaytonaForbiddenError, match="Access denied"):
            await seen.stop(timeout=5)
        with pytest.raises(DaytonaForbiddenError):
            await seen.delete(timeout=5)
        with pytest.raises(DaytonaForbiddenError):
            await reader.create(timeout=5)


async def test_a_key_knows_its_organisation(simulator: Simulator) -> None:
    async with ApiClient(Configuration(host=simulator.url)) as generated:
        generated.default_headers["Authorization"] = f"Bearer {KEY}"
        key = await ApiKeysApi(generated).get_current_api_key()
        assert key.organization_id == ORGANIZATION
        assert KEY not in key.value
        organizations = OrganizationsApi(generated)
        assert [item.id for item in await organizations.list_organizations()] == [ORGANIZATION]
        assert (await organizations.get_organization(ORGANIZATION)).name == ORGANIZATION


async def test_quotas_are_told_apart_by_their_text(daytona: AsyncDaytona, admin: Admin) -> None:
    async def limit(**quota: int) -> None:
        await admin.call("PATCH", "/settings", {"quotas": {ORGANIZATION: quota}})

    for quota, words in (
        ({"cpu": 1}, "Total CPU limit exceeded. Maximum allowed: 1"),
        ({"memory": 1}, "Total memory limit exceeded. Maximum allowed: 1GiB"),
        ({"disk": 3}, "Total disk limit exceeded. Maximum allowed: 3GiB"),
        ({"memory_per_sandbox": 2}, "Memory request 4GB exceeds maximum allowed per sandbox"),
    ):
        await limit(**quota)
        params = CreateSandboxFromSnapshotParams(snapshot="daytona-medium")
        with pytest.raises(DaytonaBadRequestError, match=words):
            await daytona.create(params, timeout=9)


async def test_a_stopped_sandbox_counts_its_disk_only(
    daytona: AsyncDaytona, sandbox: AsyncSandbox, admin: Admin
) -> None:
    quota = {"cpu": 1, "memory": 1, "disk": 6}
    await admin.call("PATCH", "/settings", {"quotas": {ORGANIZATION: quota}})
    await sandbox.stop(timeout=10)
    other = await daytona.create(timeout=10)
    with pytest.raises(DaytonaBadRequestError, match="Total CPU limit exceeded"):
        await sandbox.start(timeout=10)
    await other.delete(timeout=10, wait=True)
    await sandbox.start(timeout=10)


@pytest.mark.parametrize(
    ("bucket", "method", "path"),
    [
        ("authenticated", "GET", "/sandbox"),
        ("sandbox-create", "POST", "/sandbox"),
        ("sandbox-lifecycle", "POST", "/sandbox/nowhere/stop"),
    ],
)
async def test_each_bucket_speaks_through_its_own_headers(
    simulator: Simulator,
    http: aiohttp.ClientSession,
    admin: Admin,
    bucket: str,
    method: str,
    path: str,
) -> None:
    limits = {"authenticated": 2, "create": 2, "lifecycle": 2, "window": 60}
    await admin.call("PATCH", "/settings", {"rate_limits": limits, "warm": True})

    async def ask() -> tuple[int, dict[str, str]]:
        async with http.request(method, f"{simulator.url}{path}", json={}) as response:
            return response.status, {name.lower(): text for name, text in response.headers.items()}

    _, first = await ask()
    assert first[f"x-ratelimit-limit-{bucket}"] == "2"
    assert first[f"x-ratelimit-remaining-{bucket}"] == "1"
    await ask()
    status, headers = await ask()
    assert status == 429
    assert 0 < int(headers[f"retry-after-{bucket}"]) <= 60
    assert "retry-after" not in headers
    assert f"x-ratelimit-limit-{bucket}" not in headers
    await admin.advance(61)
    assert (await ask())[0] != 429


async def test_who_exceeds_a_bucket_stays_out_for_a_whole_window(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin
) -> None:
    limits = {"authenticated": 1, "window": 60}
    await admin.call("PATCH", "/settings", {"rate_limits": limits})

    async def status() -> int:
        async with http.get(f"{simulator.url}/sandbox") as response:
            return response.status

    assert await status() == 200
    await admin.advance(50)
    assert await status() == 429
    await admin.advance(50)
    assert await status() == 429
    await admin.advance(11)
    assert await status() == 200


async def test_the_sdk_shows_the_headers_of_a_refusal(
    simulator: Simulator, daytona: AsyncDaytona, admin: Admin
) -> None:
    await admin.call("PATCH", "/settings", {"rate_limits": {"authenticated": 0}})
    with pytest.raises(DaytonaRateLimitError, match="ThrottlerException") as caught:
        await daytona.get("x")
    headers = {name.lower(): value for name, value in caught.value.headers.items()}
    assert math.isfinite(float(headers["retry-after-authenticated"]))


async def test_buckets_belong_to_organisations(simulator: Simulator, admin: Admin) -> None:
    await admin.call("PATCH", "/settings", {"rate_limits": {"authenticated": 1}})

    async def list_with(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{simulator.url}/sandbox") as response,
        ):
            return response.status

    answers = await asyncio.gather(*(list_with(key) for key in (KEY, READ_ONLY_KEY, OTHER_KEY)))
    assert sorted(answers) == [200, 200, 429]
