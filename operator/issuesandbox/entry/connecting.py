"""The outside of one operator process: connected once, with new keys whenever they change."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack
from dataclasses import dataclass

from issuesandbox.adapters.daytona.events import DaytonaEvents
from issuesandbox.adapters.daytona.sandboxes import DaytonaSandboxes
from issuesandbox.adapters.kube.configuration import KubeConfiguration
from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.adapters.kube.server_clock import ServerClock
from issuesandbox.clock import SystemClock
from issuesandbox.domain import numbers
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.books import Books
from issuesandbox.engine.election import unique_identity
from issuesandbox.engine.rates import RateGate
from issuesandbox.engine.roles import Role
from issuesandbox.entry.outside import home_uid
from issuesandbox.entry.runs import RunWorld, connect_runs
from issuesandbox.entry.settings import Settings, SettingsError
from issuesandbox.ports.errors import CallError


@dataclass(frozen=True, slots=True)
class World:
    """The outside of one operator process, connected."""

    requests: KubeRequests
    sandboxes: DaytonaSandboxes
    gate: RateGate
    events: DaytonaEvents | None
    clock: ServerClock
    identity: str
    role: Role
    installation: str
    home: str
    """The uid of the operator's own namespace; empty where it may not be read."""
    namespace: str
    runs: RunWorld
    books: Books

    def use_keys(self, settings: Settings) -> None:
        """Make every further call with these keys: secrets change while the operator runs."""
        key = settings.daytona_api_key.get_secret_value()
        self.sandboxes.use_key(key)
        if self.events is not None:
            self.events.use_key(key)
        self.runs.use_keys(settings)


@dataclass(frozen=True, slots=True)
class Home:
    """What a process needs before it knows its settings: who it is, and where they are stored."""

    clock: ServerClock
    identity: str
    configuration: KubeConfiguration


def open_home(connection: Connection, stack: AsyncExitStack) -> Home:
    """Open the way to the stored settings; no other request waits on it, nor it on others."""
    clock, identity = ServerClock(SystemClock()), unique_identity(socket.gethostname())
    timeout = Timings().read_timeout.total_seconds()
    requests = KubeRequests(connection.server, connection.session(limit=4), timeout, clock.learn)
    stack.push_async_callback(requests.close)
    configuration = KubeConfiguration(requests, connection.namespace, clock, identity)
    return Home(clock, identity, configuration)


async def connect(
    settings: Settings, connection: Connection, own: Home, stack: AsyncExitStack
) -> World:
    """Open every other connection; the stack closes them."""
    timings, clock, identity = settings.timings, own.clock, own.identity
    timeout = timings.read_timeout.total_seconds()
    requests = KubeRequests(connection.server, connection.session(limit=32), timeout, clock.learn)
    stack.push_async_callback(requests.close)
    # Renewals never wait behind other requests: they have connections of their own.
    renewals = KubeRequests(
        connection.server, connection.session(limit=8), timings.lease_retry.total_seconds()
    )
    stack.push_async_callback(renewals.close)
    namespace = connection.namespace
    leases = KubeLeases(renewals, namespace, "issuesandbox")
    role = Role(settings.shards, identity, leases, timings, clock)
    key = settings.daytona_api_key.get_secret_value()
    gate, books = RateGate(clock, timings, role.replicas), Books(timings)

    def meter(call: str, result: str, seconds: float) -> None:
        books.tally.count(numbers.CALLS_MADE, call, result)
        books.tally.time(numbers.CALL_TIME, seconds, call)

    sandboxes = DaytonaSandboxes(settings.daytona_api_url, key, timings, gate, meter)
    stack.push_async_callback(sandboxes.close)
    await _check_key(sandboxes)
    events = None
    if settings.state_events:
        events = DaytonaEvents(settings.daytona_api_url, key, timings)
    home = await home_uid(settings, requests, namespace)
    runs = await connect_runs(settings, clock, stack, gate, meter)
    sandboxes.share(runs.toolbox.addresses)
    return World(
        requests=requests,
        sandboxes=sandboxes,
        gate=gate,
        events=events,
        clock=clock,
        identity=identity,
        role=role,
        installation=settings.installation or home,
        home=home,
        namespace=namespace,
        runs=runs,
        books=books,
    )


async def _check_key(sandboxes: DaytonaSandboxes) -> None:
    """Refuse to start with a key that Daytona refuses; Daytona being away is no reason."""
    try:
        await sandboxes.organization()
    except CallError as error:
        if error.code == "Unauthorized":
            text = "DAYTONA_API_KEY is not a valid key: Daytona refused it. Give the operator one"
            raise SettingsError(f"{text} of its organisation.") from None
