"""What happens to the App's installations: made, changed, suspended, removed.

Knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from issuesandbox.local.github.addresses import node_id
from issuesandbox.local.github.model import (
    Account,
    Actor,
    GlobalId,
    Installation,
    Repository,
)
from issuesandbox.local.github.world import World


def install(
    world: World,
    actor: Actor,
    account: Account,
    repositories: Iterable[Repository] | None,
    permissions: Mapping[str, str] | None,
) -> Installation:
    """Install the App on an account, for all or some of its repositories."""
    now = world.now()
    granted = permissions or world.store.app().permissions
    installation = world.store.installations.put(
        Installation(
            id=world.store.new_id(),
            account_id=account.id,
            # GitHub always grants reading of metadata.
            permissions={"metadata": "read", **granted},
            repository_ids=_ids(repositories),
            created_at=now,
            updated_at=now,
        )
    )
    world.announce_installation(("installation", "created"), actor, installation, {})
    return installation


def uninstall(world: World, actor: Actor, installation: Installation) -> None:
    """Remove an installation; its tokens are dead at once."""
    world.store.installations.delete(installation.id)
    world.announce_installation(("installation", "deleted"), actor, installation, {})


def suspend(world: World, actor: Actor, installation: Installation, *, on: bool) -> Installation:
    """Suspend an installation or let it work again."""
    installation = world.store.installations.put(
        replace(installation, suspended_at=world.now() if on else None)
    )
    action = "suspend" if on else "unsuspend"
    world.announce_installation(("installation", action), actor, installation, {})
    return installation


def choose_repositories(
    world: World, actor: Actor, installation: Installation, chosen: Iterable[Repository]
) -> Installation:
    """Give an installation exactly these repositories."""
    before = set(installation.repository_ids or ())
    after = _ids(chosen) or ()
    installation = world.store.installations.put(
        replace(installation, repository_ids=after, updated_at=world.now())
    )
    differences = {"added": set(after) - before, "removed": before - set(after)}
    for action, idents in differences.items():
        if not idents:
            continue
        payload: dict[str, Any] = {
            "repositories_added": [],
            "repositories_removed": [],
            "repository_selection": "selected",
            "requester": None,
        }
        payload[f"repositories_{action}"] = [_brief(world, ident) for ident in sorted(idents)]
        kind = ("installation_repositories", action)
        world.announce_installation(kind, actor, installation, payload)
    return installation


def _ids(repositories: Iterable[Repository] | None) -> tuple[GlobalId, ...] | None:
    return None if repositories is None else tuple(row.id for row in repositories)


def _brief(world: World, ident: GlobalId) -> dict[str, Any]:
    repository = world.store.repositories[ident]
    return {
        "id": repository.id,
        "node_id": node_id("R", repository.id),
        "name": repository.name,
        "full_name": world.store.full_name(repository),
        "private": repository.private,
    }
