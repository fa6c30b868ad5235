"""Reads the bodies and queries of toolbox calls; refuses what the daemon's binding refuses."""

from __future__ import annotations

from typing import Any, TypeVar

from aiohttp import web

from issuesandbox.local.daytona.errors import ToolboxError

T = TypeVar("T")


def invalid(message: str) -> ToolboxError:
    """Return the refusal of a body."""
    return ToolboxError(400, f"invalid request body: {message}", code="INVALID_REQUEST_BODY")


def required(body: Any, name: str) -> str:
    """Return a text that must be there and not be empty."""
    value = optional(body, name, str)
    if not value:
        raise invalid(f"{name} is required")
    return value


def optional(body: Any, name: str, kind: type[T]) -> T | None:
    """Return a value that may be missing but must have the right type."""
    if not isinstance(body, dict):
        raise invalid("an object is expected")
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid(f"{name} must be of type {kind.__name__}")
    return value


def strings(body: Any, name: str) -> list[str]:
    """Return a list of texts that must be there."""
    value = optional(body, name, list)
    if value is None or not all(isinstance(item, str) for item in value):
        raise invalid(f"{name} must be a list of strings")
    return value


def string_map(body: Any, name: str) -> dict[str, str]:
    """Return a map of texts, empty if missing."""
    value: dict[Any, Any] = optional(body, name, dict) or {}
    if not all(isinstance(item, str) for item in value.values()):
        raise invalid(f"each value in {name} must be a string")
    return value


def query_text(request: web.Request, name: str) -> str:
    """Return a query parameter that must be there."""
    value = request.query.get(name)
    if not value:
        raise ToolboxError(400, f"{name} is required")
    return value
