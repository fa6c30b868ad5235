"""Keeps the simulated GitHub in one state folder and in memory.

Every change is one row in a SQLite file, so that a killed simulator comes back with all it had
answered. Knows the values of model.py but none of GitHub's rules.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import TypeAdapter, ValidationError

from issuesandbox.local.github.errors import StateDamagedError, StateInUseError
from issuesandbox.local.github.model import (
    Account,
    App,
    Comment,
    GlobalId,
    Installation,
    Issue,
    IssueEvent,
    Label,
    Pull,
    Reaction,
    Repository,
    Token,
)

_FORMAT = "1"
# High and odd, so that no global id is ever equal to an issue's number.
_FIRST_ID = 2_400_000_001


class _Row(Protocol):
    @property
    def id(self) -> GlobalId: ...


RowT = TypeVar("RowT", bound=_Row)


@cache
def _adapter(kind: type[RowT]) -> TypeAdapter[RowT]:
    return TypeAdapter(kind)


class StateFolder:
    """A folder that exactly one simulator holds, with its SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = self._take_lock()
        try:
            self.db = self._open()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Release the folder for another simulator."""
        self.db.close()
        os.close(self._lock)

    def _take_lock(self) -> int:
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StateInUseError(
                f"state folder {self.path} is in use by another simulator: "
                "stop that one or choose another folder"
            ) from error
        return descriptor

    def _open(self) -> sqlite3.Connection:
        file = self.path / "github.sqlite3"
        exists = file.exists()
        if not exists and (self.path / "repositories").exists():
            raise self._damaged("github.sqlite3 is missing beside its repositories")
        if not exists:
            file.touch(mode=0o600)
        db = sqlite3.connect(file, isolation_level=None)
        try:
            if exists:
                self._check(db)
            # The operating system keeps written pages when a process is killed; only a power
            # cut could lose them, and a simulator need not survive that.
            db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF")
            db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT)")
            db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", (_FORMAT,))
        except sqlite3.Error as error:
            db.close()
            raise self._damaged(str(error)) from error
        except BaseException:
            db.close()
            raise
        return db

    def _check(self, db: sqlite3.Connection) -> None:
        (verdict,) = db.execute("PRAGMA quick_check").fetchone()
        if verdict != "ok":
            raise self._damaged(verdict)
        row = db.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        if row != (_FORMAT,):
            raise self._damaged("it was not written by this version of the simulator")

    def _damaged(self, why: str) -> StateDamagedError:
        return StateDamagedError(
            f"state folder {self.path} cannot be read ({why}): "
            "restore it, or move it away to start afresh; nothing was changed"
        )

    def load(self, adapter: TypeAdapter[RowT], table: str) -> Iterator[RowT]:
        """Read all rows of a table, refusing any that is not what it should be."""
        try:
            for (body,) in self.db.execute(f"SELECT body FROM {table} ORDER BY id"):  # noqa: S608
                yield adapter.validate_json(body)
        except (sqlite3.Error, ValidationError) as error:
            reason = f"bad row in {table}: {str(error).splitlines()[0]}"
            raise self._damaged(reason) from error


class Table(Generic[RowT]):
    """Rows of one kind by id and by one group key, in memory and on disk."""

    def __init__(
        self, folder: StateFolder, name: str, kind: type[RowT], key: Callable[[RowT], Hashable]
    ) -> None:
        self._folder, self._name, self._key = folder, name, key
        self._adapter: TypeAdapter[RowT] = _adapter(kind)
        self._rows: dict[GlobalId, RowT] = {}
        self._groups: dict[Hashable, dict[GlobalId, None]] = {}
        folder.db.execute(
            f"CREATE TABLE IF NOT EXISTS {name} (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"
        )
        for row in folder.load(self._adapter, name):
            self._remember(row)

    def __iter__(self) -> Iterator[RowT]:
        return iter(list(self._rows.values()))

    def __getitem__(self, ident: GlobalId) -> RowT:
        return self._rows[ident]

    def get(self, ident: int) -> RowT | None:
        """Return the row with this id."""
        return self._rows.get(GlobalId(ident))

    def group(self, key: Hashable) -> list[RowT]:
        """Return the rows of one group, oldest first."""
        return [self._rows[ident] for ident in self._groups.get(key, ())]

    def first(self, key: Hashable) -> RowT | None:
        """Return the only row of a group whose key is unique."""
        return next(iter(self.group(key)), None)

    def put(self, row: RowT) -> RowT:
        """Add a row or replace the one with its id."""
        self._folder.db.execute(
            f"INSERT OR REPLACE INTO {self._name} VALUES (?, ?)",  # noqa: S608
            (row.id, self._adapter.dump_json(row)),
        )
        self._remember(row)
        return row

    def delete(self, ident: GlobalId) -> None:
        """Forget a row."""
        self._folder.db.execute(f"DELETE FROM {self._name} WHERE id = ?", (ident,))  # noqa: S608
        row = self._rows.pop(ident)
        del self._groups[self._key(row)][ident]

    def _remember(self, row: RowT) -> None:
        before = self._rows.get(row.id)
        if before is not None and self._key(before) != self._key(row):
            del self._groups[self._key(before)][row.id]
        self._rows[row.id] = row
        self._groups.setdefault(self._key(row), {})[row.id] = None


class Store:
    """All tables of the simulated GitHub."""

    def __init__(self, folder: StateFolder) -> None:
        self.folder = folder
        self._last_id = int(self._meta("last_id") or _FIRST_ID)

        def table(name: str, kind: type[Any], key: Callable[[Any], Hashable]) -> Table[Any]:
            return Table(folder, name, kind, key)

        self.accounts: Table[Account] = table("accounts", Account, lambda row: row.login.lower())
        self.repositories: Table[Repository] = table(
            "repositories", Repository, lambda row: (row.owner_id, row.name.lower())
        )
        self.labels: Table[Label] = table("labels", Label, lambda row: row.repository_id)
        self.issues: Table[Issue] = table("issues", Issue, lambda row: row.repository_id)
        self.pulls: Table[Pull] = table("pulls", Pull, lambda row: row.repository_id)
        self.comments: Table[Comment] = table("comments", Comment, lambda row: row.issue_id)
        self.reactions: Table[Reaction] = table("reactions", Reaction, lambda row: row.subject_id)
        self.events: Table[IssueEvent] = table("events", IssueEvent, lambda row: row.issue_id)
        self.apps: Table[App] = table("apps", App, lambda _: "the only one")
        self.installations: Table[Installation] = table(
            "installations", Installation, lambda row: row.account_id
        )
        self.tokens: Table[Token] = table("tokens", Token, lambda row: row.digest)
        self._numbers = {(row.repository_id, row.number): row.id for row in self.issues}

    def new_id(self) -> GlobalId:
        """Return a global id that nothing has or had."""
        self._last_id += 2
        self.folder.db.execute(
            "INSERT OR REPLACE INTO meta VALUES ('last_id', ?)", (str(self._last_id),)
        )
        return GlobalId(self._last_id)

    def app(self) -> App:
        """Return the one App."""
        return next(iter(self.apps))

    def account(self, login: str) -> Account | None:
        """Find an account by login, whatever the case."""
        return self.accounts.first(login.lower())

    def repository(self, owner: str, name: str) -> Repository | None:
        """Find a repository by owner and name, whatever the case."""
        account = self.account(owner)
        if account is None:
            return None
        return self.repositories.first((account.id, name.lower()))

    def issue(self, repository: Repository, number: int) -> Issue | None:
        """Find an issue or pull request by number."""
        ident = self._numbers.get((repository.id, number))
        return None if ident is None else self.issues[ident]

    def add_issue(self, issue: Issue) -> Issue:
        """Keep a new issue."""
        self._numbers[issue.repository_id, issue.number] = issue.id
        return self.issues.put(issue)

    def drop_repository(self, repository: Repository) -> None:
        """Forget a repository, its issues and its pull requests."""
        for pull in self.pulls.group(repository.id):
            self.pulls.delete(pull.id)
        for issue in self.issues.group(repository.id):
            for comment in self.comments.group(issue.id):
                self.comments.delete(comment.id)
            self.issues.delete(issue.id)
            del self._numbers[repository.id, issue.number]
        self.repositories.delete(repository.id)

    def label(self, repository: Repository, name: str) -> Label | None:
        """Find a label by name, whatever the case."""
        wanted = name.lower()
        labels = self.labels.group(repository.id)
        return next((label for label in labels if label.name.lower() == wanted), None)

    def full_name(self, repository: Repository) -> str:
        """Return `owner/name`."""
        return f"{self.accounts[repository.owner_id].login}/{repository.name}"

    def _meta(self, name: str) -> str | None:
        row = self.folder.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])
