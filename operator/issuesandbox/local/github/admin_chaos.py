"""Admin calls that make things go wrong, and the journal that tells what happened.

Only sets switches; what they do is in faults.py and webhooks.py.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, replace
from typing import Any

from pydantic import Field

from issuesandbox.local.github.admin import AdminBody, AdminRoute, Errand
from issuesandbox.local.github.answers import GitHubError
from issuesandbox.local.github.deliveries import Message
from issuesandbox.local.github.faults import Fault, FaultKind
from issuesandbox.local.github.webhooks import Rule, Twist


class FaultBody(AdminBody):
    """A fault for the next matching calls."""

    kind: FaultKind
    operation: str = "*"
    method: str = "*"
    path: str = "*"
    count: int | None = Field(default=1, ge=1)
    skip: int = Field(default=0, ge=0)
    probability: float = Field(default=1.0, gt=0, le=1)
    after_effect: bool = False
    status: int = Field(default=500, ge=400, le=599)
    message: str = ""
    seconds: float = Field(default=1.0, ge=0)


class RuleBody(AdminBody):
    """A twist for the next matching deliveries."""

    kind: Twist
    count: int = Field(default=1, ge=1)
    event: str = "*"
    times: int = Field(default=1, ge=1)
    seconds: float = Field(default=0.0, ge=0)
    noticed: bool = True
    seed: int | None = None


class HookBody(AdminBody):
    """Where events go; several addresses take turns."""

    urls: list[str] | None = None
    secret: str | None = None


class SendBody(AdminBody):
    """One event to send to any address."""

    url: str
    event: str
    payload: dict[str, Any]
    secret: str = ""
    guid: str | None = None


class RateBody(AdminBody):
    """A new hourly budget for everybody."""

    limit: int = Field(ge=0)


async def add_fault(errand: Errand) -> Any:
    """Let the next matching calls fail."""
    faults = errand.gate.faults
    fault = Fault(id=faults.next_id(), **errand.body.model_dump())
    faults.active.append(fault)
    return asdict(fault)


async def list_faults(errand: Errand) -> Any:
    """Show the faults in force."""
    return [asdict(fault) for fault in errand.gate.faults.active]


async def clear_faults(errand: Errand) -> Any:
    """Let everything work again."""
    errand.gate.faults.active.clear()
    return {}


async def add_rule(errand: Errand) -> Any:
    """Lose, repeat, reorder or delay the next matching deliveries."""
    errand.world.webhooks.rules.append(Rule(**errand.body.model_dump()))
    return await show_webhooks(errand)


async def clear_rules(errand: Errand) -> Any:
    """Deliver normally again; what is held back goes out."""
    await errand.world.webhooks.drain()
    errand.world.webhooks.rules.clear()
    return await show_webhooks(errand)


async def show_webhooks(errand: Errand) -> Any:
    """Show where events go and what is on its way."""
    webhooks = errand.world.webhooks
    rules = [
        {"kind": rule.kind, "event": rule.event, "count": rule.count} for rule in webhooks.rules
    ]
    urls = list(errand.store.app().webhook_urls)
    return {"urls": urls, "rules": rules, "pending": webhooks.pending}


async def set_webhook(errand: Errand) -> Any:
    """Send events elsewhere."""
    body: HookBody = errand.body
    app = errand.store.app()
    errand.store.apps.put(
        replace(
            app,
            webhook_urls=app.webhook_urls if body.urls is None else tuple(body.urls),
            webhook_secret=app.webhook_secret if body.secret is None else body.secret,
        )
    )
    return await show_webhooks(errand)


async def drain(errand: Errand) -> Any:
    """Wait until no delivery is on its way."""
    await errand.world.webhooks.drain()
    return await show_webhooks(errand)


async def send(errand: Errand) -> Any:
    """Send one event to any address, now."""
    body: SendBody = errand.body
    action = body.payload.get("action")
    message = Message(
        guid=body.guid or str(uuid.uuid4()),
        event=body.event,
        action=action if isinstance(action, str) else None,
        body=json.dumps(body.payload).encode(),
    )
    attempt = await errand.world.webhooks.send_to(body.url, body.secret, message)
    return {
        "guid": message.guid,
        "status": attempt.status,
        "status_code": attempt.status_code,
        "answer": attempt.response_body,
    }


async def set_rate(errand: Errand) -> Any:
    """Give everybody a new hourly budget."""
    errand.gate.limits.set_limit(errand.body.limit)
    return {"limit": errand.body.limit}


async def read_journal(errand: Errand) -> Any:
    """Return what happened after a sequence number."""
    since = errand.request.query.get("since", "0")
    if not (since.isascii() and since.isdigit()):
        raise GitHubError(422, "since: a sequence number is needed")
    return errand.world.journal.since(int(since))


ROUTES = [
    AdminRoute("POST", "/faults", FaultBody, add_fault),
    AdminRoute("GET", "/faults", AdminBody, list_faults),
    AdminRoute("DELETE", "/faults", AdminBody, clear_faults),
    AdminRoute("GET", "/webhooks", AdminBody, show_webhooks),
    AdminRoute("PUT", "/webhooks", HookBody, set_webhook),
    AdminRoute("POST", "/webhooks/rules", RuleBody, add_rule),
    AdminRoute("DELETE", "/webhooks/rules", AdminBody, clear_rules),
    AdminRoute("POST", "/webhooks/drain", AdminBody, drain),
    AdminRoute("POST", "/webhooks/send", SendBody, send),
    AdminRoute("PUT", "/rate", RateBody, set_rate),
    AdminRoute("GET", "/journal", AdminBody, read_journal),
]
