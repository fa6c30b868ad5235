"""When something was ordered, so that an older event never undoes a newer one.

GitHub's times have whole seconds. Within one second, what has an id of its own (a comment with a
command, an entry of the issue's history) comes after what has none, and of two the higher id is
the later.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import Struct


class Stamp(Struct, frozen=True, order=True):
    """The place of an order in time; `id` is that of what gave it, or 0."""

    at: datetime
    id: int = 0

    def __str__(self) -> str:
        return f"{moment(self.at)} {self.id}" if self.id else moment(self.at)


def moment(value: datetime) -> str:
    """Return a time as annotations have it."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def read_moment(text: str | None) -> datetime | None:
    """Read a time back; what somebody wrote there by hand counts as nothing."""
    try:
        found = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None


def read_stamp(text: str | None) -> Stamp | None:
    """Read a stamp back; what somebody wrote there by hand counts as nothing."""
    at, _, number = (text or "").partition(" ")
    when = read_moment(at)
    if when is None or (number and not number.isdigit()):
        return None
    return Stamp(when, int(number or 0))
