"""The parts of the simulated GitHub in one place, and how an act becomes an event.

An act changes the store and then announces itself: the journal gets its effect, the webhook its
payload. Knows nothing of HTTP requests.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from issuesandbox.clock import Clock
from issuesandbox.local.github.access import Access
from issuesandbox.local.github.addresses import Links, node_id
from issuesandbox.local.github.bare_git import BareGit
from issuesandbox.local.github.deliveries import Message
from issuesandbox.local.github.journal import Journal, identity, note_effect
from issuesandbox.local.github.model import AccountKind, Actor, GlobalId, Installation, Repository
from issuesandbox.local.github.store import Store
from issuesandbox.local.github.tokens import Tokens
from issuesandbox.local.github.views_issues import IssueViews
from issuesandbox.local.github.webhooks import Webhooks


@dataclass(frozen=True)
class Subject:
    """What an event is about, for the journal and for the order of deliveries."""

    number: int | None = None
    id: GlobalId | None = None


class World:
    """Everything an act needs."""

    def __init__(self, store: Store, clock: Clock, links: Links, webhook_timeout: float) -> None:
        self.store = store
        self.clock = clock
        self.links = links
        self.access = Access(store)
        self.tokens = Tokens(store, clock)
        self.git = BareGit(store.folder.path)
        self.journal = Journal(store.folder.db)
        self.webhooks = Webhooks(store, clock, self.journal, webhook_timeout)

    @property
    def views(self) -> IssueViews:
        """Shapes with the simulator's own address, as in webhooks."""
        return IssueViews(self.store, self.links)

    def now(self) -> datetime:
        """Return the time in whole seconds, which is all that GitHub keeps."""
        return self.clock.now().replace(microsecond=0)

    def take_number(self, repository: Repository) -> int:
        """Reserve the next issue or pull request number."""
        fresh = self.store.repositories[repository.id]
        self.store.repositories.put(replace(fresh, last_number=fresh.last_number + 1))
        return fresh.last_number + 1

    def announce(
        self,
        kind: tuple[str, str | None],
        actor: Actor,
        repository: Repository,
        subject: Subject,
        payload: Mapping[str, Any],
    ) -> None:
        """Note an effect and send the event about it."""
        event, action = kind
        note_effect(
            f"{event}.{action}" if action else event,
            repository=self.store.full_name(repository),
            number=subject.number,
            id=subject.id,
        )
        installation = self.access.installation_of(repository)
        owner = self.store.accounts[repository.owner_id]
        body: dict[str, Any] = {"action": action} if action else {}
        body |= payload
        # A push names its repository in a shape of its own.
        body.setdefault("repository", self.views.repository(repository))
        body["sender"] = self.views.account(actor.account)
        if owner.kind is AccountKind.ORGANIZATION:
            body["organization"] = self.views.organization(owner)
        if installation is not None:
            ident = installation.id
            body["installation"] = {"id": ident, "node_id": node_id("INS", ident)}
        self._publish(kind, body, installation, repository, subject.number)

    def announce_installation(
        self,
        kind: tuple[str, str],
        actor: Actor,
        installation: Installation,
        payload: Mapping[str, Any],
    ) -> None:
        """Note and send an event about an installation, which has no repository."""
        note_effect(".".join(kind), installation=installation.id)
        body = {
            "action": kind[1],
            "installation": self.views.installation(installation),
            **payload,
            "sender": self.views.account(actor.account),
        }
        self._publish(kind, body, installation, None, None)

    def record_push(self, repository: Repository, ref: str, old: str, new: str, via: str) -> None:
        """Write a moved ref into the journal."""
        entry = {
            "repo": self.store.full_name(repository),
            "ref": ref,
            "old": old,
            "new": new,
            "via": via,
            "identity": identity.get(),
        }
        self.journal.append("push", self.clock.now(), entry)

    def _publish(
        self,
        kind: tuple[str, str | None],
        body: Mapping[str, Any],
        installation: Installation | None,
        repository: Repository | None,
        number: int | None,
    ) -> None:
        message = Message(
            guid=str(uuid.uuid4()),
            event=kind[0],
            action=kind[1],
            body=json.dumps(body, separators=(",", ":")).encode(),
            installation_id=installation.id if installation else None,
            repository_id=repository.id if repository else None,
            number=number,
        )
        self.webhooks.publish(message)
