"""What happened, in order: every request, push and delivery, for tests and the invariant checker.

Holds no token and no body; an identity says what a token may do, never what it is.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any

Effect = dict[str, Any]
Identity = Mapping[str, Any]

# What the request at hand has changed so far. Set by the gate for each request, so that an act
# deep below can note its effect without every function in between passing a list along.
effects: ContextVar[list[Effect] | None] = ContextVar("effects", default=None)
identity: ContextVar[Identity | None] = ContextVar("identity", default=None)


def note_effect(what: str, **details: object) -> None:
    """Note one effect of the request at hand."""
    noted = effects.get()
    if noted is not None:
        noted.append({"what": what, **details})


def precise(moment: datetime) -> str:
    """Write a time with microseconds: the order of two events within a second matters here."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Journal:
    """An append-only list with ascending sequence numbers that survives restarts."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.execute("CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, body TEXT)")

    def append(self, kind: str, at: datetime, entry: Mapping[str, Any]) -> None:
        """Write one entry."""
        body = json.dumps({"at": precise(at), "type": kind, **entry})
        self._db.execute("INSERT INTO journal (body) VALUES (?)", (body,))

    def since(self, seq: int, limit: int = 10_000) -> list[dict[str, Any]]:
        """Return the entries after a sequence number, oldest first."""
        rows = self._db.execute(
            "SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit)
        )
        return [{"seq": number, **json.loads(body)} for number, body in rows]
