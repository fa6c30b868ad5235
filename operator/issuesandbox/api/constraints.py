"""Constraints that hold twice: in Python when a model is built, and in the API server as CEL.

A CEL rule can say in words what is wrong, where a `pattern` only shows the expression, so limits
that a person may hit are rules. Knows nothing of the resource's fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

JsonSchema = dict[str, Any]

RULES_KEY = "x-kubernetes-validations"
_ELLIPSIS = "…"

# RFC 3339 has no upper length: without one a fraction of a second could fill the object.
Timestamp = Annotated[
    AwareDatetime, WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 40})
]


def rule(cel: str, message: str) -> dict[str, str]:
    """Return one CEL rule as the API server wants it."""
    return {"rule": cel, "message": message}


def rules(*wanted: dict[str, str]) -> dict[str, Any]:
    """Return `json_schema_extra` for a model that carries these CEL rules."""
    return {RULES_KEY: list(wanted)}


def add_rule(schema: JsonSchema, cel: str, message: str) -> JsonSchema:
    """Append one CEL rule to a schema that may already have some."""
    schema[RULES_KEY] = [*schema.get(RULES_KEY, []), rule(cel, message)]
    return schema


def merged_by(*keys: str) -> dict[str, Any]:
    """Return `json_schema_extra` for a list whose items are merged by these keys."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def clip(text: str, limit: int) -> str:
    """Cut `text` to at most `limit` bytes of UTF-8, never inside a character."""
    if len(text) <= limit and text.isascii():
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode()
    room = limit - len(_ELLIPSIS.encode())
    return raw[:room].decode("utf-8", "ignore") + _ELLIPSIS


def _checked(schema: CoreSchema, check: Callable[[str], str]) -> CoreSchema:
    return core_schema.no_info_after_validator_function(check, schema)


@dataclass(frozen=True)
class Matches:
    """The whole text matches an expression that Python's `re` and RE2 read alike."""

    pattern: str
    message: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        compiled = re.compile(self.pattern, re.ASCII)

        def check(text: str) -> str:
            if compiled.fullmatch(text) is None:
                raise ValueError(self.message)
            return text

        return _checked(handler(source), check)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        return add_rule(handler(core), f"self.matches(r'^(?:{self.pattern})$')", self.message)


@dataclass(frozen=True)
class Excludes:
    """No part of the text matches an expression that Python's `re` and RE2 read alike."""

    pattern: str
    message: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        compiled = re.compile(self.pattern, re.ASCII)

        def check(text: str) -> str:
            if compiled.search(text) is not None:
                raise ValueError(self.message)
            return text

        return _checked(handler(source), check)

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        return add_rule(handler(core), f"!self.matches(r'{self.pattern}')", self.message)


@dataclass(frozen=True)
class MaxBytes:
    """Text of at most `limit` bytes of UTF-8; longer text is refused."""

    limit: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return _checked(handler(source), self._check)

    def _check(self, text: str) -> str:
        # No character takes more than four bytes: most texts need not be measured.
        if 4 * len(text) > self.limit and len(text.encode("utf-8", "replace")) > self.limit:
            raise ValueError(_too_long(self.limit))
        return text

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        return _byte_limited(handler(core), self.limit)


@dataclass(frozen=True)
class Clipped:
    """Text that is cut to `limit` bytes of UTF-8, so that a status is never refused for it."""

    limit: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        # Before pydantic looks: it refuses lone surrogates, which JSON from an agent may hold.
        return core_schema.no_info_before_validator_function(self._cut, handler(source))

    def _cut(self, value: Any) -> Any:
        return clip(value, self.limit) if isinstance(value, str) else value

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        return _byte_limited(handler(core), self.limit)


def _too_long(limit: int) -> str:
    return f"must be at most {limit} bytes in UTF-8"


def _byte_limited(schema: JsonSchema, limit: int) -> JsonSchema:
    # maxLength counts characters and bounds the cost of the rule; the rule counts bytes.
    schema["maxLength"] = min(limit, schema.get("maxLength", limit))
    return add_rule(schema, f"size(bytes(self)) <= {limit}", _too_long(limit))
