"""The one way in: every request is identified, limited, struck by faults, answered and journaled.

Knows how to treat a call but not what any call does.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

from issuesandbox.local.github.access import Caller, described, identify
from issuesandbox.local.github.answers import Answer, GitHubError, etag, is_unchanged
from issuesandbox.local.github.faults import Fault, FaultKind, Faults
from issuesandbox.local.github.journal import Effect, effects, identity, precise
from issuesandbox.local.github.rate_limits import RateLimits
from issuesandbox.local.github.world import World

_log = logging.getLogger(__name__)


@dataclass
class Exchange:
    """One request on its way through the gate."""

    request: web.Request
    operation: str
    at: datetime
    caller: Caller = field(default_factory=Caller)
    refusal: GitHubError | None = None
    identity: dict[str, Any] = field(default_factory=lambda: {"kind": "invalid"})
    fault: Fault | None = None
    effects: list[Effect] = field(default_factory=list)

    @property
    def is_answer_lost(self) -> bool:
        """Tell whether the work is to be done but its answer withheld."""
        fault = self.fault
        return fault is not None and fault.after_effect and fault.kind is not FaultKind.SLOW


Serve = Callable[[Exchange], Awaitable[web.StreamResponse]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate:
    """Treats every call alike, whatever it is for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults = Faults()
        self.limits = RateLimits(world.clock)

    def handler(self, operation: str, serve: Serve) -> Handler:
        """Wrap the work of a call with everything that surrounds it."""

        async def handle(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, operation, self.world.clock.now())
            effects.set(exchange.effects)
            identity.set(exchange.identity)
            self._identify(exchange)
            response = await self._tried(exchange, lambda: self._struck(exchange, serve))
            self._write_down(exchange, response.status)
            return response

        return handle

    async def _tried(
        self, exchange: Exchange, work: Callable[[], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Do the work, and turn whatever stops it into an answer."""
        try:
            return await work()
        except GitHubError as error:
            return self.respond(exchange, error.answer)
        except web.HTTPException as error:
            return self.respond(exchange, GitHubError(error.status, error.reason).answer)
        except ConnectionError:
            return web.Response(status=499, reason="The caller hung up")
        except Exception:
            request = exchange.request
            _log.exception("the simulator failed at %s %s", request.method, request.path)
            return self.respond(exchange, GitHubError(500).answer)

    async def _struck(self, exchange: Exchange, serve: Serve) -> web.StreamResponse:
        request = exchange.request
        exchange.fault = self.faults.take(exchange.operation, request.method, request.path)
        fault = exchange.fault
        if fault is not None and not fault.after_effect:
            broken = await self.faults.strike(fault, request)
            if broken is not None:
                return broken
        response = await self._tried(exchange, lambda: serve(exchange))
        if fault is not None and fault.after_effect:
            return await self.faults.strike(fault, request) or response
        return response

    def _identify(self, exchange: Exchange) -> None:
        """Find out who calls; a refusal waits until the call is served."""
        authorization = exchange.request.headers.get("Authorization")
        try:
            exchange.caller = identify(self.world.store, self.world.tokens, authorization)
        except GitHubError as error:
            exchange.refusal = error
        else:
            exchange.identity.update(described(self.world.store, exchange.caller))

    def respond(self, exchange: Exchange, answer: Answer) -> web.Response:
        """Turn an answer into GitHub's HTTP, with its validator and the caller's budget."""
        text, request = answer.text(), exchange.request
        budget = self.limits.of(exchange.caller)
        headers = {
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": secrets.token_hex(8).upper(),
        }
        free = exchange.operation == "rate-limit/get"
        if request.method in ("GET", "HEAD") and answer.status == 200 and not free:
            headers |= {"ETag": etag(text), "Cache-Control": "private, max-age=60, s-maxage=60"}
            if is_unchanged(request, headers["ETag"]):
                return web.Response(status=304, headers={**headers, **budget.headers()})
        if not free:
            budget.used += 1
        headers = {**headers, **budget.headers(), **answer.headers}
        if answer.body is None:
            return web.Response(status=answer.status, headers=headers)
        return web.Response(
            status=answer.status,
            text=text,
            headers=headers,
            content_type="application/json",
            charset="utf-8",
        )

    def _write_down(self, exchange: Exchange, status: int) -> None:
        fault = exchange.fault
        entry = {
            "done_at": precise(self.world.clock.now()),
            "identity": exchange.identity,
            "operation": exchange.operation,
            "method": exchange.request.method,
            "path": exchange.request.path,
            "status": status,
            "effect": exchange.effects,
            "fault": fault.label() if fault else None,
        }
        self.world.journal.append("request", exchange.at, entry)
