"""Leases as the API server keeps them: guarded writes, and errors in our own words."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.local.control_plane.access import Access
from issuesandbox.ports.errors import Conflict, NotFound
from issuesandbox.ports.leases import LeaseRecord

# A full second: Kubernetes wants its decimals written out all the same.
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RECORD = LeaseRecord(
    name="leader", holder="a", duration=2.5, acquired_at=NOON, renewed_at=NOON, transitions=3
)


async def test_a_lease_is_read_as_it_was_written(leases: KubeLeases) -> None:
    with pytest.raises(NotFound):
        await leases.get("leader")
    created = await leases.create(RECORD)
    assert created == await leases.get("leader")
    stored = replace(created, version="", metadata={})
    assert stored == replace(RECORD, duration=3)  # whole seconds, never fewer than asked for


async def test_only_the_first_create_and_only_a_write_on_the_latest_version_succeed(
    leases: KubeLeases,
) -> None:
    first = await leases.create(RECORD)
    with pytest.raises(Conflict):
        await leases.create(RECORD)
    second = await leases.replace(replace(first, holder="b"))
    with pytest.raises(Conflict):
        await leases.replace(replace(first, holder="c"))
    with pytest.raises(Conflict):
        await leases.delete(first)
    assert await leases.get("leader") == second


async def test_a_write_that_changes_nothing_is_no_sign_of_life(leases: KubeLeases) -> None:
    first = await leases.create(RECORD)
    assert (await leases.replace(first)).version == first.version


async def test_a_released_lease_has_no_holder(
    leases: KubeLeases, control_plane: Access, namespace: str
) -> None:
    released = await leases.replace(replace(await leases.create(RECORD), holder=""))
    assert released.holder == ""
    seen = ("get", "lease", "election-leader", "-n", namespace, "-o", "jsonpath={.spec}")
    assert "holderIdentity" not in control_plane.kubectl(*seen).stdout


async def test_a_deleted_lease_is_not_brought_back_by_a_replace(leases: KubeLeases) -> None:
    record = await leases.create(RECORD)
    await leases.delete(record)
    with pytest.raises(Conflict):
        await leases.replace(replace(record, holder="b"))
    with pytest.raises(NotFound):
        await leases.get("leader")


async def test_what_people_wrote_on_a_lease_survives(
    leases: KubeLeases, control_plane: Access, namespace: str
) -> None:
    await leases.create(RECORD)
    control_plane.kubectl("label", "lease", "election-leader", "-n", namespace, "team=a")
    await leases.replace(replace(await leases.get("leader"), holder="b"))
    assert (await leases.get("leader")).metadata["labels"] == {"team": "a"}


async def test_leases_are_found_by_the_start_of_their_name_and_others_are_left_out(
    leases: KubeLeases, control_plane: Access, namespace: str
) -> None:
    assert await leases.starting_with("member-") == []
    for name in ("member-1", "member-2", "leader"):
        await leases.create(replace(RECORD, name=name))
    other = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "member-3", "namespace": namespace},
    }
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(other))
    assert [each.name for each in await leases.starting_with("member-")] == ["member-1", "member-2"]
