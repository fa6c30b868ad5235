"""The push feed, heard by the SDK and by a plain socket.io client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import socketio
from daytona import AsyncDaytona, AsyncSandbox, CreateSandboxFromSnapshotParams
from daytona_admin import KEY, OTHER_KEY, Admin, eventually
from daytona_api_client_async import CreateSandbox, Sandbox, SandboxApi

from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.server import Simulator

NAMES = ("sandbox.created", "sandbox.state.updated", "sandbox.desired-state.updated")


class Listener:
    """Hears everything that one key may hear."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.client = socketio.AsyncClient(handle_sigint=False, reconnection=False)
        for name in NAMES:
            self.client.on(name, self._hear(name))

    def _hear(self, name: str) -> Any:
        async def hear(body: dict[str, Any]) -> None:
            self.heard.append((name, body))

        return hear

    async def connect(self, simulator: Simulator, key: str) -> None:
        await self.client.connect(
            simulator.base_url,
            socketio_path="/api/socket.io/",
            auth={"token": key},
            transports=["websocket"],
        )


@pytest.fixture
async def listener(simulator: Simulator) -> AsyncIterator[Listener]:
    listening = Listener()
    await listening.connect(simulator, KEY)
    yield listening
    await listening.client.disconnect()


async def test_the_feed_tells_creation_and_every_step(
    listener: Listener, sandbox_api: SandboxApi
) -> None:
    made = await sandbox_api.create_sandbox(CreateSandbox(name="a"))
    await sandbox_api.stop_sandbox("a")

    async def stopped() -> bool:
        return listener.heard[-1][1].get("newState") == "stopped"

    await eventually(stopped)
    name, body = listener.heard[0]
    assert name == "sandbox.created"
    created = Sandbox.from_dict(body)
    assert created is not None
    assert created.id == made.id
    steps = [body["newState"] for name, body in listener.heard if name == "sandbox.state.updated"]
    assert steps == ["creating", "started", "stopping", "stopped"]
    wishes = [body for name, body in listener.heard if name == "sandbox.desired-state.updated"]
    assert [(wish["oldDesiredState"], wish["newDesiredState"]) for wish in wishes] == [
        ("started", "stopped")
    ]


async def test_nobody_hears_of_other_organisations(
    simulator: Simulator, listener: Listener, admin: Admin
) -> None:
    other = Listener()
    await other.connect(simulator, OTHER_KEY)
    await admin.plant(name="ours")

    async def told() -> bool:
        return bool(listener.heard)

    await eventually(told)
    await other.client.disconnect()
    assert other.heard == []


async def test_a_wrong_key_hears_nothing(simulator: Simulator) -> None:
    stranger = Listener()
    with pytest.raises(socketio.exceptions.ConnectionError):
        await stranger.connect(simulator, "wrong")
    await stranger.client.disconnect()


async def test_a_lost_event_is_never_repeated(
    listener: Listener, sandbox_api: SandboxApi, admin: Admin
) -> None:
    await admin.fault("lost_event", "event", count=1)
    await admin.plant(name="unheard")
    await admin.plant(name="heard")

    async def told() -> bool:
        return bool(listener.heard)

    await eventually(told)
    assert [body["name"] for _, body in listener.heard] == ["heard"]
    assert (await sandbox_api.get_sandbox("unheard")).name == "unheard"


async def test_an_event_can_come_late_and_out_of_order(listener: Listener, admin: Admin) -> None:
    await admin.fault("lost_event", "event", count=1, delay=0.3)
    await admin.plant(name="late")
    await admin.plant(name="prompt")

    async def both() -> bool:
        return len(listener.heard) == 2

    await eventually(both)
    assert [body["name"] for _, body in listener.heard] == ["prompt", "late"]


async def test_the_simulator_ends_while_somebody_listens(config: SimulatorConfig) -> None:
    listener = Listener()
    async with Simulator(config) as simulator:
        await listener.connect(simulator, KEY)
    await asyncio.wait_for(listener.client.wait(), 10)
    assert not listener.client.connected


async def test_an_event_wakes_the_waiting_sdk(daytona: AsyncDaytona, admin: Admin) -> None:
    await admin.call("PATCH", "/settings", {"timings": {"creating": 0.2, "answer_hold": 0.01}})
    made: AsyncSandbox = await daytona.create(CreateSandboxFromSnapshotParams(), timeout=10)
    assert made.state == "started"
    # Without the event the SDK would have had to look a second time.
    assert len(await admin.journal(kind="sandbox.get")) == 1
