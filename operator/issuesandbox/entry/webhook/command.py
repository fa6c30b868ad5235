"""`issuesandbox webhook`: the adapter's composition root. Wires its parts and runs them."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Awaitable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import click
from aiohttp import web

from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.kube.connection import Connection, load_connection
from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.adapters.kube.policies import KubeRecords
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.adapters.kube.server_side_apply import KubeApplied
from issuesandbox.adapters.kube.watching import watch_record, watch_resources
from issuesandbox.clock import SystemClock
from issuesandbox.domain.webhook.hints import AccessHint, Hint
from issuesandbox.domain.webhook.live import MANAGER
from issuesandbox.engine.election import Elector, unique_identity
from issuesandbox.engine.inbox.catch_up import CatchUp
from issuesandbox.engine.inbox.courtesy import Courtesy
from issuesandbox.engine.inbox.desk import Desk
from issuesandbox.engine.inbox.finding import Reach
from issuesandbox.engine.inbox.index import IssueIndex
from issuesandbox.engine.inbox.people import People
from issuesandbox.engine.inbox.policies import PolicyKeeper
from issuesandbox.engine.inbox.reception import Answer, Reception, Staff
from issuesandbox.entry.logs import configure_logs
from issuesandbox.entry.probes import PortTakenError
from issuesandbox.entry.webhook.metrics import InboxCollector, process_registry
from issuesandbox.entry.webhook.rotation import Rotation
from issuesandbox.entry.webhook.server import PATH, WebhookServer
from issuesandbox.entry.webhook.settings import WebhookSettings, load_webhook_settings

_RETRY = 1.0

logger = logging.getLogger(__name__)


@click.command()
def webhook() -> None:
    """Turn GitHub's events into resources; all settings come from the environment."""
    import uvloop

    settings = load_webhook_settings()
    configure_logs(settings.log_format, settings.log_level, settings.secrets())
    connection = load_connection()
    # What was imported lives for ever: it need not be looked through again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    uvloop.run(_run(settings, connection))


@dataclass(frozen=True, slots=True)
class World:
    """The outside of one adapter process, connected."""

    requests: KubeRequests
    github: GitHubConnection
    namespace: str


class Adapter:
    """One replica, wired and ready to run."""

    def __init__(self, settings: WebhookSettings, world: World) -> None:
        clock, requests, github = SystemClock(), world.requests, world.github
        identity = unique_identity(socket.gethostname())
        records = KubeRecords(requests, world.namespace, clock, identity)
        leases = KubeLeases(requests, world.namespace, "issuesandbox")
        self._settings = settings
        self._world = world
        self.index = IssueIndex(settings.watch_namespaces)
        self._policies = PolicyKeeper(records, settings.policy)
        self.courtesy = Courtesy(github.client, github.forge)
        applied = KubeApplied(requests, MANAGER)
        by_global_id = settings.naming == "GlobalId"
        desk = Desk(applied, self.index, github.client, github.forge, clock, by_global_id)
        people = self._people = People(github.forge, clock)
        namespace = settings.namespace or world.namespace
        self._reception = Reception(
            Staff(desk, self.index, people, self._policies, self.courtesy, namespace)
        )
        reach = Reach(github.client, github.forge, self.index, records, clock)
        self._catch_up = CatchUp(reach, self._reception, settings.cursor, settings.catch_up_every)
        self._elector = Elector("webhook-catch-up", identity, leases, settings.timings, clock)
        registry = process_registry()
        registry.register(InboxCollector(self.index, self._policies, self._catch_up, self.courtesy))
        self.server = WebhookServer(
            settings.webhook_secrets, self._receive, self.is_ready, registry
        )

    def works(self) -> tuple[Coroutine[Any, Any, object], ...]:
        """Return everything that runs side by side."""
        requests, settings, policies = self._world.requests, self._settings, self._policies
        return (
            watch_resources(requests, settings.watch_namespaces, self.index, _RETRY),
            watch_record(
                requests,
                self._world.namespace,
                settings.policy,
                lambda _: policies.changed(),
                _RETRY,
            ),
            policies.run(),
            self._elector.run(lambda _: self._catch_up.hurry()),
            self._catch_up.run(self._elector.holds),
            Rotation(settings, load_webhook_settings, self._use_secrets).run(),
        )

    def _use_secrets(self, settings: WebhookSettings) -> None:
        self.server.use_secrets(settings.webhook_secrets)
        self._world.github.act_as(settings.identity)
        self._people.forget()

    def is_ready(self) -> bool:
        """Tell whether deliveries can be judged."""
        return self.index.is_complete() and self._policies.policy is not None

    def _receive(self, hint: Hint) -> Answer | Awaitable[Answer]:
        if isinstance(hint, AccessHint):
            self._catch_up.hurry(anyway=True)
        return self._reception.answer(hint)


async def _run(settings: WebhookSettings, connection: Connection) -> None:
    stop = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with AsyncExitStack() as stack:
        world = _connect(settings, connection, stack)
        adapter = Adapter(settings, world)
        stack.push_async_callback(adapter.courtesy.drain, 5.0)
        runner = adapter.server.runner()
        await _listen(runner, settings)
        stack.push_async_callback(runner.cleanup)
        await _until_first_ends(_stopped(stop, adapter, settings), *adapter.works())


def _connect(settings: WebhookSettings, connection: Connection, stack: AsyncExitStack) -> World:
    timeout = settings.timings.read_timeout.total_seconds()
    requests = KubeRequests(connection.server, connection.session(limit=100), timeout)
    stack.push_async_callback(requests.close)
    github = GitHubConnection(settings.github_api_url, settings.identity, SystemClock())
    stack.push_async_callback(github.close)
    return World(requests, github, connection.namespace)


async def _listen(runner: web.ServerRunner, settings: WebhookSettings) -> None:
    await runner.setup()
    host, port = settings.http_host, settings.http_port
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        text = f"cannot listen on {host}:{port}: {error.strerror}; set ISSUESANDBOX_HTTP_PORT"
        raise PortTakenError(text) from None
    port = runner.addresses[0][1]
    logger.info("listening", extra={"address": f"http://{host}:{port}{PATH}"})


async def _stopped(stop: asyncio.Event, adapter: Adapter, settings: WebhookSettings) -> None:
    """Wait for the signal to end, and then until nobody sends anything any more."""
    await stop.wait()
    adapter.server.leave()
    await asyncio.sleep(settings.drain.total_seconds())


async def _until_first_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Run all until one ends, then end the others; what one raised is raised here."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
