"""Where sandboxes outlive the simulator: one SQLite file in a locked folder.

Rows are written before an answer leaves, so that a killed simulator forgets nothing it has told.
Never writes to a file it could not read completely.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

import msgspec

from issuesandbox.local.daytona.errors import StateError
from issuesandbox.local.daytona.model import Sandbox, SandboxId

_FORMAT = 1


class FolderLock:
    """Keeps a second simulator out of a state folder for as long as this process lives."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"cannot use the state folder {folder}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise StateError(
                f"another simulator uses the state folder {folder}; "
                "stop it or choose another --state folder"
            ) from error

    def release(self) -> None:
        """Let others in."""
        os.close(self._fd)


class StateFile:
    """The durable copy of all rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encode = msgspec.json.Encoder().encode
        self._db: sqlite3.Connection | None = None

    def load(self) -> list[Sandbox]:
        """Return all rows, oldest first; a file that cannot be trusted is refused, untouched."""
        if not self._path.exists():
            self._db = self._create()
            return []
        try:
            rows = self._read_all()
        except (sqlite3.DatabaseError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StateError(
                f"the state file {self._path} is damaged and was left as it is ({error}); "
                "move it away or use another --state folder"
            ) from error
        self._db = self._open()
        return rows

    def save(self, sandbox: Sandbox) -> None:
        """Write one row."""
        assert self._db is not None
        self._db.execute(
            "INSERT INTO sandbox (id, record) VALUES (?, ?)"
            " ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            (sandbox.id, self._encode(sandbox)),
        )

    def remove(self, sandbox: SandboxId) -> None:
        """Forget one row."""
        assert self._db is not None
        self._db.execute("DELETE FROM sandbox WHERE id = ?", (sandbox,))

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        # The operating system keeps what was written when this process is killed; only a power
        # cut could lose it, and a simulator need not survive that.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = OFF")
        return database

    def _create(self) -> sqlite3.Connection:
        database = self._open()
        self._path.chmod(0o600)
        database.execute("CREATE TABLE sandbox (id TEXT PRIMARY KEY, record BLOB NOT NULL)")
        database.execute(f"PRAGMA user_version = {_FORMAT}")
        return database

    def _read_all(self) -> list[Sandbox]:
        decoder = msgspec.json.Decoder(Sandbox)
        database = sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            (found,) = database.execute("PRAGMA user_version").fetchone()
            if found != _FORMAT:
                raise sqlite3.DatabaseError(f"format {found}, expected {_FORMAT}")
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
            rows = database.execute("SELECT record FROM sandbox ORDER BY rowid")
            return [decoder.decode(record) for (record,) in rows]
        finally:
            database.close()
