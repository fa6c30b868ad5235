"""The settings that an operator goes by, for the commands of its administrators."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from issuesandbox.adapters.kube.configuration import KubeConfiguration
from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.clock import SystemClock
from issuesandbox.domain.timings import Timings
from issuesandbox.entry.settings import Loaded, Origin, SettingsError, load
from issuesandbox.ports.configuration import Stored


@dataclass(frozen=True, slots=True)
class InForce:
    """The settings in force, and why they are not those that are stored."""

    loaded: Loaded
    problem: str | None = None
    frozen: str | None = None


def settings_in_force(connection: Connection) -> InForce:
    """Return what an operator in the connection's namespace goes by, in this environment."""
    stored, accepted = asyncio.run(_read(connection))
    return replace(judged(stored.settings, accepted), frozen=stored.frozen)


def judged(stored: Mapping[str, str], accepted: Mapping[str, str]) -> InForce:
    """Return what is in force: what is stored or, where that is refused, the last good ones."""
    try:
        return InForce(load(stored=stored))
    except SettingsError as error:
        try:
            loaded = load(stored=accepted)
        except SettingsError:
            raise error from None
        origins = {
            name: Origin.LAST_GOOD if origin is Origin.CONFIG_MAP else origin
            for name, origin in loaded.origins.items()
        }
        return InForce(replace(loaded, origins=origins), str(error))


async def _read(connection: Connection) -> tuple[Stored, Mapping[str, str]]:
    """Return what is stored, and what the operator last found good."""
    timeout = Timings().read_timeout.total_seconds()
    requests = KubeRequests(connection.server, connection.session(limit=2), timeout)
    try:
        place = connection.namespace
        configuration = KubeConfiguration(requests, place, SystemClock(), "issuesandbox")
        return await configuration.read(), await configuration.accepted()
    finally:
        await requests.close()
