"""kopf's part: log in, watch, and hand every event over. Nothing else.

One `on.event` handler and no other kind: those write to the objects, die silently when a patch
fails, and start in quadratic time. So kopf's own bookkeeping is switched off as well: half of
the cost of an event goes into it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import kopf
import uvloop
from kopf._core.reactor.inventory import ResourceMemories

from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.api.names import GROUP, PLURAL, VERSION

_AT_ONCE = 100
Intake = Callable[[str | None, Mapping[str, Any]], None]


async def run_informer(connection: Connection, namespaces: tuple[str, ...], intake: Intake) -> None:
    """Watch the resources until cancelled; every event goes to `intake`.

    kopf gets a thread and a loop of its own: on a shared loop it takes over the signals, and at
    its end it cancels every task that is younger than itself.
    """
    loop = asyncio.get_running_loop()
    stop = threading.Event()
    hand_over = HandOver(loop, intake).give

    def watch() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(
                kopf.operator(
                    registry=_registry(connection, hand_over),
                    settings=_settings(),
                    memories=_NoMemories(),
                    standalone=True,
                    clusterwide=not namespaces,
                    namespaces=namespaces,
                    stop_flag=stop,
                    # Otherwise kopf asks for the user's name, and a pod's user has none.
                    identity=cast(Any, "issuesandbox"),
                )
            )

    watching = loop.run_in_executor(ThreadPoolExecutor(1, "kopf"), watch)
    try:
        await asyncio.shield(watching)
    finally:
        stop.set()
        await watching


class HandOver:
    """Brings events from kopf's thread into the engine's loop, in order, many at a time.

    One wake-up each would cost more than the events themselves when thousands are listed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, intake: Intake) -> None:
        self._loop = loop
        self._intake = intake
        self._waiting: deque[tuple[str | None, Mapping[str, Any]]] = deque()

    def give(self, kind: str | None, body: Mapping[str, Any]) -> None:
        """Take one event; called in kopf's thread."""
        self._waiting.append((kind, body))
        # Who finds others waiting need not call: whoever came first has.
        if len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        try:
            for _ in range(min(_AT_ONCE, len(self._waiting))):
                self._intake(*self._waiting.popleft())
        finally:
            if self._waiting:
                self._loop.call_soon(self._take)


def _registry(connection: Connection, intake: Intake) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: object) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(
            server=connection.server,
            default_namespace=connection.namespace,
            aiohttp_session=connection.session(limit=20),
        )

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def resource_changed(event: kopf.RawEvent, **_: object) -> None:
        intake(event["type"], event["object"])

    return registry


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.diffbase_storage = _NoDiffBase()
    settings.persistence.progress_storage = _NoProgress()
    # kopf removes a finalizer of its configured name; ours must stay out of its sight.
    settings.persistence.finalizer = f"{GROUP}/kopf-is-not-used"
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = 100
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.queueing.idle_timeout = 0.1
    # Otherwise kopf kills the process ten minutes after it ended by itself.
    settings.process.ultimate_exiting_timeout = None
    return settings


class _NoMemories(ResourceMemories):
    """Remembers nothing of an object from one event to the next: 2.5 KB for each of thousands."""

    async def recall(self, *args: Any, **options: Any) -> Any:
        """Return a memory that nobody keeps."""
        return await super().recall(*args, **{**options, "ephemeral": True})


class _NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-handled configuration: nothing here is driven by differences."""

    def build(self, **_: Any) -> Any:
        """Return an empty essence without copying the body."""
        return {}

    def fetch(self, **_: Any) -> Any:
        """Return what was last handled: always the present."""
        return {}

    def store(self, **_: Any) -> None:
        """Store nothing."""


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress: `on.event` handlers have none."""

    def fetch(self, **_: Any) -> None:
        """Return no progress."""

    def store(self, **_: Any) -> None:
        """Store nothing."""

    def purge(self, **_: Any) -> None:
        """Purge nothing."""

    def touch(self, **_: Any) -> None:
        """Touch nothing."""

    def clear(self, *, essence: Any) -> Any:
        """Return the essence as it is."""
        return essence
