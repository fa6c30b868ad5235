"""The admin API's plumbing: typed bodies, one-line refusals, and a note in the journal.

It has no authentication, because it belongs to whoever runs the simulator; faults and rate limits
never touch it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from issuesandbox.local.github.acts_repositories import ensure_account
from issuesandbox.local.github.answers import Answer, GitHubError
from issuesandbox.local.github.bodies import read_json
from issuesandbox.local.github.gate import Gate
from issuesandbox.local.github.journal import Effect, effects, identity, precise
from issuesandbox.local.github.model import Actor, Issue, Repository

ADMIN_PREFIX = "/_sim"
_log = logging.getLogger(__name__)


class AdminBody(BaseModel):
    """A body in which an unknown field is a mistake."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class ByUser(AdminBody):
    """A body that says who acts; unknown logins become users without any role."""

    login: str = Field(alias="as", default="octocat")


class Errand:
    """One admin request."""

    def __init__(self, gate: Gate, request: web.Request, body: Any) -> None:
        self.gate = gate
        self.world = gate.world
        self.store = gate.world.store
        self.request = request
        self.body = body

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return self.request.match_info[name]

    @property
    def actor(self) -> Actor:
        """Return the user on whose behalf this happens."""
        return self.actor_named(self.body.login)

    def actor_named(self, login: str) -> Actor:
        """Return any user as an actor."""
        account = ensure_account(self.world, login)
        return Actor(account, via_app=account.id == self.store.app().bot_id)

    @property
    def repository(self) -> Repository:
        """Return the repository that the path names."""
        return self.repository_named(f"{self.part('owner')}/{self.part('repo')}")

    def repository_named(self, full_name: str) -> Repository:
        """Return a repository by its full name."""
        owner, _, name = full_name.partition("/")
        found = self.store.repository(owner, name)
        if found is None:
            raise GitHubError(404, f"no repository {full_name}: create it with POST /_sim/repos")
        return found

    @property
    def issue(self) -> Issue:
        """Return the issue or pull request that the path names."""
        issue = self.store.issue(self.repository, int(self.part("number")))
        if issue is None or issue.deleted or issue.moved_to is not None:
            full_name = self.store.full_name(self.repository)
            raise GitHubError(404, f"no issue {full_name}#{self.part('number')}")
        return issue


@dataclass(frozen=True)
class AdminRoute:
    """One call of the admin API."""

    method: str
    path: str
    body: type[AdminBody]
    serve: Callable[[Errand], Awaitable[Any]]


def add_admin_routes(app: web.Application, gate: Gate, routes: Sequence[AdminRoute]) -> None:
    """Serve the admin API."""
    for route in routes:
        app.router.add_route(route.method, ADMIN_PREFIX + route.path, _handler(gate, route))


def _handler(
    gate: Gate, route: AdminRoute
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        noted: list[Effect] = []
        at = gate.world.clock.now()
        effects.set(noted)
        identity.set({"kind": "admin"})
        answer = await _answered(gate, route, request)
        if request.method != "GET":
            entry = {
                "done_at": precise(gate.world.clock.now()),
                "identity": {"kind": "admin"},
                "operation": f"admin{route.path}",
                "method": request.method,
                "path": request.path,
                "status": answer.status,
                "effect": noted,
                "fault": None,
            }
            gate.world.journal.append("request", at, entry)
        return web.json_response(answer.body, status=answer.status)

    return handle


async def _answered(gate: Gate, route: AdminRoute, request: web.Request) -> Answer:
    try:
        body = route.body.model_validate(await read_json(request))
        return Answer(200, await route.serve(Errand(gate, request, body)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "body"
        return GitHubError(422, f"{place}: {first['msg']}").answer
    except GitHubError as error:
        return error.answer
    except web.HTTPException as error:
        return GitHubError(error.status, error.reason).answer
    except Exception:
        _log.exception("the simulator failed at %s %s", request.method, request.path)
        return GitHubError(500).answer
