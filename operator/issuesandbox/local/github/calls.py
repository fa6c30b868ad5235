"""One REST call: who makes it, on what, with which body; and the table of calls.

Finds and checks what the path names, so that each handler is only about its own work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from aiohttp import web
from multidict import MultiMapping
from yarl import URL

from issuesandbox.local.github.access import Caller, Need, acting
from issuesandbox.local.github.addresses import Links
from issuesandbox.local.github.answers import Answer, GitHubError, not_found, paged
from issuesandbox.local.github.bodies import Body, read_json
from issuesandbox.local.github.gate import Exchange, Gate
from issuesandbox.local.github.model import Actor, Comment, Issue, Repository
from issuesandbox.local.github.tokens import bad_credentials
from issuesandbox.local.github.views_issues import IssueViews

ENTERPRISE_PREFIX = "/api/v3"


class Identity(StrEnum):
    """What a call takes that is not about one repository."""

    ANYBODY = "anybody"
    SOMEBODY = "somebody"
    APP = "app"
    INSTALLATION = "installation"


class Call:
    """What a handler gets."""

    def __init__(self, gate: Gate, exchange: Exchange, need: Need | Identity) -> None:
        self.gate = gate
        self.world = gate.world
        self.store = gate.world.store
        self.request = exchange.request
        self.caller: Caller = exchange.caller
        self._need = need

    @cached_property
    def views(self) -> IssueViews:
        """Shapes with the address that the caller used."""
        origin = str(self.request.url.origin())
        is_enterprise = self.request.path.startswith(ENTERPRISE_PREFIX)
        return IssueViews(
            self.store, Links(origin + ENTERPRISE_PREFIX if is_enterprise else origin, origin)
        )

    @property
    def url(self) -> URL:
        """Return the full address of the call."""
        return self.request.url

    @property
    def query(self) -> MultiMapping[str]:
        """Return the query of the call."""
        return self.request.query

    @property
    def actor(self) -> Actor:
        """Return who acts."""
        return acting(self.caller)

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return self.request.match_info[name]

    async def body(self, resource: str) -> Body:
        """Read the body as fields of a resource."""
        return Body(resource, await read_json(self.request))

    def page(self, items: Sequence[Any], show: Callable[[Any], Any]) -> Answer:
        """Answer with one page of a list."""
        return paged(self.url, items, show)

    @property
    def named_repository(self) -> Repository | None:
        """Return the repository that the path names, whoever asks."""
        names = self.request.match_info
        if "repository_id" in names:
            return self.store.repositories.get(int(names["repository_id"]))
        return self.store.repository(names["owner"], names["repo"])

    @cached_property
    def repository(self) -> Repository:
        """Return the repository that the path names, if the caller may see it."""
        found = self.named_repository
        if found is None or not self.world.access.sees(self.caller, found):
            raise not_found()
        return found

    @cached_property
    def comment(self) -> Comment:
        """Return the comment that the path names."""
        comment = self.store.comments.get(int(self.part("comment_id")))
        if comment is None:
            raise not_found()
        if self.store.issues[comment.issue_id].repository_id != self.repository.id:
            raise not_found()
        return comment

    @cached_property
    def issue(self) -> Issue:
        """Return the issue or pull request that the path names."""
        issue = self.store.issue(self.repository, int(self.part("number")))
        if issue is None:
            raise not_found()
        if issue.deleted:
            raise GitHubError(410, "This issue was deleted")
        if issue.moved_to is not None:
            moved = issue.moved_to
            target = f"{self.views.links.api}/repositories/{moved.repository_id}"
            address = f"{target}/issues/{moved.number}"
            headers, extra = {"Location": address}, {"url": address}
            raise GitHubError(301, "Moved Permanently", headers=headers, extra=extra)
        return issue

    def authorize(self) -> None:
        """Refuse the caller unless they have what the call needs."""
        if isinstance(self._need, Identity):
            self._check_identity(self._need)
            return
        if self.caller.is_app:
            raise bad_credentials()
        self.world.access.require(
            self.caller, self.repository, self._need, pull=self._is_about_pull()
        )

    def _is_about_pull(self) -> bool:
        if not isinstance(self._need, Need) or self._need.on_pull is None:
            return False
        names = self.request.match_info
        issue = None
        if "number" in names:
            issue = self.issue
        elif "comment_id" in names:
            issue = self.store.issues[self.comment.issue_id]
        return issue is not None and issue.pull_id is not None

    def _check_identity(self, need: Identity) -> None:
        if need is Identity.APP and not self.caller.is_app:
            raise bad_credentials("A JSON web token could not be decoded")
        if need is Identity.SOMEBODY and self.caller.is_anonymous:
            raise GitHubError(401)
        if need is Identity.INSTALLATION and self.caller.installation is None:
            raise GitHubError(403, "You must authenticate with an installation access token")


@dataclass(frozen=True)
class Route:
    """One call of the REST API, under GitHub's own name for it."""

    method: str
    path: str
    operation: str
    need: Need | Identity
    serve: Callable[[Call], Awaitable[Answer]]


def add_routes(app: web.Application, gate: Gate, routes: Sequence[Route]) -> None:
    """Put calls under all addresses that GitHub knows for them."""
    for route in routes:
        handler = gate.handler(route.operation, _served(gate, route))
        paths = [route.path]
        if route.path.startswith("/repos/{owner}/{repo}"):
            rest = route.path.removeprefix("/repos/{owner}/{repo}")
            paths.append("/repositories/{repository_id:[0-9]+}" + rest)
        for path in paths:
            for prefix in ("", ENTERPRISE_PREFIX):
                app.router.add_route(route.method, prefix + path, handler)
                if route.method == "GET":
                    app.router.add_route("HEAD", prefix + path, handler)


def _served(gate: Gate, route: Route) -> Callable[[Exchange], Awaitable[web.StreamResponse]]:
    async def serve(exchange: Exchange) -> web.StreamResponse:
        if "User-Agent" not in exchange.request.headers:
            raise GitHubError(
                403,
                "Request forbidden by administrative rules. "
                "Please make sure your request has a User-Agent header.",
            )
        if exchange.refusal is not None:
            raise exchange.refusal
        gate.limits.check(exchange.caller)
        call = Call(gate, exchange, route.need)
        call.authorize()
        return gate.respond(exchange, await route.serve(call))

    return serve
