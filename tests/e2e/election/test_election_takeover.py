"""Replicas as real processes against the real API server: killed, ended, and with few rights."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.local.control_plane.access import Access

SCRIPT = Path(__file__).parent / "election_process.py"
SHRUNK = 0.3  # 4.5 s, 3 s and 0.6 s


class Replica:
    """One replica process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def says(self, word: str, *, within: float) -> float:
        """Wait for its next line and return how long that took."""
        assert self.process.stdout is not None
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(within):
            line = await self.process.stdout.readline()
        assert line.decode().strip() == word
        return loop.time() - began

    async def end(self, number: signal.Signals) -> None:
        """Send a signal and wait for the end."""
        if self.process.returncode is None:
            self.process.send_signal(number)
            await self.process.wait()


@asynccontextmanager
async def replica(kubeconfig: Path, *arguments: str) -> AsyncIterator[Replica]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
    )
    made = Replica(process)
    try:
        yield made
    finally:
        await made.end(signal.SIGKILL)


Start = Callable[..., Awaitable[Replica]]


@pytest_asyncio.fixture
async def start(control_plane: Access, namespace: str) -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def started(
            name: str, *, shards: int = 1, factor: float = SHRUNK, kubeconfig: Path | None = None
        ) -> Replica:
            arguments = (name, namespace, str(shards), str(factor))
            made = await stack.enter_async_context(
                replica(kubeconfig or control_plane.kubeconfig, *arguments)
            )
            await made.says("contesting", within=30)
            return made

        yield started


async def holder(leases: KubeLeases, name: str) -> str:
    return (await leases.get(name)).holder


async def until(condition: Callable[[], Awaitable[bool]], *, within: float) -> None:
    async with asyncio.timeout(within):
        while not await condition():
            await asyncio.sleep(0.05)


async def test_a_killed_replica_is_followed_after_its_lease_ran_out(
    start: Start, leases: KubeLeases
) -> None:
    first = await start("first")
    await first.says("won", within=20)
    second = await start("second")
    with pytest.raises(TimeoutError):
        await second.says("won", within=6)  # longer than the lease: renewals are seen
    await first.end(signal.SIGKILL)
    assert await second.says("won", within=20) >= 1.5
    record = await leases.get("leader")
    assert (record.holder, record.transitions) == ("second", 1)


async def test_a_terminated_replica_is_followed_within_three_seconds_with_the_usual_timings(
    start: Start, leases: KubeLeases
) -> None:
    first = await start("first", factor=1)
    await first.says("won", within=20)
    second = await start("second", factor=1)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await first.end(signal.SIGTERM)
    await second.says("won", within=20)
    assert loop.time() - began <= 3
    assert first.process.returncode == 0


async def test_a_frozen_replica_says_it_lost_and_stands_back(
    start: Start, leases: KubeLeases
) -> None:
    first = await start("first")
    await first.says("won", within=20)
    second = await start("second")
    first.process.send_signal(signal.SIGSTOP)
    await second.says("won", within=20)
    first.process.send_signal(signal.SIGCONT)
    await first.says("lost", within=5)
    assert await holder(leases, "leader") == "second"


def give_rights(control_plane: Access, namespace: str, verbs: list[str]) -> None:
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "elector", "namespace": namespace},
        "rules": [rule],
    }
    control_plane.kubectl("create", "serviceaccount", "elector", "-n", namespace)
    control_plane.kubectl("create", "-f", "-", stdin=json.dumps(role))
    control_plane.kubectl(
        *("create", "rolebinding", "elector", "-n", namespace, "--role=elector"),
        f"--serviceaccount={namespace}:elector",
    )


async def test_get_create_and_update_are_all_the_rights_a_leader_needs(
    start: Start, leases: KubeLeases, control_plane: Access, namespace: str, tmp_path: Path
) -> None:
    give_rights(control_plane, namespace, ["get", "create", "update"])
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "elector", tmp_path)
    first = await start("first", kubeconfig=kubeconfig)
    await first.says("won", within=20)
    second = await start("second", kubeconfig=kubeconfig)
    await first.end(signal.SIGTERM)
    await second.says("won", within=20)
    await second.end(signal.SIGTERM)
    assert await holder(leases, "leader") == ""


async def test_shards_need_list_and_delete_besides(
    start: Start, leases: KubeLeases, control_plane: Access, namespace: str, tmp_path: Path
) -> None:
    verbs = ["get", "list", "create", "update", "delete"]
    give_rights(control_plane, namespace, verbs)
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "elector", tmp_path)
    first = await start("first", shards=2, factor=0.1, kubeconfig=kubeconfig)
    await until(lambda: are_held(leases, "first"), within=20)
    await first.end(signal.SIGKILL)
    await start("second", shards=2, factor=0.1, kubeconfig=kubeconfig)
    await until(lambda: are_held(leases, "second"), within=20)

    async def is_tidied() -> bool:
        return [each.holder for each in await leases.starting_with("member-")] == ["second"]

    await until(is_tidied, within=30)


async def are_held(leases: KubeLeases, identity: str) -> bool:
    return [each.holder for each in await leases.starting_with("shard-")] == [identity] * 2
