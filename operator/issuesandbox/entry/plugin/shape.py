"""What the plugin reads out of a resource's body; a missing part is an empty one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from issuesandbox.api.durations import Duration
from issuesandbox.entry.plugin.cluster import Body


def status_of(body: Body) -> dict[str, Any]:
    """Return the status."""
    return body.get("status") or {}


def run_of(body: Body) -> dict[str, Any]:
    """Return the present run, or the last one."""
    return status_of(body).get("run") or {}


def conditions_of(body: Body) -> dict[str, dict[str, Any]]:
    """Return the conditions by their type."""
    return {each["type"]: each for each in status_of(body).get("conditions", ())}


def reason_of(body: Body) -> str:
    """Return the one word that says why it is as it is."""
    return str(conditions_of(body).get("Ready", {}).get("reason", "-"))


def phase_of(body: Body) -> str:
    """Return the phase; what nobody looked at yet is Pending."""
    return str(status_of(body).get("phase", "Pending"))


def moment(text: str | None) -> datetime | None:
    """Return the time that a text of Kubernetes stands for."""
    return datetime.fromisoformat(text) if text else None


def span(length: timedelta) -> str:
    """Return a length of time as people say it: 45s, 3m20s, 2d4h."""
    seconds = max(0, int(length.total_seconds()))
    days, rest = divmod(seconds, 86_400)
    if days:
        hours = rest // 3600
        return f"{days}d{hours}h" if hours else f"{days}d"
    # The two largest units are enough.
    coarse = rest // 60 * 60 if rest >= 3600 else rest
    return str(Duration.of(timedelta(seconds=coarse)))
