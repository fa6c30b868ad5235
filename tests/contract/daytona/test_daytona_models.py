"""Answers parse with the SDK's own models, and hold every field these know."""

from __future__ import annotations

from typing import Any

import aiohttp
import daytona_api_client as blocking
import daytona_api_client_async as api
import pytest
from daytona_admin import Admin

from issuesandbox.local.daytona.model import Desired, State
from issuesandbox.local.daytona.server import Simulator


def test_the_states_are_those_of_the_sdk() -> None:
    known = {state.value for state in api.SandboxState}
    assert {state.value for state in State} == known - {"unknown_default_open_api"}
    wishes = {state.value for state in api.SandboxDesiredState}
    assert {desired.value for desired in Desired} < wishes


@pytest.mark.parametrize("package", [api, blocking])
@pytest.mark.parametrize("state", [state for state in State if state is not State.DESTROYED])
async def test_a_sandbox_in_any_state_parses_as_both_models(
    simulator: Simulator,
    http: aiohttp.ClientSession,
    admin: Admin,
    package: Any,
    state: State,
) -> None:
    (planted,) = await admin.plant(state=state, labels={"a": "b"})
    async with http.get(f"{simulator.url}/sandbox/{planted['id']}") as response:
        body = await response.json()
    parsed = package.Sandbox.from_dict(body)
    assert parsed.state.value == state.value or (state, parsed.state.value) == (
        State.UNKNOWN,
        "creating",
    )
    assert parsed.additional_properties == {}
    async with http.get(f"{simulator.url}/sandbox") as response:
        listed = package.ListSandboxesResponse.from_dict(await response.json())
    assert listed.items[0].additional_properties == {}
    assert listed.items[0].labels == {"a": "b"}


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/snapshots", "PaginatedSnapshots"),
        ("/snapshots/daytona-small", "SnapshotDto"),
        ("/api-keys/current", "ApiKeyList"),
        ("/organizations/acme", "Organization"),
        ("/organizations/acme/usage", "OrganizationUsageOverview"),
    ],
)
async def test_the_other_answers_parse(
    simulator: Simulator, http: aiohttp.ClientSession, path: str, model: str
) -> None:
    async with http.get(f"{simulator.url}{path}") as response:
        assert response.status == 200
        parsed = getattr(api, model).from_dict(await response.json())
    assert parsed.additional_properties == {}


async def test_counts_are_whole_numbers_and_times_end_in_z(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin
) -> None:
    (planted,) = await admin.plant()
    async with http.get(f"{simulator.url}/sandbox/{planted['id']}") as response:
        body = await response.json()
    assert all(type(body[name]) is int for name in ("cpu", "gpu", "memory", "disk"))
    for name in ("createdAt", "updatedAt", "lastActivityAt"):
        assert len(body[name]) == len("2026-01-01T00:00:00.000Z")
        assert body[name].endswith("Z")
