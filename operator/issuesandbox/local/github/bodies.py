"""Reads what callers send and refuses what GitHub would refuse, in its words.

Knows JSON and the shape of fields; knows nothing of what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from issuesandbox.local.github.answers import GitHubError, invalid

_LONGEST_TEXT = 65_536


async def read_json(request: web.Request) -> Any:
    """Return the decoded body, or an empty object if there is none."""
    raw = await request.read()
    if not raw.strip():
        return {}
    try:
        return json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise GitHubError(400, "Problems parsing JSON") from error


class Body:
    """A JSON object whose fields are read one by one."""

    def __init__(self, resource: str, data: Any) -> None:
        if not isinstance(data, dict):
            raise GitHubError(400, "Body should be a JSON object")
        self._resource = resource
        self._data: Mapping[str, Any] = data

    def __contains__(self, name: str) -> bool:
        return name in self._data

    def text(self, name: str) -> str | None:
        """Return a string, or nothing where it is missing or null."""
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong_type(name, value, "string")
        if len(value) > _LONGEST_TEXT:
            message = f"{name} is too long (maximum is {_LONGEST_TEXT} characters)"
            raise invalid(self._resource, name, "custom", message)
        return value

    def needed(self, name: str) -> str:
        """Return a string that must be there and say something."""
        if name not in self._data:
            raise GitHubError(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
        value = self.text(name)
        if value is None or not value.strip():
            raise invalid(self._resource, name, "missing_field")
        return value

    def choice(self, name: str, *allowed: str) -> str | None:
        """Return one of the allowed words, or nothing where it is missing."""
        value = self.text(name)
        if value is not None and value not in allowed:
            raise invalid(self._resource, name)
        return value

    def flag(self, name: str) -> bool | None:
        """Return true or false, or nothing where it is missing."""
        value = self._data.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong_type(name, value, "boolean")
        return value

    def texts(self, name: str) -> list[str] | None:
        """Return a list of strings, or nothing where it is missing; `{"name": …}` is a string."""
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._wrong_type(name, value, "array")
        return [self._name_in(name, item) for item in value]

    def numbers(self, name: str) -> list[int] | None:
        """Return a list of integers, or nothing where it is missing."""
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or any(type(item) is not int for item in value):
            raise self._wrong_type(name, value, "array of integers")
        return value

    def mapping(self, name: str) -> dict[str, str] | None:
        """Return an object of strings, or nothing where it is missing."""
        value = self._data.get(name)
        if value is None:
            return None
        if not isinstance(value, dict) or any(type(item) is not str for item in value.values()):
            raise self._wrong_type(name, value, "object of strings")
        return value

    def _name_in(self, name: str, item: Any) -> str:
        found = item.get("name") if isinstance(item, dict) else item
        if not isinstance(found, str):
            raise self._wrong_type(name, item, "string")
        return found

    def _wrong_type(self, name: str, value: Any, wanted: str) -> GitHubError:
        shown = json.dumps(value)[:80]
        return GitHubError(
            422, f"Invalid request.\n\nFor 'properties/{name}', {shown} is not a {wanted}."
        )


def query_time(query: Mapping[str, str], name: str) -> datetime | None:
    """Return a time from the query string."""
    text = query.get(name)
    if not text:
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError as error:
        raise invalid("Search", name) from error
    return value if value.tzinfo else value.replace(tzinfo=UTC)
