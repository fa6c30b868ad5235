"""Starts and stops one control plane.

Owns the processes and the state folder; where the binaries come from is decided before.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import aiohttp

from issuesandbox.local.control_plane import servers
from issuesandbox.local.control_plane.access import Access, write_kubeconfig
from issuesandbox.local.control_plane.binaries import Binaries
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports, require_free
from issuesandbox.local.control_plane.state import StateFolder
from issuesandbox.local.processes import Child, Leash, spawn

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.1
# A clean stop takes a second; without etcd the API server would wait for a minute.
_GRACE_SECONDS = 4.0
_PORT_TRIES = 3
_PORT_TAKEN = "address already in use"
# etcd writes JSON, kube-apiserver klog's letter and date, the Go runtime a word.
_TELLING = re.compile(r'^panic: |"level":"(error|fatal|panic)"|^[EF]\d{4} |^Error')


class ControlPlane:
    """A running etcd and kube-apiserver, perhaps with a kube-controller-manager."""

    def __init__(
        self, state: StateFolder, binaries: Binaries, leash: Leash, *, owns_leash: bool
    ) -> None:
        self._state = state
        self._binaries = binaries
        self._leash = leash
        self._owns_leash = owns_leash
        self._children: list[Child] = []
        self.access: Access

    @classmethod
    async def start(
        cls,
        directory: Path,
        binaries: Binaries,
        *,
        port: int | None = None,
        leash: Leash | None = None,
    ) -> Self:
        """Start a control plane that keeps all it has in `directory`; return when it is ready.

        A larger world passes its own leash; whoever made the leash releases it.
        """
        if port is not None:
            require_free(port)
        state = await StateFolder.open(directory)
        try:
            own = leash or Leash.attach(state.path, hold=[state.lock])
        except BaseException:
            state.close()
            raise
        plane = cls(state, binaries, own, owns_leash=leash is None)
        try:
            await plane._start_servers(port)
        except BaseException:
            await plane.stop()
            raise
        return plane

    def start_controller_manager(self, binary: Path) -> None:
        """Start the controllers that delete namespaces and collect garbage."""
        command = servers.controller_manager_command(binary, self.access.kubeconfig)
        self._spawn("kube-controller-manager", command)

    async def ended(self) -> Child:
        """Wait until one of the programs ends by itself and return it."""
        while True:
            for child in self._children:
                if child.returncode is not None:
                    return child
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self) -> None:
        """End every program, the last started first, then whatever they left, and unlock."""
        try:
            await self._stop_children()
        finally:
            try:
                if self._owns_leash:
                    await self._leash.release()
            finally:
                self._state.close()

    async def _stop_children(self) -> None:
        while self._children:
            await self._children.pop().stop(_GRACE_SECONDS)

    async def _start_servers(self, port: int | None) -> None:
        for attempt in range(1, _PORT_TRIES + 1):
            first, client, peer = free_ports(3)
            try:
                await self._start_once(servers.Ports(port or first, client, peer))
                return
            except _LostPortError:
                await self._stop_children()
                if attempt == _PORT_TRIES:
                    raise

    async def _start_once(self, ports: servers.Ports) -> None:
        state = self._state
        for log in state.logs.iterdir():
            log.unlink()
        self._spawn("etcd", servers.etcd_command(self._binaries.etcd, state, ports))
        command = servers.apiserver_command(self._binaries.apiserver, state, ports)
        self._spawn("kube-apiserver", command)
        server = f"https://{LOOPBACK}:{ports.apiserver}"
        certificate = state.certificates / "apiserver.crt"
        await self._until_ready(server, certificate)
        write_kubeconfig(state.kubeconfig, server, certificate, state.admin_token)
        self.access = Access(
            state.kubeconfig, server, certificate, state.admin_token, self._binaries.kubectl
        )

    def _spawn(self, name: str, command: list[str]) -> None:
        log = self._state.logs / f"{name}.log"
        self._children.append(
            spawn(name, command, leash=self._leash, log=log, cwd=self._state.path)
        )

    async def _until_ready(self, server: str, certificate: Path) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not await _answers_ready(server, certificate, self._state.admin_token):
                    self._refuse_dead()
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise ControlPlaneError(
                f"the control plane was not ready after {_READY_SECONDS:.0f} s; "
                f"see the logs in {self._state.logs}"
            ) from None

    def _refuse_dead(self) -> None:
        for child in self._children:
            if child.returncode is None:
                continue
            lines = child.last_lines(100)
            if any(_PORT_TAKEN in line for line in lines):
                raise _LostPortError(f"{child.name} found its port taken; try again")
            raise ControlPlaneError(
                f"{child.name} ended with {child.returncode} ({_reason(lines)}); see {child.log}, "
                f"or delete {self._state.path} to start afresh"
            )


class _LostPortError(ControlPlaneError):
    """Somebody took a port between the kernel's answer and its use."""


def _reason(lines: list[str]) -> str:
    """Return the line that says most; Go programs may print a stack after it."""
    telling = [line for line in lines if _TELLING.search(line)]
    return ([*lines[-1:], *telling][-1] if lines else "no output")[:300]


async def _answers_ready(server: str, certificate: Path, token: str) -> bool:
    try:
        trust = ssl.create_default_context(cafile=certificate)
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
            session.get(
                f"{server}/readyz", ssl=trust, timeout=aiohttp.ClientTimeout(total=5)
            ) as answer,
        ):
            return answer.status == 200
    except (OSError, ssl.SSLError, aiohttp.ClientError, TimeoutError):
        return False


@asynccontextmanager
async def running_control_plane(
    directory: Path, binaries: Binaries, *, port: int | None = None, leash: Leash | None = None
) -> AsyncIterator[ControlPlane]:
    """Run a control plane for the time of a block."""
    plane = await ControlPlane.start(directory, binaries, port=port, leash=leash)
    try:
        yield plane
    finally:
        await plane.stop()
