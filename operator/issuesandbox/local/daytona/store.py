"""All rows in memory, with the indexes and the one promise the service makes about names.

Knows nothing of HTTP, time or processes. Every write goes through here, and so into the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from issuesandbox.local.daytona.errors import ApiError, not_found
from issuesandbox.local.daytona.model import Sandbox, SandboxId
from issuesandbox.local.daytona.state_file import StateFile


class Store:
    """Sandboxes by id and by (organisation, name); destroyed ones are gone."""

    def __init__(self, file: StateFile | None) -> None:
        self._file = file
        self._by_id: dict[SandboxId, Sandbox] = {}
        self._by_name: dict[tuple[str, str], Sandbox] = {}
        self._by_organization: dict[str, dict[SandboxId, Sandbox]] = {}

    def load(self) -> None:
        """Read the rows of an earlier life."""
        for sandbox in self._file.load() if self._file else ():
            self._index(sandbox)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Sandbox]:
        return iter(list(self._by_id.values()))

    def of(self, organization: str) -> Iterable[Sandbox]:
        """Return the rows of one organisation in the order of their creation."""
        return self._by_organization.get(organization, {}).values()

    def insert(self, sandbox: Sandbox) -> None:
        """Add a row; the name must be free, whatever state its holder is in."""
        if (sandbox.organization, sandbox.name) in self._by_name:
            raise ApiError(409, f"Sandbox with name {sandbox.name} already exists")
        sandbox.labels = _interned(sandbox.labels)
        self._index(sandbox)
        self.save(sandbox)

    def save(self, sandbox: Sandbox) -> None:
        """Make a changed row durable."""
        if self._file is not None and sandbox.id in self._by_id:
            self._file.save(sandbox)

    def rename(self, sandbox: Sandbox, name: str) -> None:
        """Give a row another name; the old one is free at once."""
        self._by_name.pop((sandbox.organization, sandbox.name), None)
        sandbox.name = name
        self._by_name[sandbox.organization, name] = sandbox

    def remove(self, sandbox: Sandbox) -> None:
        """Forget a row."""
        del self._by_id[sandbox.id]
        del self._by_name[sandbox.organization, sandbox.name]
        del self._by_organization[sandbox.organization][sandbox.id]
        if self._file is not None:
            self._file.remove(sandbox.id)

    def get(self, sandbox: SandboxId) -> Sandbox | None:
        """Return the row with this id in any organisation, hidden or not."""
        return self._by_id.get(sandbox)

    def visible(self, organization: str, reference: str) -> Sandbox | None:
        """Return the visible sandbox with this id, else with this name."""
        found = self._by_id.get(SandboxId(reference))
        if found is None or found.organization != organization:
            found = self._by_name.get((organization, reference))
        return None if found is None or found.hidden else found

    def find(self, organization: str, reference: str) -> Sandbox:
        """Return the visible sandbox with this id or name; a missing one is a 404."""
        found = self.visible(organization, reference)
        if found is None:
            raise not_found(reference)
        return found

    def find_anywhere(self, reference: str) -> Sandbox:
        """Return the row with this id or name in any organisation, for the administrator."""
        found = self._by_id.get(SandboxId(reference))
        if found is None:
            named = (row for (_, name), row in self._by_name.items() if name == reference)
            found = next(named, None)
        if found is None:
            raise not_found(reference)
        return found

    def _index(self, sandbox: Sandbox) -> None:
        self._by_id[sandbox.id] = sandbox
        self._by_name[sandbox.organization, sandbox.name] = sandbox
        self._by_organization.setdefault(sandbox.organization, {})[sandbox.id] = sandbox


def _interned(labels: dict[str, str]) -> dict[str, str]:
    # Thousands of rows carry the same few labels.
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}
