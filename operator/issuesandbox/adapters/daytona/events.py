"""Daytona's push feed: socket.io, one connection for all sandboxes of the key's organisation.

Connects again for ever, ever more slowly. Nothing that goes wrong here may stop the operator: the
fleet view finds later what this feed would have told at once.

The few frames of the protocol that a listener needs are spoken here. The usual client library
makes a task and a dictionary of each event of the organisation, and swallows cancellations.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import aiohttp
import msgspec

from issuesandbox.domain.timings import Timings
from issuesandbox.ports.state_events import StateEvent

logger = logging.getLogger(__name__)

# Frames of engine.io 4 (the first digit) and of the socket.io 5 inside its messages (the second).
_OPEN, _PING, _PONG = "0", "2", "3"
_CONNECT, _EVENT, _REFUSED = "40", "42", "44"
_STATE_UPDATED = "sandbox.state.updated"
_FIRST_PAUSE = 1.0
_CLOSE_SECONDS = 1.0


class _Opening(msgspec.Struct, rename="camel"):
    ping_interval: float
    ping_timeout: float


class _Sandbox(msgspec.Struct):
    id: str
    state: str | None = None
    labels: dict[str, str] = {}


class _Update(msgspec.Struct):
    sandbox: _Sandbox


class _FeedError(Exception):
    """The feed said something that ends the connection."""


class DaytonaEvents:
    """Hears the state of every sandbox that the key may see."""

    def __init__(self, api_url: str, api_key: str, timings: Timings) -> None:
        feed = "socket.io/?EIO=4&transport=websocket&source=issuesandbox"
        self._url = f"{api_url.rstrip('/')}/{feed}"
        self.use_key(api_key)
        self._patience = timings.read_timeout.total_seconds()
        self._longest_pause = timings.event_retry.total_seconds()
        self._is_up = True
        self.tries = 0
        self.connections = 0
        self.heard = 0

    def use_key(self, api_key: str) -> None:
        """Show another key at the next connection; the present one outlives its key."""
        self._greeting = _CONNECT + msgspec.json.encode({"token": api_key}).decode()

    async def run(self, hear: Callable[[StateEvent], None]) -> None:
        """Listen until cancelled; a feed that is down is tried again and raises nothing."""
        pause = _FIRST_PAUSE
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            self.tries += 1
            try:
                await self._listen(hear)
            except (aiohttp.ClientError, OSError, msgspec.MsgspecError, _FeedError) as error:
                self._went_down(f"{type(error).__name__}: {error}")
            if clock() - began > self._longest_pause:
                pause = _FIRST_PAUSE
            pause = min(pause, self._longest_pause)
            # Jitter keeps all operators from coming back to Daytona in step.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
            pause *= 2

    async def _listen(self, hear: Callable[[StateEvent], None]) -> None:
        """Pass on what one connection tells until it ends."""
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._patience):
                session = aiohttp.ClientSession(trust_env=True)
                await stack.enter_async_context(session)
                timeout = aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS)
                socket = await stack.enter_async_context(
                    session.ws_connect(self._url, timeout=timeout)
                )
                longest_silence = await self._greet(socket)
            self._came_up()
            while True:
                async with asyncio.timeout(longest_silence):
                    frame = await _receive(socket)
                if frame == _PING:
                    await socket.send_str(_PONG)
                elif frame.startswith(_EVENT):
                    self._tell(frame.removeprefix(_EVENT), hear)

    async def _greet(self, socket: aiohttp.ClientWebSocketResponse) -> float:
        """Show the key; return the seconds after which silence means that nobody is there."""
        frame = await _receive(socket)
        opening = msgspec.json.decode(frame.removeprefix(_OPEN), type=_Opening)
        await socket.send_str(self._greeting)
        frame = await _receive(socket)
        if frame.startswith(_REFUSED):
            raise _FeedError("the key was refused")
        if not frame.startswith(_CONNECT):
            raise _FeedError("no answer to the key")
        return (opening.ping_interval + opening.ping_timeout) / 1000

    def _tell(self, text: str, hear: Callable[[StateEvent], None]) -> None:
        # One event that cannot be read says nothing about the next.
        with suppress(msgspec.MsgspecError):
            name, body = msgspec.json.decode(text, type=tuple[str, msgspec.Raw])
            if name == _STATE_UPDATED:
                sandbox = msgspec.json.decode(body, type=_Update).sandbox
                self.heard += 1
                hear(StateEvent(sandbox.id, sandbox.state, sandbox.labels))

    def _came_up(self) -> None:
        self.connections += 1
        if not self._is_up:
            self._is_up = True
            logger.info("state events are back")

    def _went_down(self, problem: str) -> None:
        if self._is_up:
            self._is_up = False
            logger.warning("state events are off, ticks go on", extra={"error": problem})


async def _receive(socket: aiohttp.ClientWebSocketResponse) -> str:
    message = await socket.receive()
    if message.type is not aiohttp.WSMsgType.TEXT:
        raise _FeedError("the connection ended")
    return str(message.data)
