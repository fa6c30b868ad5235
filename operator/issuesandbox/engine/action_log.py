"""One log line for each thing done on behalf of a resource, and the same fields in each.

Says what is about to be done, for whom, on what sight and why; whether it may, others know.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from issuesandbox.domain.sandbox import Observation, Present, Unknown
from issuesandbox.engine.reading import Reading
from issuesandbox.ports.resources import ResourceKey

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that is about to be done."""

    action: str
    observed: str
    reason: str
    sandbox: str | None = None
    """Which sandbox it is about, unless the resource's present one."""
    attempt: int = 0


def log_action(key: ResourceKey, reading: Reading, deed: Deed) -> None:
    """Write the line."""
    issue, memory = reading.resource.spec.issue, reading.desired.memory
    logger.info(
        deed.action,
        extra={
            "uid": key.uid,
            "resource": str(key),
            "issue": f"{issue.repository}#{issue.number}",
            "attempt": deed.attempt or memory.attempt,
            "sandbox": deed.sandbox or memory.sandbox_id,
            "observed": deed.observed,
            "action": deed.action,
            "reason": deed.reason,
        },
    )


def seen_as(observation: Observation) -> str:
    """Return in a word what was seen: a state, nothing, or that nobody could look."""
    if isinstance(observation, Unknown):
        return "unknown"
    if isinstance(observation, Present):
        return observation.sandbox.state or "without a state"
    return "absent"
