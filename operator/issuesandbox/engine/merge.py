"""The smallest merge patch that turns one JSON object into another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be merged into `old` to get `new`; empty if they are the same.

    A key that is gone becomes an explicit null: a merge patch keeps what it does not name.
    """
    patch: dict[str, Any] = {name: None for name in old.keys() - new.keys()}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                patch[name] = inner
        elif before != value:
            patch[name] = value
    return patch
