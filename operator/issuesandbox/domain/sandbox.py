"""A Daytona sandbox as the rules see it, and what an observation of one may prove."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

import msgspec

SandboxId = NewType("SandboxId", str)


class SandboxView(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The fields of a sandbox that decisions rest on; whatever else Daytona sends is ignored.

    `state` stays a plain string: Daytona adds states, and a value nobody knows yet must not
    break a pass.
    """

    id: SandboxId
    name: str
    organization_id: str = ""
    state: str | None = None
    desired_state: str | None = None
    labels: dict[str, str] = {}
    error_reason: str | None = None
    recoverable: bool | None = None
    cpu: int | None = None
    memory: int | None = None
    disk: int | None = None
    gpu: int | None = None
    created_at: datetime | None = None
    auto_stop_interval: int | None = None
    last_activity_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Present:
    """Daytona showed the sandbox."""

    sandbox: SandboxView


@dataclass(frozen=True, slots=True)
class Absent:
    """Daytona said that there is no such sandbox."""


# The reason of an `Unknown` that is no failure: nobody may ask for a while.
THROTTLED = "Throttled"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing was proven: Daytona could not be asked, or its answer proves nothing."""

    reason: str
    message: str


Observation = Present | Absent | Unknown
