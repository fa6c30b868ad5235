"""What a simulated Daytona is made of before the first request arrives.

Values only. Nothing here opens a port, reads a file or looks at the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_KEY = "local-key"
DEFAULT_ORGANIZATION = "local"
WRITE = "write:sandboxes"
DELETE = "delete:sandboxes"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One API key, the organisation it opens, and the name the journal may call it by."""

    key: str = field(repr=False)
    organization: str
    label: str
    permissions: tuple[str, ...] = (WRITE, DELETE)


@dataclass(frozen=True, slots=True)
class SnapshotSpec:
    """An image that sandboxes are created from; its size is the size of the sandbox."""

    name: str
    cpu: int = 1
    memory: int = 1
    disk: int = 3
    state: str = "active"
    sandbox_class: str = "container"
    regions: tuple[str, ...] = ("us", "eu")


@dataclass(frozen=True, slots=True)
class Quota:
    """What one organisation may hold at once; None is no limit. Memory and disk in GiB."""

    cpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    cpu_per_sandbox: int = 16
    memory_per_sandbox: int = 32
    disk_per_sandbox: int = 100


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Requests per window in each bucket; the defaults are the hosted service's first tier."""

    authenticated: int = 10_000
    create: int = 300
    lifecycle: int = 10_000
    window: float = 60.0


@dataclass(frozen=True, slots=True)
class Timings:
    """How long each transition takes, in seconds at speed 1.

    They are warm-runner values, so that a newcomer does not wait. The hosted service takes
    longer and varies; nobody may depend on these numbers.
    """

    pulling_snapshot: float = 0.0
    creating: float = 0.3
    pending_build: float = 0.2
    building: float = 0.6
    starting: float = 0.3
    stopping: float = 0.3
    destroying: float = 0.3
    archiving: float = 0.5
    restoring: float = 0.6
    pausing: float = 0.2
    resuming: float = 0.2
    # Create, start and recover keep the caller waiting for the result at most this long.
    answer_hold: float = 30.0

    def divided_by(self, speed: float) -> Timings:
        """Return the same timings, `speed` times as fast."""
        return Timings(**{name: getattr(self, name) / speed for name in self.__slots__})


DEFAULT_SNAPSHOTS = (
    SnapshotSpec("daytona-small"),
    SnapshotSpec("daytona-medium", cpu=2, memory=4, disk=8),
    SnapshotSpec("daytona-large", cpu=4, memory=8, disk=10),
    # Only virtual machines can be paused.
    SnapshotSpec("daytona-vm", sandbox_class="linux-vm"),
)


@dataclass(frozen=True, slots=True)
class SimulatorConfig:
    """Everything one simulator needs to start."""

    host: str = "127.0.0.1"
    port: int = 0
    keys: tuple[ApiKey, ...] = (ApiKey(DEFAULT_KEY, DEFAULT_ORGANIZATION, "default"),)
    # None keeps everything in a temporary folder that is removed at the end.
    state_dir: Path | None = None
    speed: float = 1.0
    admin: bool = True
    public_url: str | None = None
    snapshots: tuple[SnapshotSpec, ...] = DEFAULT_SNAPSHOTS
    regions: tuple[str, ...] = ("us", "eu")
    timings: Timings = Timings()
    # None switches rate limiting off, as a self-hosted Daytona does by default.
    rate_limits: RateLimits | None = RateLimits()
    quotas: dict[str, Quota] = field(default_factory=dict)
    # Answers of GET by id or name may be this old; the service caches them for 10 s.
    lookup_cache_seconds: float = 0.0
    # A warm pool answers POST with a started sandbox.
    warm: bool = False
    seed: int = 0
