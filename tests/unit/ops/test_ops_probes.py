"""What Kubernetes, Prometheus and somebody on the machine itself may ask."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry, Gauge

from issuesandbox.entry.probes import PortTakenError, is_local, serve_probes


class Replica:
    """What the probes are asked about."""

    lack: str | None = "everything"


@pytest.fixture
def replica() -> Replica:
    return Replica()


@pytest_asyncio.fixture
async def url(replica: Replica) -> AsyncIterator[str]:
    registry = CollectorRegistry()
    Gauge("issuesandbox_example", "Example.", registry=registry).set(3)
    state = {"resources": 2, "leases": ["leader"]}
    async with serve_probes("127.0.0.1", 0, registry, lambda: replica.lack, lambda: state) as port:
        yield f"http://127.0.0.1:{port}"


async def ask(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_alive_and_ready_are_two_things(url: str, replica: Replica) -> None:
    assert await ask(f"{url}/healthz") == (200, "ok\n")
    assert await ask(f"{url}/readyz") == (503, "not ready: everything\n")
    replica.lack = None
    assert await ask(f"{url}/readyz") == (200, "ok\n")


async def test_metrics_are_served_in_prometheus_format(url: str) -> None:
    status, text = await ask(f"{url}/metrics")
    assert status == 200
    assert "issuesandbox_example 3.0" in text


async def test_the_state_is_shown_on_the_machine_itself(url: str) -> None:
    status, text = await ask(f"{url}/debug/state")
    assert status == 200
    assert '"resources": 2' in text


@pytest.mark.parametrize(
    ("remote", "local"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("fd00::7", False), (None, False)],
)
def test_the_state_is_hidden_from_the_network(remote: str | None, local: bool) -> None:
    assert is_local(remote) is local


async def test_a_taken_port_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match="set ISSUESANDBOX_HTTP_PORT"):
            async with serve_probes("127.0.0.1", port, CollectorRegistry(), lambda: None):
                pass
