"""The push feed: socket.io events about all sandboxes of an organisation.

There is no replay: who is not connected when something happens never hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import socketio
from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.faults import Name
from issuesandbox.local.daytona.lifecycle import Change
from issuesandbox.local.daytona.model import Sandbox
from issuesandbox.local.daytona.simulation import Simulation

_PATH = "api/socket.io"


class Events:
    """Emits what happens to the room of the organisation it happens in."""

    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation
        self._server = socketio.AsyncServer(async_mode="aiohttp", cors_allowed_origins="*")
        # The library lets its pings sleep on after a shutdown; ours must end with it.
        self._server.eio.start_background_task = self._start_background_task
        self._background: set[asyncio.Task[Any]] = set()
        self._server.on("connect", self._connect)
        self._server.on("disconnect", self._disconnect)
        self._rooms: dict[str, str] = {}
        self._outbox: asyncio.Queue[tuple[str, dict[str, Any], str]] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None

    def attach(self, app: web.Application) -> None:
        """Serve the feed in this application and listen to the simulation."""
        self._server.attach(app, socketio_path=_PATH)
        self._sim.lifecycle.observers.append(self._observe)
        self._sender = asyncio.ensure_future(self._send())

    async def close(self) -> None:
        """Disconnect everybody."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        for socket in list(self._server.eio.sockets.values()):
            # Without waiting: a client that has just left never empties its queue.
            await socket.close(wait=False)
        await self._server.shutdown()
        for task in list(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    def _start_background_task(
        self, work: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **options: Any
    ) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work(*args, **options))
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _connect(self, sid: str, environ: dict[str, Any], auth: Any = None) -> bool:
        token = auth.get("token") if isinstance(auth, dict) else None
        key = self._sim.key_of_token(token) if isinstance(token, str) else None
        if key is None:
            return False
        self._rooms[sid] = key.organization
        await self._server.enter_room(sid, key.organization)
        return True

    async def _disconnect(self, sid: str, *_: Any) -> None:
        self._rooms.pop(sid, None)

    def _observe(self, change: Change) -> None:
        row = change.sandbox
        if row.organization not in self._rooms.values():
            return
        view = views.sandbox_view(row, self._sim.toolbox_url)
        if change.before is None:
            self._post("sandbox.created", view, row)
            return
        if change.old_state is not row.state:
            body = {"sandbox": view, "oldState": change.old_state, "newState": row.state}
            self._post("sandbox.state.updated", body, row)
        if change.old_desired is not row.desired:
            wishes = {"oldDesiredState": change.old_desired, "newDesiredState": row.desired}
            self._post("sandbox.desired-state.updated", {"sandbox": view, **wishes}, row)

    def _post(self, event: str, body: dict[str, Any], row: Sandbox) -> None:
        about = (row.id, row.name, row.organization)
        lost = self._sim.faults.take([Name.LOST_EVENT], "event", about)
        letter = (event, body, row.organization)
        if lost is None:
            self._outbox.put_nowait(letter)
        elif lost.spec.delay is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(lost.spec.delay, self._outbox.put_nowait, letter)

    async def _send(self) -> None:
        # One sender keeps the order of what happened.
        while True:
            event, body, room = await self._outbox.get()
            await self._server.emit(event, body, room=room)
