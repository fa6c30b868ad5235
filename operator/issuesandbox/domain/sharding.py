"""Which shard a repository belongs to and which replica should own a shard.

Pure: every replica computes the same answer from the same members. Knows nothing of leases,
which decide who really acts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def shard_of(repository: str, shards: int) -> int:
    """Return the shard of a repository; GitHub's names differ by more than case."""
    return int.from_bytes(_digest(repository.lower())) % shards if shards > 1 else 0


def owner(shard: int, members: Iterable[str]) -> str | None:
    """Return the member that should own a shard, or None if there is no member.

    The highest hash wins (rendezvous): a member that comes or goes moves its own shards only.
    """
    return max(members, key=lambda member: (_digest(f"{shard}/{member}"), member), default=None)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
