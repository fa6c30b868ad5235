"""What the operator wrote about its settings, as the plugin reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from issuesandbox.api.names import SETTINGS_MAP, STATUS_MAP
from issuesandbox.entry.plugin.cluster import Cluster


class _Opinion(msgspec.Struct):
    valid: bool = True
    message: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InForce:
    """The stored settings that the operator goes by, and why they are not those of now."""

    settings: Mapping[str, str] | None
    """None where there are none, or none that the caller may read."""
    problem: str | None


def in_force(cluster: Cluster, operator_namespace: str) -> InForce:
    """Return what the operator goes by: where it refuses what is stored, the last good ones."""
    status = cluster.peek(operator_namespace, STATUS_MAP)
    problem = refused(status)
    if status is None or problem is None:
        return InForce(cluster.peek(operator_namespace, SETTINGS_MAP), None)
    try:
        return InForce(msgspec.json.decode(status["accepted"], type=dict[str, str]), problem)
    except (msgspec.MsgspecError, KeyError):
        return InForce(None, problem)


def refused(status: Mapping[str, str] | None) -> str | None:
    """Return why the stored settings are refused, or None."""
    opinion = opinion_of(status)
    return None if opinion is None or opinion.valid else opinion.message


def opinion_of(status: Mapping[str, str] | None) -> _Opinion | None:
    """Return the operator's opinion of its settings, or None if it has not said any."""
    if not status or "settings" not in status:
        return None
    try:
        return msgspec.json.decode(status["settings"], type=_Opinion)
    except msgspec.MsgspecError:
        return None
