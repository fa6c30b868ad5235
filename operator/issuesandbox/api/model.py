"""The common ground of all models of the resource: camelCase outside, frozen values inside.

Knows no field of the resource.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


def is_empty(value: Sized) -> bool:
    """Return whether a list or map has nothing in it, and so nothing to write."""
    return not value


class ApiModel(BaseModel):
    """A part of the resource, read from and written to Kubernetes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    def to_json(self) -> dict[str, Any]:
        """Return what Kubernetes stores: camelCase names, absent instead of null."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")


class SpecModel(ApiModel):
    """A part that users write: a name nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")


class StatusModel(ApiModel):
    """A part that the operator writes: names of a newer operator are passed over."""

    model_config = ConfigDict(extra="ignore")
