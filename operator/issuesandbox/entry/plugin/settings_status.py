"""What the operator wrote about its settings, as the plugin reads it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class _Opinion(msgspec.Struct):
    valid: bool = True
    message: str = ""
    reason: str = ""


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
