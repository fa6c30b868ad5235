"""The parts of one simulated Daytona, put together.

The only place that knows all of them; routes get this object and nothing global.
"""

from __future__ import annotations

from pathlib import Path

from issuesandbox.clock import Clock
from issuesandbox.local.daytona.automatic import Automatic
from issuesandbox.local.daytona.config import ApiKey, Quota, SimulatorConfig
from issuesandbox.local.daytona.faults import Faults
from issuesandbox.local.daytona.journal import Journal
from issuesandbox.local.daytona.lifecycle import Change, Lifecycle
from issuesandbox.local.daytona.listing import Listing
from issuesandbox.local.daytona.lookup import Lookup
from issuesandbox.local.daytona.machine import Machines
from issuesandbox.local.daytona.rate_limit import RateLimiter
from issuesandbox.local.daytona.state_file import StateFile
from issuesandbox.local.daytona.store import Store
from issuesandbox.local.daytona.timeline import Timeline


class Simulation:
    """One Daytona: rows, machines, time, faults and a journal in one folder."""

    def __init__(self, config: SimulatorConfig, folder: Path, clock: Clock) -> None:
        self.config = config
        self.base_url = ""
        self.timeline = Timeline(clock)
        self._file = StateFile(folder / "sandboxes.sqlite") if config.state_dir else None
        self.store = Store(self._file)
        self.journal = Journal(folder / "journal.jsonl", self.timeline)
        self.machines = Machines(folder / "sandboxes", self.journal)
        timings = config.timings.divided_by(config.speed)
        self.lifecycle = Lifecycle(self.store, self.timeline, timings, self.machines)
        self.automatic = Automatic(self.store, self.timeline, self.lifecycle)
        self.faults = Faults(config.seed)
        self.limiter = RateLimiter(config.rate_limits, self.timeline)
        self.listing = Listing(self.store, self.timeline, config.seed)
        self.lookup = Lookup(self.store, self.timeline, config.lookup_cache_seconds)
        # The administrator may change these while the simulator runs.
        self.warm = config.warm
        self.quotas = dict(config.quotas)
        self._keys = {key.key: key for key in config.keys}
        self.lifecycle.observers += [
            self._write_down,
            self.automatic.observe,
            self.lookup.observe,
            self.listing.observe,
        ]

    @property
    def toolbox_url(self) -> str:
        """The address in front of every sandbox's toolbox."""
        return f"{self.base_url}/toolbox"

    def quota_of(self, organization: str) -> Quota:
        """Return what this organisation may hold."""
        return self.quotas.get(organization, Quota())

    def key(self, authorization: str) -> ApiKey | None:
        """Return the key that a request carries, if it is one of ours."""
        scheme, _, token = authorization.partition(" ")
        return self._keys.get(token.strip()) if scheme.lower() == "bearer" else None

    def key_of_token(self, token: str) -> ApiKey | None:
        """Return the key with this value."""
        return self._keys.get(token)

    async def open(self) -> None:
        """Go on where an earlier simulator with the same state stopped."""
        self.store.load()
        self.journal.open()
        await self.machines.open()
        self.lifecycle.resume()
        self.automatic.resume()

    async def close(self) -> None:
        """End all processes and close all files; rows stay as they are."""
        await self.timeline.close()
        await self.machines.close()
        self.journal.close()
        if self._file is not None:
            self._file.close()

    def _write_down(self, change: Change) -> None:
        if change.before == change.after:
            return
        sandbox = change.sandbox
        self.journal.write(
            "state",
            sandbox=sandbox.id,
            name=sandbox.name,
            organization=sandbox.organization,
            labels=sandbox.labels,
            **{"from": change.before, "to": change.after},
            cause=change.cause,
        )
