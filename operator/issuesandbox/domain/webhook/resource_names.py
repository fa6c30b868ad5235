"""The name of the resource for an issue: the same from every replica, readable, safe for DNS."""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^a-z0-9]+")
_MAX_STEM = 40


def resource_name(repository: str, number: int) -> str:
    """Return the name; the hash keeps `a-b/c` and `a/b-c` apart."""
    exact = f"{repository.lower()}#{number}"
    stem = _UNSAFE.sub("-", repository.lower())[:_MAX_STEM].strip("-") or "issue"
    return f"{stem}-{number}-{hashlib.sha256(exact.encode()).hexdigest()[:8]}"
