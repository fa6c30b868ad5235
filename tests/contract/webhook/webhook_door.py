"""A sender of deliveries, honest or not."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from issuesandbox.domain.webhook.hints import Hint
from issuesandbox.domain.webhook.signature import sign
from issuesandbox.engine.inbox.reception import Answer, Result
from issuesandbox.entry.webhook.server import WebhookServer

SECRETS = (b"old secret", b"new secret")


def opened(**changes: Any) -> dict[str, Any]:
    """Return the part of GitHub's `issues.opened` that is read."""
    issue = {
        "id": 9,
        "number": 1,
        "title": "It breaks",
        "body": "Badly.",
        "state": "open",
        "updated_at": "2026-01-01T00:00:00Z",
        "user": {"login": "owner", "type": "User"},
        "author_association": "OWNER",
        "labels": [],
        **changes,
    }
    return {
        "action": "opened",
        "issue": issue,
        "repository": {"full_name": "acme/app"},
        "sender": {"login": "owner", "type": "User"},
    }


@dataclass
class Notes:
    """What came through the door, and what is raised."""

    hints: list[Hint] = field(default_factory=list)
    error: Exception | None = None
    ready: bool = True
    gate: asyncio.Event | None = None

    async def receive(self, hint: Hint) -> Answer:
        self.hints.append(hint)
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Answer(Result.CREATED, "issues/acme-app-1-12345678", "created")


@dataclass
class Door:
    """Where deliveries go."""

    session: aiohttp.ClientSession
    host: str
    port: int
    server: WebhookServer

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def post(
        self,
        body: bytes | AsyncIterator[bytes] | None = None,
        *,
        path: str = "/webhook",
        signed: bytes | None = None,
        **changes: str | None,
    ) -> tuple[int, dict[str, Any]]:
        """Send a delivery that is right but for the changes (`X_Name`: value, None: left out)."""
        data = json.dumps(opened()).encode() if body is None else body
        raw = data if isinstance(data, bytes) else b""
        headers: dict[str, str | None] = {
            "Content-Type": "application/json",
            "X-GitHub-Event": "issues",
            "X-GitHub-Delivery": "guid",
            "X-Hub-Signature-256": sign(SECRETS[1], raw if signed is None else signed),
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        given = {name: value for name, value in headers.items() if value is not None}
        sent = io.BytesIO(data) if isinstance(data, bytes) else data
        async with self.session.post(self.url + path, data=sent, headers=given) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if text.startswith("{") else {}
