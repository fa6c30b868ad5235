"""Where conversations are kept: one transcript file per session id below the config folder.

Knows files, not what is said in them. A config folder that cannot be written costs the
transcript, never the run.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def config_dir(env: Mapping[str, str]) -> str:
    """Return the config folder; a relative one lands inside the working directory."""
    given = env.get("CLAUDE_CONFIG_DIR")
    return os.path.abspath(given or os.path.expanduser("~/.claude"))


class Sessions:
    """All transcripts of one config folder."""

    def __init__(self, folder: str, working_directory: str) -> None:
        self._projects = os.path.join(folder, "projects")
        self._project = re.sub(r"[^A-Za-z0-9]", "-", working_directory)

    def path(self, session_id: str) -> str:
        """Return where a new session of this working directory is kept."""
        return os.path.join(self._projects, self._project, f"{session_id}.jsonl")

    def find(self, session: str) -> str | None:
        """Return the transcript of an id from whichever directory, or of a transcript's path."""
        if session.endswith(".jsonl") and os.path.isfile(session):
            return session
        if not UUID.fullmatch(session):
            return None
        projects = os.listdir(self._projects) if os.path.isdir(self._projects) else []
        paths = (os.path.join(self._projects, name, f"{session}.jsonl") for name in projects)
        return next((path for path in paths if os.path.isfile(path)), None)


class Transcript:
    """One session's file, appended to as the conversation goes on."""

    def __init__(self, path: str | None, history: str | None = None) -> None:
        self._path = path
        self.length = 0
        self.account: dict[str, object] = {}
        for earlier in (history, path):
            if earlier is not None and os.path.exists(earlier):
                self._recall(earlier)
        if history is not None:
            self._copy(history)

    def append(self, entry: Mapping[str, object]) -> None:
        """Add one entry; the file holds prompts and tool output, so only its owner may read it."""
        self._write(f"{json.dumps(entry, ensure_ascii=False)}\n".encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if self._path is None:
            return
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            self._path = None
            return
        with open(descriptor, "wb") as file:
            file.write(data)

    def _copy(self, history: str) -> None:
        """Begin a forked session with everything the other one knows."""
        with open(history, "rb") as file:
            self._write(file.read())

    def _recall(self, path: str) -> None:
        with open(path, "rb") as file:
            for line in file:
                self.length += 1
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue  # a killed process can leave half a line
                if isinstance(entry, dict) and entry.get("type") == "account":
                    self.account = entry
