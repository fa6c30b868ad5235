"""Which resource stands for which issue, from a watch. Stale by a moment, so it is only a hint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from issuesandbox.domain.webhook.live import Live, read_live

Issue = tuple[str, int]


class IssueIndex:
    """All resources by issue and by pull request."""

    def __init__(self, namespaces: tuple[str, ...]) -> None:
        self._missing = set(namespaces or ("",))
        self._by_uid: dict[str, Live] = {}
        self._by_issue: dict[Issue, dict[str, Live]] = defaultdict(dict)
        self._by_pull: dict[Issue, str] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def is_complete(self) -> bool:
        """Tell whether every namespace was listed once."""
        return not self._missing

    def replace(self, scope: str, bodies: list[Mapping[str, Any]]) -> None:
        """Take the resources of a namespace, or of all if it is empty, for all there are."""
        listed = {body["metadata"]["uid"] for body in bodies}
        for live in list(self._by_uid.values()):
            if scope in ("", live.namespace) and live.uid not in listed:
                self._forget(live.uid)
        for body in bodies:
            self._take(read_live(body))
        self._missing.discard(scope)

    def put(self, body: Mapping[str, Any]) -> None:
        """Take a new or changed resource, unless a newer version of it is known already."""
        live = read_live(body)
        known = self._by_uid.get(live.uid)
        if known is None or not _is_older(live.version, known.version):
            self._take(live)

    def _take(self, live: Live) -> None:
        self._forget(live.uid)
        self._by_uid[live.uid] = live
        self._by_issue[live.repository, live.number][live.uid] = live
        for pull in live.pulls:
            self._by_pull[live.repository, pull] = live.uid

    def drop(self, body: Mapping[str, Any]) -> None:
        """Forget a resource that is gone."""
        self._forget(body["metadata"]["uid"])

    def owner(self, repository: str, number: int) -> Live | None:
        """Return the resource that owns an issue: the oldest, as the operator decides as well."""
        found = self._by_issue.get((repository.lower(), number), {}).values()
        if len(found) == 1:
            return next(iter(found))
        living = [each for each in found if not each.is_deleting] or found
        return min(living, key=lambda each: (each.created, each.uid), default=None)

    def owner_of_pull(self, repository: str, number: int) -> Live | None:
        """Return the resource whose run opened a pull request."""
        return self._by_uid.get(self._by_pull.get((repository.lower(), number), ""))

    def busy(self, repository: str) -> list[Live]:
        """Return the resources of a repository whose runs go on or are to come."""
        name = repository.lower()
        found = self._by_uid.values()
        return [each for each in found if each.repository == name and _goes_on(each)]

    def _forget(self, uid: str) -> None:
        live = self._by_uid.pop(uid, None)
        if live is None:
            return
        same = self._by_issue[live.repository, live.number]
        same.pop(uid, None)
        if not same:
            del self._by_issue[live.repository, live.number]
        for pull in live.pulls:
            if self._by_pull.get((live.repository, pull)) == uid:
                del self._by_pull[live.repository, pull]


def _is_older(version: str, known: str) -> bool:
    # The API server's versions are numbers; of others nothing is known.
    return version.isdigit() and known.isdigit() and int(version) < int(known)


def _goes_on(live: Live) -> bool:
    return live.is_busy and live.is_running and not live.is_deleting
