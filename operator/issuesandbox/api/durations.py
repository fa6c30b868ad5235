"""Durations as people write them in a manifest: `90s`, `5m`, `24h`, `1h30m`.

A value keeps its text, so that a resource read and written again looks as its author left it.
Knows nothing of what the durations limit.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from issuesandbox.api.constraints import JsonSchema, add_rule, rule

# Six digits each stay far below the 292 years that CEL's duration() can hold.
_PATTERN: Final = r"([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?"
_MAX_TEXT: Final = 32
_COMPILED: Final = re.compile(_PATTERN, re.ASCII)
_UNITS: Final = (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_MESSAGE: Final = (
    "must be a duration such as 90s, 5m, 24h or 1h30m: hours, minutes, seconds, never negative"
)


class Duration(timedelta):
    """A length of time, never negative, that remembers how it was written."""

    text: str

    def __new__(cls, text: str) -> Duration:
        """Parse `text`; raise ValueError if it is not a duration."""
        found = _COMPILED.fullmatch(text)
        if not text or found is None:
            raise ValueError(_MESSAGE)
        total = sum(
            int(part[: -len(unit)]) * factor
            for part, (unit, factor) in zip(found.groups(), _UNITS, strict=True)
            if part
        )
        self = super().__new__(cls, milliseconds=total)
        self.text = text
        return self

    @classmethod
    def of(cls, delta: timedelta) -> Duration:
        """Write `delta` in its shortest form; less than a millisecond is dropped."""
        rest = delta // timedelta(milliseconds=1)
        if rest < 0:
            raise ValueError(_MESSAGE)
        parts = []
        for unit, factor in _UNITS:
            count, rest = divmod(rest, factor)
            if count:
                parts.append(f"{count}{unit}")
        return cls("".join(parts) or "0s")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Duration({self.text!r})"

    def __reduce__(self) -> tuple[type[Duration], tuple[str]]:
        return Duration, (self.text,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        parse = core_schema.no_info_after_validator_function(cls, core_schema.str_schema())
        return core_schema.union_schema(
            [core_schema.is_instance_schema(cls), parse],
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchema:
        schema: JsonSchema = {"type": "string", "minLength": 1, "maxLength": _MAX_TEXT}
        return add_rule(schema, _is_duration("self"), _MESSAGE)


def in_order(first: str, second: str, message: str) -> dict[str, str]:
    """Return a CEL rule: where both fields are given, the first is not longer than the second."""
    given = f"has(self.{first}) && has(self.{second})"
    readable = f"{_is_duration(f'self.{first}')} && {_is_duration(f'self.{second}')}"
    ordered = f"duration(self.{first}) <= duration(self.{second})"
    # A text that is no duration is reported by its own rule; duration() would fail on it.
    return rule(f"!({given} && {readable}) || {ordered}", message)


def within(field: str, least: str | None, most: str | None, message: str) -> dict[str, str]:
    """Return a CEL rule that bounds one optional duration field."""
    bounds = []
    if least is not None:
        bounds.append(f"duration(self.{field}) >= duration('{least}')")
    if most is not None:
        bounds.append(f"duration(self.{field}) <= duration('{most}')")
    given = f"has(self.{field}) && {_is_duration(f'self.{field}')}"
    return rule(f"!({given}) || ({' && '.join(bounds)})", message)


def _is_duration(field: str) -> str:
    return f"{field}.matches(r'^{_PATTERN}$')"
