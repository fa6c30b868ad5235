"""The list: pages, filters, orders, and what it refuses."""

from __future__ import annotations

import aiohttp
import pytest
from daytona import (
    AsyncDaytona,
    DaytonaBadRequestError,
    ListSandboxesQuery,
    SandboxListSortDirection,
    SandboxListSortField,
    SandboxState,
)
from daytona_admin import Admin
from daytona_api_client_async import SandboxApi

from issuesandbox.local.daytona.server import Simulator


async def names(daytona: AsyncDaytona, **query: object) -> list[str]:
    return [item.name async for item in daytona.list(ListSandboxesQuery(**query))]


async def test_450_sandboxes_come_in_three_pages_each_once(
    daytona: AsyncDaytona, admin: Admin
) -> None:
    planted = await admin.plant(count=450, name="p-{n}")
    found = [item.id async for item in daytona.list(ListSandboxesQuery(limit=200))]
    assert sorted(found) == sorted(item["id"] for item in planted)
    assert len(await admin.journal(kind="sandbox.list")) == 3


async def test_a_page_has_100_unless_told(sandbox_api: SandboxApi, admin: Admin) -> None:
    await admin.plant(count=101)
    first = await sandbox_api.list_sandboxes()
    assert len(first.items) == 100
    second = await sandbox_api.list_sandboxes(cursor=first.next_cursor)
    assert (len(second.items), second.next_cursor) == (1, None)


async def test_rows_made_while_paging_do_not_disturb_the_pages_by_creation(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    old = await admin.plant(count=30, age=60)
    first = await sandbox_api.list_sandboxes(limit=20, sort="createdAt", order="asc")
    await admin.plant(count=30)
    second = await sandbox_api.list_sandboxes(limit=10, cursor=first.next_cursor)
    found = {item.id for item in [*first.items, *second.items]}
    assert found == {item["id"] for item in old}


async def test_labels_must_all_match_exactly(daytona: AsyncDaytona, admin: Admin) -> None:
    await admin.plant(name="both", labels={"a": "1", "b": "2"})
    await admin.plant(name="one", labels={"a": "1"})
    await admin.plant(name="other", labels={"a": "12", "b": "2"})
    assert await names(daytona, labels={"a": "1", "b": "2"}) == ["both"]
    assert sorted(await names(daytona, labels={"a": "1"})) == ["both", "one"]


async def test_name_and_id_are_prefixes_in_any_case(daytona: AsyncDaytona, admin: Admin) -> None:
    (first,) = await admin.plant(name="Claude-Issue-1")
    await admin.plant(name="claude-issue-12")
    await admin.plant(name="x-claude")
    assert sorted(await names(daytona, name="CLAUDE-issue-1")) == [
        "Claude-Issue-1",
        "claude-issue-12",
    ]
    assert await names(daytona, id=first["id"][:13].upper()) == ["Claude-Issue-1"]


async def test_states_sizes_and_times_filter(daytona: AsyncDaytona, admin: Admin) -> None:
    await admin.plant(name="old", age=3600)
    await admin.advance(1)
    await admin.plant(name="stopped", state="stopped")
    await admin.advance(1)
    await admin.plant(name="broken", state="error", recoverable=True)
    assert await names(daytona, states=[SandboxState.STOPPED]) == ["stopped"]
    assert await names(daytona, is_recoverable=True) == ["broken"]
    assert await names(daytona, min_cpu=2) == []
    stopped = await daytona.get("stopped")
    assert await names(daytona, created_at_before=stopped.created_at) == ["stopped", "old"]


async def test_hidden_rows_are_listed_on_request_only(
    sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.plant(state="error", desired="destroyed")
    assert (await sandbox_api.list_sandboxes()).items == []
    assert len((await sandbox_api.list_sandboxes(include_errored_deleted=True)).items) == 1


async def test_the_order_is_the_one_asked_for(daytona: AsyncDaytona, admin: Admin) -> None:
    for name in ("b", "a", "c"):
        await admin.plant(name=name)
        await admin.advance(1)
    assert await names(daytona) == ["c", "a", "b"]
    by_name = {"sort": SandboxListSortField.NAME, "order": SandboxListSortDirection.ASC}
    assert await names(daytona, **by_name) == ["a", "b", "c"]


async def test_items_carry_no_environment(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin
) -> None:
    await admin.plant(env={"SECRET": "value"})
    async with http.get(f"{simulator.url}/sandbox") as response:
        (item,) = (await response.json())["items"]
    assert "env" not in item


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("limit=201", "limit"),
        ("limit=0", "limit"),
        ("limit=many", "limit must be a number"),
        ("states=destroyed", "each value in states"),
        ("states=sleeping", "each value in states"),
        ("labels={", "Invalid labels JSON format"),
        ("labels=[1]", "Invalid labels JSON format"),
        ("cursor=nonsense", "Invalid cursor provided"),
        ("cursor=WzEsMiwzLDQsNV0=", "Invalid cursor provided"),
        ("sort=age", "sort must be one of"),
        ("createdAtAfter=yesterday", "createdAtAfter"),
        ("isPublic=perhaps", "isPublic"),
    ],
)
async def test_a_bad_query_is_refused(
    simulator: Simulator, http: aiohttp.ClientSession, query: str, complaint: str
) -> None:
    async with http.get(f"{simulator.url}/sandbox?{query}") as response:
        body = await response.json()
    assert response.status == 400
    assert complaint in body["message"]
    assert body["statusCode"] == 400
    assert body["error"] == "Bad Request"


async def test_the_sdk_calls_a_bad_query_a_bad_request(daytona: AsyncDaytona) -> None:
    with pytest.raises(DaytonaBadRequestError):
        await names(daytona, states=[SandboxState.DESTROYED])
