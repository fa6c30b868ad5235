"""The order for a new sandbox, from the resource and the operator's own defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from issuesandbox.api.spec_sandbox import Network, Resources, Sandbox
from issuesandbox.api.status_run import EffectiveSandbox
from issuesandbox.domain.model import Action
from issuesandbox.engine.reading import Reading
from issuesandbox.ports.sandboxes import SandboxOrder


def asked_for(reading: Reading) -> EffectiveSandbox:
    """Return what a sandbox is asked for now, as the status of a run records it."""
    wanted, defaults = reading.resource.spec.sandbox or Sandbox(), reading.defaults
    own_snapshot = defaults.snapshot if wanted.image is None else None
    return EffectiveSandbox(
        snapshot=wanted.snapshot or own_snapshot,
        image=wanted.image,
        target=wanted.target or defaults.target,
        start_timeout=wanted.start_timeout,
    )


def order_for(reading: Reading, action: Action, secrets: Mapping[str, str]) -> SandboxOrder:
    """Return the order for the sandbox that an action creates."""
    wanted, defaults = reading.resource.spec.sandbox or Sandbox(), reading.defaults
    size, network = wanted.resources or Resources(), wanted.network or Network()
    asked = asked_for(reading)
    return SandboxOrder(
        name=action.name,
        labels=reading.desired.identity.labels(action.name, action.attempt),
        snapshot=asked.snapshot,
        image=asked.image,
        target=asked.target,
        user=wanted.user,
        env={**secrets, **{each.name: each.value for each in wanted.env or ()}},
        cpu=size.cpu,
        memory=size.memory,
        disk=size.disk,
        gpu=size.gpu,
        block_network=network.block_all,
        allowed_networks=network.allow_cidrs or (),
        allowed_domains=network.allow_domains or (),
        auto_stop_minutes=_minutes(_first(wanted.auto_stop, defaults.auto_stop)),
        auto_archive_minutes=_minutes(_first(wanted.auto_archive, defaults.auto_archive)),
        auto_delete_minutes=_auto_delete(
            wanted.auto_delete if wanted.auto_delete is not None else defaults.auto_delete,
            reading.policy.retention,
        ),
        ttl_minutes=_minutes(_first(wanted.ttl, defaults.ttl)),
    )


def _auto_delete(wanted: timedelta | None, retention: timedelta) -> int:
    if wanted is not None:
        # Daytona reads 0 as "delete on stop" and a negative value as "never".
        return _minutes(wanted) or -1
    # Daytona must not delete what the cleanup policy still keeps.
    return max(4320, _minutes(retention) + 1440)


def _first(asked: timedelta | None, default: timedelta) -> timedelta:
    # Not `or`: zero is a value of its own.
    return default if asked is None else asked


def _minutes(duration: timedelta) -> int:
    return math.ceil(duration / timedelta(minutes=1))
