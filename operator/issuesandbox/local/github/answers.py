"""GitHub's way to answer: JSON, error bodies, paging links and ETags.

Knows HTTP and GitHub's wording; knows nothing of what is being answered.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from aiohttp import web
from yarl import URL

_DOCUMENTATION = "https://docs.github.com/rest"
_SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
_MESSAGES = {
    401: "Requires authentication",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    422: "Validation Failed",
    500: "Server Error",
    502: "Server Error",
    503: "Service Unavailable",
}

ItemT = TypeVar("ItemT")


def moment(value: datetime) -> str:
    """Write a time as GitHub does: whole seconds, Z."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe_moment(value: datetime | None) -> str | None:
    """Write a time that may be missing."""
    return None if value is None else moment(value)


@dataclass(frozen=True)
class Answer:
    """Status, JSON body (none for 204) and extra headers."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the body as it goes over the wire."""
        return "" if self.body is None else json.dumps(self.body, separators=(",", ":"))


class GitHubError(Exception):
    """A refusal in GitHub's words."""

    def __init__(
        self,
        status: int,
        message: str = "",
        errors: Sequence[Any] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        message = message or _MESSAGES.get(status, "Server Error")
        super().__init__(message)
        body: dict[str, Any] = {"message": message, **(extra or {})}
        if errors:
            body["errors"] = list(errors)
        body |= {"documentation_url": _DOCUMENTATION, "status": str(status)}
        self.answer = Answer(status, body, headers or {})


def not_found() -> GitHubError:
    """Say that it does not exist, or that the caller may not know."""
    return GitHubError(404)


def invalid(resource: str, fieldname: str, code: str = "invalid", message: str = "") -> GitHubError:
    """Refuse one field of a body."""
    error = {"resource": resource, "code": code, "field": fieldname}
    if message:
        error["message"] = message
    return GitHubError(422, "Validation Failed", [error])


def refused(resource: str, message: str) -> GitHubError:
    """Refuse a body for a reason that is no single field's."""
    return GitHubError(
        422, "Validation Failed", [{"resource": resource, "code": "custom", "message": message}]
    )


def secondary_limit(retry_after: int) -> GitHubError:
    """Refuse for too much at once; the header says how long to wait."""
    return GitHubError(403, _SECONDARY, headers={"Retry-After": str(retry_after)})


def etag(text: str) -> str:
    """Return the weak validator of a body."""
    return f'W/"{hashlib.sha256(text.encode()).hexdigest()}"'


def is_unchanged(request: web.BaseRequest, tag: str) -> bool:
    """Tell whether the caller already holds this version."""
    held = request.headers.get("If-None-Match", "")
    # GitHub compares weakly: the strong form of the same validator matches too.
    return tag.removeprefix("W/") in [part.strip().removeprefix("W/") for part in held.split(",")]


def _positive(text: str | None, default: int) -> int:
    try:
        value = int(text or default)
    except ValueError:
        return default
    return value if value > 0 else default


def page_size(url: URL) -> int:
    """Return how many items the caller wants at once."""
    return min(_positive(url.query.get("per_page"), 30), 100)


def paged(
    url: URL,
    items: Sequence[ItemT],
    show: Callable[[ItemT], Any],
    wrap: Callable[[list[Any]], Any] = lambda shown: shown,
) -> Answer:
    """Answer with one page of a list and links to the others."""
    size = page_size(url)
    page = _positive(url.query.get("page"), 1)
    last = max(1, -(-len(items) // size))
    targets: dict[str, int] = {}
    if page > 1:
        targets |= {"prev": min(page - 1, last), "first": 1}
    if page < last:
        targets |= {"next": page + 1, "last": last}
    links = [
        f'<{url.update_query(per_page=size, page=number)}>; rel="{rel}"'
        for rel, number in targets.items()
    ]
    shown = [show(item) for item in items[(page - 1) * size : page * size]]
    return Answer(200, wrap(shown), {"Link": ", ".join(links)} if links else {})
