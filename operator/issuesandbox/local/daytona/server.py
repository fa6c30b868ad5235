"""Starts and stops one simulated Daytona on a port.

async with Simulator(SimulatorConfig()) as simulator:
    AsyncDaytona(DaytonaConfig(api_key="local-key", api_url=simulator.url))
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from issuesandbox.clock import Clock, SystemClock
from issuesandbox.local.daytona.admin_sandboxes import AdminSandboxCalls
from issuesandbox.local.daytona.admin_world import AdminWorldCalls
from issuesandbox.local.daytona.api_account import AccountCalls
from issuesandbox.local.daytona.api_admission import ApiAdmission
from issuesandbox.local.daytona.api_lifecycle import LifecycleCalls
from issuesandbox.local.daytona.api_reads import ReadCalls
from issuesandbox.local.daytona.api_settings import SettingCalls
from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.errors import ApiError, StateError, ToolboxError
from issuesandbox.local.daytona.events import Events
from issuesandbox.local.daytona.gate import Call, Gate
from issuesandbox.local.daytona.simulation import Simulation
from issuesandbox.local.daytona.state_file import FolderLock
from issuesandbox.local.daytona.toolbox_files import FileCalls
from issuesandbox.local.daytona.toolbox_git import GitCalls
from issuesandbox.local.daytona.toolbox_process import ProcessCalls
from issuesandbox.local.daytona.toolbox_proxy import ToolboxProxy
from issuesandbox.local.daytona.toolbox_sessions import SessionCalls

# Large uploads are streamed; other bodies are a few kilobytes.
_MAX_BODY = 64 << 20
# Calls that still wait for a process or a log have no better end than this.
_SHUTDOWN_SECONDS = 0.2


class Simulator:
    """A running Daytona; it ends with all its processes when the context does."""

    def __init__(self, config: SimulatorConfig, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._opened = AsyncExitStack()
        self.simulation: Simulation | None = None

    @property
    def base_url(self) -> str:
        """The address of the server."""
        assert self.simulation is not None
        return self.simulation.base_url

    @property
    def url(self) -> str:
        """The address to give to an SDK as DAYTONA_API_URL."""
        return f"{self.base_url}/api"

    @property
    def admin_url(self) -> str:
        """The address of the administrator's API."""
        return f"{self.base_url}/_sim"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the state folder and the port; a StateError says why that is impossible."""
        async with AsyncExitStack() as opened:
            folder = self._open_folder(opened)
            simulation = Simulation(self._config, folder, self._clock)
            opened.push_async_callback(simulation.close)
            await simulation.open()
            await self._serve(simulation, opened)
            self.simulation = simulation
            self._opened = opened.pop_all()

    async def stop(self) -> None:
        """Close the port, end all processes, and leave the state folder as it is."""
        await self._opened.aclose()

    def _open_folder(self, opened: AsyncExitStack) -> Path:
        if self._config.state_dir is None:
            folder = Path(tempfile.mkdtemp(prefix="issuesandbox-daytona-"))
            opened.callback(shutil.rmtree, folder, ignore_errors=True)
        else:
            folder = self._config.state_dir.absolute()
            opened.callback(FolderLock(folder).release)
        return folder

    async def _serve(self, simulation: Simulation, opened: AsyncExitStack) -> None:
        app = web.Application(client_max_size=_MAX_BODY)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        opened.push_async_callback(runner.cleanup)
        app.router.add_routes(self._routes(simulation, opened))
        events = Events(simulation)
        events.attach(app)
        opened.push_async_callback(events.close)
        app.router.add_route("*", "/{rest:.*}", _fallback(simulation))
        await runner.setup()
        try:
            await web.TCPSite(runner, self._config.host, self._config.port).start()
        except OSError as error:
            raise StateError(
                f"cannot listen on {self._config.host}:{self._config.port}: {error.strerror}; "
                "choose another --host or --port"
            ) from error
        address = f"http://{self._config.host}:{runner.addresses[0][1]}"
        simulation.base_url = (self._config.public_url or address).rstrip("/")

    def _routes(self, simulation: Simulation, opened: AsyncExitStack) -> list[web.RouteDef]:
        proxy = ToolboxProxy(simulation)
        api = Gate(simulation, ApiAdmission(simulation).admit)
        toolbox = Gate(simulation, proxy.admit, ToolboxError)
        for gate in (api, toolbox):
            opened.push_async_callback(gate.close)
        routes = [
            *ReadCalls(simulation, api).routes(),
            *LifecycleCalls(simulation, api).routes(),
            *SettingCalls(simulation, api).routes(),
            *AccountCalls(simulation, api).routes(),
            *ProcessCalls(proxy, toolbox).routes(),
            *SessionCalls(proxy, toolbox).routes(),
            *FileCalls(proxy, toolbox).routes(),
            *GitCalls(proxy, toolbox).routes(),
        ]
        if self._config.admin:
            routes += AdminWorldCalls(simulation).routes()
            routes += AdminSandboxCalls(simulation).routes()
        return routes


def _fallback(simulation: Simulation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def open_door(call: Call) -> dict[str, str]:
        return {}

    async def refuse(call: Call) -> web.StreamResponse:
        method, path = call.request.method, call.request.path
        if path.startswith("/toolbox/"):
            raise ToolboxError(404, f"no route for {method} {path}")
        raise ApiError(404, f"Cannot {method} {path}")

    return Gate(simulation, open_door).wrap("unknown", refuse)
