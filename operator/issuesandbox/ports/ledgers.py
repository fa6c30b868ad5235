"""ConfigMaps and Secrets of Kubernetes, as far as a run needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from issuesandbox.ports.resources import ResourceKey


class Ledgers(Protocol):
    """Texts kept beside a resource, and secrets read for a run."""

    async def put(
        self, owner: ResourceKey, name: str, data: Mapping[str, str], *, new: bool = False
    ) -> None:
        """Write a ConfigMap owned by the resource, so that it goes with it.

        `new` says that probably nobody wrote it before: it is created without a try to change it.
        """
        ...

    async def secret(self, namespace: str, name: str) -> Mapping[str, str]:
        """Return the decoded keys of a Secret; `NotFound` if there is none."""
        ...
