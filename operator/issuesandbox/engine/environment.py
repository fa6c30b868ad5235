"""The Secrets whose keys become environment variables, as a resource names them."""

from __future__ import annotations

from collections.abc import Sequence

from issuesandbox.api.spec_common import EnvSource
from issuesandbox.ports.errors import NotFound
from issuesandbox.ports.ledgers import Ledgers


async def variables(
    ledgers: Ledgers, namespace: str, sources: Sequence[EnvSource]
) -> dict[str, str]:
    """Return the keys of all Secrets, later ones winning; `NotFound` names one that is missing."""
    found: dict[str, str] = {}
    for each in sources:
        name = each.secret_ref.name
        try:
            found |= await ledgers.secret(namespace, name)
        except NotFound:
            raise NotFound(f"There is no Secret {namespace}/{name}") from None
    return found
