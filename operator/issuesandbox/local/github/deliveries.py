"""The log of webhook deliveries that an App can list and ask to be sent again.

GitHub never sends again by itself; this log is how a receiver learns what it missed. Knows
nothing of how deliveries are sent.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from issuesandbox.local.github.answers import moment
from issuesandbox.local.github.model import GlobalId

# GitHub forgets deliveries after three days.
_KEPT = timedelta(days=3)
_COLUMNS = "id, guid, delivered_at, redelivery, duration, status, status_code, event, action"
_SUMMARY = f"{_COLUMNS}, installation_id, repository_id"


@dataclass(frozen=True)
class Message:
    """One event on its way to the webhook; every attempt has the same guid."""

    guid: str
    event: str
    action: str | None
    body: bytes
    installation_id: GlobalId | None = None
    repository_id: GlobalId | None = None
    number: int | None = None


@dataclass(frozen=True)
class Attempt:
    """How one attempt to deliver a message went."""

    url: str
    at: datetime
    duration: float
    status: str
    status_code: int
    request_headers: Mapping[str, str]
    response_headers: Mapping[str, str]
    response_body: str
    redelivery: bool = False


class DeliveryLog:
    """Attempts by id, newest first, kept in the state file and not in memory."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute(
            f"CREATE TABLE IF NOT EXISTS deliveries ({_SUMMARY}, number, url, body BLOB,"
            " request_headers, response_headers, response_body, PRIMARY KEY (id))"
        )
        db.execute("CREATE INDEX IF NOT EXISTS deliveries_by_guid ON deliveries (guid)")

    def attempts(self, guid: str) -> int:
        """Count the attempts for one message so far."""
        row = self._db.execute("SELECT count(*) FROM deliveries WHERE guid = ?", (guid,))
        return int(row.fetchone()[0])

    def add(self, ident: GlobalId, message: Message, attempt: Attempt) -> None:
        """Keep one attempt and forget the oldest."""
        self._db.execute(
            "DELETE FROM deliveries WHERE delivered_at < ?", (moment(attempt.at - _KEPT),)
        )
        row = (
            *(ident, message.guid, moment(attempt.at), attempt.redelivery, attempt.duration),
            *(attempt.status, attempt.status_code, message.event, message.action),
            *(message.installation_id, message.repository_id, message.number),
            *(attempt.url, message.body),
            *(
                json.dumps(dict(attempt.request_headers)),
                json.dumps(dict(attempt.response_headers)),
            ),
            attempt.response_body,
        )
        marks = ", ".join("?" * len(row))
        self._db.execute(f"INSERT INTO deliveries VALUES ({marks})", row)  # noqa: S608

    def newest(self, below: int | None, size: int, good: bool | None) -> list[dict[str, Any]]:
        """List attempts below an id, newest first: all, or those that went well or badly."""
        wanted = (True, False) if good is None else (good, good)
        rows = self._db.execute(
            f"SELECT {_SUMMARY} FROM deliveries WHERE id < ?"  # noqa: S608
            " AND (status_code BETWEEN 200 AND 299) IN (?, ?) ORDER BY id DESC LIMIT ?",
            (below or 2**62, *wanted, size),
        )
        return [_summary(row) for row in rows]

    def full(self, ident: int) -> dict[str, Any] | None:
        """Show one attempt with what was sent and answered."""
        row = self._db.execute(
            f"SELECT {_SUMMARY}, url, body, request_headers, response_headers, response_body"  # noqa: S608
            " FROM deliveries WHERE id = ?",
            (ident,),
        ).fetchone()
        if row is None:
            return None
        url, body, sent, got, answer = row[11:]
        return {
            **_summary(row[:11]),
            "url": url,
            "request": {"headers": json.loads(sent), "payload": json.loads(body)},
            "response": {"headers": json.loads(got), "payload": answer},
        }

    def message(self, ident: int) -> Message | None:
        """Return the message of an attempt, to send it again."""
        row = self._db.execute(
            "SELECT guid, event, action, body, installation_id, repository_id, number"
            " FROM deliveries WHERE id = ?",
            (ident,),
        ).fetchone()
        return None if row is None else Message(*row)


def _summary(row: tuple[Any, ...]) -> dict[str, Any]:
    names = _SUMMARY.split(", ")
    shown = dict(zip(names, row, strict=True))
    return {**shown, "redelivery": bool(shown["redelivery"]), "throttled_at": None}
