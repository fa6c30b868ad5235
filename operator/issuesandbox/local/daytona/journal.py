"""Everything that happened, in order, as JSON lines in a file.

Kept on disk, so that long runs cost no memory and the record survives a killed simulator. It
stores what it is given; callers must not give it keys, commands or environment values.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from issuesandbox.local.daytona.errors import StateError
from issuesandbox.local.daytona.timeline import Timeline

# One remembered position per this many entries makes reading from the middle cheap.
_STRIDE = 256


class Journal:
    """An append-only file of numbered entries."""

    def __init__(self, path: Path, timeline: Timeline) -> None:
        self._path = path
        self._timeline = timeline
        self._marks: list[int] = []
        self._last = 0
        self._size = 0
        self._encode = msgspec.json.Encoder().encode
        self._fd = -1

    def open(self) -> None:
        """Open the file and go on after its last entry; a damaged file is refused."""
        if self._path.exists():
            self._read_existing()
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @property
    def last(self) -> int:
        """The number of the newest entry."""
        return self._last

    def write(self, entry_type: str, /, **values: Any) -> int:
        """Append one entry and return its number."""
        if self._last % _STRIDE == 0:
            self._marks.append(self._size)
        self._last += 1
        entry = {
            "seq": self._last,
            "at": self._timeline.now(),
            "type": entry_type,
            **values,
        }
        line = self._encode(entry) + b"\n"
        os.write(self._fd, line)
        self._size += len(line)
        return self._last

    def lines(self, since: int = 0, limit: int | None = None) -> Iterator[bytes]:
        """Yield the entries after number `since`, each with its newline."""
        if since >= self._last:
            return
        mark = max(since, 0) // _STRIDE
        skip = max(since, 0) - mark * _STRIDE
        left = self._last - max(since, 0) if limit is None else limit
        with self._path.open("rb") as file:
            file.seek(self._marks[mark])
            for _ in range(skip):
                file.readline()
            while left > 0 and (line := file.readline()):
                left -= 1
                yield line

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)

    def _read_existing(self) -> None:
        with self._path.open("rb") as file:
            for line in file:
                if self._last % _STRIDE == 0:
                    self._marks.append(self._size)
                self._last += 1
                self._size += len(line)
                if not line.endswith(b"}\n"):
                    raise StateError(
                        f"{self._path} is damaged at line {self._last}; "
                        "move the file away or use another --state folder"
                    )
