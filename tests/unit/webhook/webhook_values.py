"""Issues, people and resources as the tests of the webhook rules need them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from issuesandbox.domain.webhook.issue import IssueFacts, Person

OWNER = Person("owner", standing="OWNER")
STRANGER = Person("stranger", standing="NONE")
BOT = Person("helper[bot]", is_bot=True, standing="MEMBER")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def issue(author: Person = OWNER, **changes: Any) -> IssueFacts:
    facts: dict[str, Any] = {"title": "It breaks", "body": "Badly.", "updated_at": NOON, **changes}
    return IssueFacts("acme/app", 1, 77, author=author, **facts)


def resource(managed: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a resource as the API server shows it."""
    return {
        "metadata": {
            "namespace": "issues",
            "name": "acme-app-1",
            "uid": "u",
            "resourceVersion": "5",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": managed or [],
        },
        "spec": {"issue": {"repository": "Acme/App", "number": 1}, **spec},
    }


def managed(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": fields}}
