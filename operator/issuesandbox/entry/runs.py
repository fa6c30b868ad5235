"""The run driver of one operator process, wired to the outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from issuesandbox.adapters.daytona.metering import Meter, unmetered
from issuesandbox.adapters.daytona.rate_limits import Gate
from issuesandbox.adapters.daytona.toolbox import DaytonaToolbox
from issuesandbox.adapters.git.remote import HttpRemote
from issuesandbox.adapters.github.app import AppKey
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.adapters.github.requests import open_session
from issuesandbox.api.spec_cleanup import CleanupFields
from issuesandbox.clock import Clock
from issuesandbox.domain.defaults import Defaults, RecoveryPolicy
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.auditor import Auditor
from issuesandbox.engine.books import Books
from issuesandbox.engine.runs.crew import Crew
from issuesandbox.engine.runs.driver import RunDriver
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.switches import Switches
from issuesandbox.engine.tally import Tally
from issuesandbox.entry.settings import Settings
from issuesandbox.ports.ledgers import Ledgers
from issuesandbox.ports.resources import ResourceKey, Resources


@dataclass(frozen=True, slots=True)
class RunWorld:
    """What runs need of the outside, connected."""

    toolbox: DaytonaToolbox
    github: GitHubConnection | None
    """None where the operator has no credentials for GitHub."""
    remote: HttpRemote

    def lacks_github(self, settings: Settings) -> bool:
        """Tell whether there are credentials for GitHub that only a restart can use."""
        return self.github is None and _identity(settings) is not None

    def use_keys(self, settings: Settings) -> None:
        """Make every further call with these keys."""
        self.toolbox.use_key(settings.daytona_api_key.get_secret_value())
        identity = _identity(settings)
        if self.github is not None and identity is not None:
            self.github.act_as(identity)


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs need of the engine around them."""

    resources: Resources
    ledgers: Ledgers
    clock: Clock
    namespace: str
    may_act_for: Callable[[str], bool]
    wake: Callable[[ResourceKey], None]
    books: Books
    switches: Switches
    on_fresh: Callable[[Mapping[str, Any]], None]


async def connect_runs(
    settings: Settings, clock: Clock, stack: AsyncExitStack, gate: Gate, meter: Meter = unmetered
) -> RunWorld:
    """Connect to the insides of sandboxes, to GitHub and to its git."""
    key = settings.daytona_api_key.get_secret_value()
    toolbox = DaytonaToolbox(settings.daytona_api_url, key, settings.timings, gate, meter)
    stack.push_async_callback(toolbox.close)
    push_timeout = settings.timings.push_timeout.total_seconds()
    session = await stack.enter_async_context(open_session())
    remote = HttpRemote(session, push_timeout=push_timeout)
    identity = _identity(settings)
    if identity is None:
        return RunWorld(toolbox, None, remote)
    connection = GitHubConnection(settings.github_api_url, identity, clock)
    stack.push_async_callback(connection.close)
    return RunWorld(toolbox, connection, remote)


def build_driver(settings: Settings, world: RunWorld, engine: Engine) -> RunDriver:
    """Return the driver for all runs."""
    outside = Outside(
        toolbox=world.toolbox,
        github=world.github.client if world.github is not None else None,
        remote=world.remote,
        ledgers=engine.ledgers,
        resources=engine.resources,
        clock=engine.clock,
        timings=settings.timings,
        namespace=engine.namespace,
        may_act_for=engine.may_act_for,
        wake=engine.wake,
        is_frozen=engine.switches.is_frozen,
        books=engine.books,
    )
    crew = Crew(outside, engine.on_fresh)
    limits = default_limits(settings)
    return RunDriver(crew, engine.wake, settings.timings, limits, engine.switches)


def build_auditor(world: RunWorld, tally: Tally, clock: Clock, timings: Timings) -> Auditor | None:
    """Return who looks for pushes that must not be; nobody where there is no GitHub to ask."""
    return Auditor(world.github.forge, tally, clock, timings) if world.github is not None else None


def default_limits(settings: Settings) -> RunLimits:
    """Return the limits of a run whose resource names none."""
    return RunLimits(
        inactivity=timedelta(milliseconds=settings.agent_inactivity_ms),
        agent=timedelta(milliseconds=settings.agent_max_wait_ms),
    )


def defaults(settings: Settings) -> Defaults:
    """Return what is filled in where a resource is silent."""
    given = {name: getattr(settings, f"cleanup_{name}") for name in CleanupFields.model_fields}
    return Defaults(
        target=settings.daytona_target,
        snapshot=settings.daytona_snapshot,
        auto_stop=settings.sandbox_auto_stop,
        auto_archive=settings.sandbox_auto_archive,
        auto_delete=settings.sandbox_auto_delete,
        ttl=settings.sandbox_ttl,
        cleanup=CleanupFields(**given),
        recovery=RecoveryPolicy(
            max_attempts=settings.recovery_max_attempts, save_work=settings.recovery_save_work
        ),
    )


def _identity(settings: Settings) -> AppKey | PlainToken | None:
    if settings.github_app_id is not None and settings.github_app_private_key is not None:
        return AppKey(settings.github_app_id, settings.github_app_private_key.get_secret_value())
    token, read = settings.github_token, settings.github_read_token
    if token is None:
        return None
    return PlainToken(token.get_secret_value(), read.get_secret_value() if read else None)
