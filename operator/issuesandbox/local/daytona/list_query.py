"""Reads the query of a list call into a filter and an order; refuses what the service refuses.

Pure: it never sees the rows, only says of one row whether it belongs and where.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from operator import attrgetter
from typing import Any

from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.model import Desired, Sandbox, State

_MAX_LIMIT = 200
_DEFAULT_LIMIT = 100

Test = Callable[[Sandbox], bool]
Key = Callable[[Sandbox], tuple[Any, str]]

# Names on the wire and in the row. The id breaks ties in every order.
_SORTS = {
    "name": "name",
    "cpu": "cpu",
    "memoryGib": "memory",
    "diskGib": "disk",
    "lastActivityAt": "last_activity_at",
    "createdAt": "created_at",
}
_RANGES = {"Cpu": "cpu", "Gpu": "gpu", "MemoryGiB": "memory", "DiskGiB": "disk"}
_MOMENTS = {
    "createdAt": "created_at",
    "lastEvent": "last_activity_at",
    "autoDestroyAt": "auto_destroy_at",
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of the page before, and how many pages there were."""

    sort: str
    order: str
    value: Any
    id: str
    page: int

    def encode(self) -> str:
        """Return the opaque text that the caller gets."""
        text = json.dumps([self.sort, self.order, self.value, self.id, self.page])
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Read a cursor back."""
        try:
            sort, order, value, row, page = json.loads(base64.urlsafe_b64decode(text))
            kind = str if sort == "name" else (int, float)
            if sort not in _SORTS or not isinstance(value, kind) or not isinstance(row, str):
                raise ValueError(text)
            page = int(page)
        except (ValueError, TypeError, binascii.Error) as error:
            raise ApiError(400, "Invalid cursor provided") from error
        return cls(sort, order, value, row, page)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a list call asks for."""

    # A row belongs into the answer if it passes all of them.
    tests: tuple[Test, ...]
    sort: str
    descending: bool
    limit: int
    cursor: Cursor | None
    page: int

    @property
    def key(self) -> Key:
        """What rows are ordered by."""
        return attrgetter(_SORTS[self.sort], "id")

    def cursor_after(self, row: Sandbox) -> str:
        """Return the cursor of the page that follows this row."""
        value, row_id = self.key(row)
        order = "desc" if self.descending else "asc"
        return Cursor(self.sort, order, value, row_id, self.page).encode()


class _Reader:
    """Collects complaints while it reads, so that the caller gets them all at once."""

    def __init__(self, query: Mapping[str, Sequence[str]]) -> None:
        self._query = query
        self.complaints: list[str] = []

    def text(self, name: str) -> str | None:
        values = self._query.get(name)
        return values[-1] if values else None

    def many(self, name: str) -> list[str]:
        return [part for value in self._query.get(name, ()) for part in value.split(",") if part]

    def number(self, name: str) -> float | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return float(text)
        except ValueError:
            self.complaints.append(f"{name} must be a number")
            return None

    def flag(self, name: str) -> bool | None:
        text = self.text(name)
        if text in (None, "true", "false"):
            return None if text is None else text == "true"
        self.complaints.append(f"{name} must be a boolean value")
        return None

    def moment(self, name: str) -> float | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            self.complaints.append(f"{name} must be a Date instance")
            return None

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        text = self.text(name) or default
        if text not in choices:
            self.complaints.append(
                f"{name} must be one of the following values: {', '.join(choices)}"
            )
        return text

    def labels(self) -> dict[str, str]:
        text = self.text("labels")
        if not text:
            return {}
        try:
            labels = json.loads(text)
        except ValueError as error:
            raise ApiError(400, "Invalid labels JSON format") from error
        if not isinstance(labels, dict):
            raise ApiError(400, "Invalid labels JSON format")
        return labels


def read_list_query(query: Mapping[str, Sequence[str]]) -> ListQuery:
    """Return what this query asks for, or refuse it with every complaint at once."""
    reader = _Reader(query)
    limit = reader.number("limit")
    if limit is not None and not (1 <= limit <= _MAX_LIMIT and limit == int(limit)):
        reader.complaints.append(f"limit must be an integer between 1 and {_MAX_LIMIT}")
    sort = reader.choice("sort", list(_SORTS), "lastActivityAt")
    order = reader.choice("order", ["asc", "desc"], "desc")
    tests = _tests(reader)
    if reader.complaints:
        raise ApiError(400, ", ".join(reader.complaints))
    text = reader.text("cursor")
    cursor = Cursor.decode(text) if text else None
    return ListQuery(
        tests=tests,
        sort=cursor.sort if cursor else sort,
        descending=(cursor.order if cursor else order) == "desc",
        limit=int(limit or _DEFAULT_LIMIT),
        cursor=cursor,
        page=cursor.page + 1 if cursor else 1,
    )


def _tests(reader: _Reader) -> tuple[Test, ...]:
    tests: list[Test] = []
    if not reader.flag("includeErroredDeleted"):
        tests.append(lambda row: row.desired is not Desired.DESTROYED or not row.hidden)
    labels = reader.labels()
    if labels:
        pairs = labels.items()
        tests.append(lambda row: pairs <= row.labels.items())
    for name in ("id", "name"):
        prefix = (reader.text(name) or "").lower()
        if prefix:
            tests.append(_starts_with(name, prefix))
    tests += _state_tests(reader)
    for name, field in (
        ("snapshots", "snapshot"),
        ("regionIds", "target"),
        ("sandboxClasses", "sandbox_class"),
    ):
        wanted = frozenset(reader.many(name))
        if wanted:
            tests.append(_is_one_of(field, wanted))
    for name, field in (("isPublic", "public"), ("isRecoverable", "recoverable")):
        flag = reader.flag(name)
        if flag is not None:
            tests.append(_is_one_of(field, {flag}))
    return (*tests, *_range_tests(reader))


def _starts_with(field: str, prefix: str) -> Test:
    return lambda row: getattr(row, field).lower().startswith(prefix)


def _is_one_of(field: str, wanted: Container[Any]) -> Test:
    return lambda row: getattr(row, field) in wanted


def _state_tests(reader: _Reader) -> list[Test]:
    names = reader.many("states")
    allowed = [state.value for state in State if state is not State.DESTROYED]
    if any(name not in allowed for name in names):
        reader.complaints.append(
            f"each value in states must be one of the following values: {', '.join(allowed)}"
        )
        return []
    wanted = frozenset(names)
    return [lambda row: row.listed_state in wanted] if wanted else []


def _range_tests(reader: _Reader) -> list[Test]:
    tests: list[Test] = []
    for suffix, field in _RANGES.items():
        low, high = reader.number(f"min{suffix}"), reader.number(f"max{suffix}")
        tests += _between(field, low, high)
    for name, field in _MOMENTS.items():
        after, before = reader.moment(f"{name}After"), reader.moment(f"{name}Before")
        tests += _between(field, after, before)
    return tests


def _between(field: str, low: float | None, high: float | None) -> list[Test]:
    if low is None and high is None:
        return []
    least, most = -inf if low is None else low, inf if high is None else high
    return [lambda row: (value := getattr(row, field)) is not None and least <= value <= most]
