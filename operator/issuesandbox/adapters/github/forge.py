"""GitHub as the webhook adapter needs it: people, reactions, and what was missed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from issuesandbox.adapters.github.calls import RepositoryCalls
from issuesandbox.adapters.github.models import (
    Activity,
    Comment,
    Edited,
    Event,
    HookDelivery,
    Issue,
    Repositories,
    Repository,
    Role,
    parsed,
)
from issuesandbox.domain.audit import RefChange
from issuesandbox.ports.errors import Invalid, NotFound
from issuesandbox.ports.github import (
    CommentView,
    Delivery,
    EditView,
    IssueEvent,
    IssueView,
    Permission,
    Reaction,
    RepositoryView,
)

# By creation: what changes while the pages are read would else move, and something behind it
# would slip to a page that was read already.
_OLDEST_FIRST: Final[Mapping[str, str | int]] = {
    "sort": "created",
    "direction": "asc",
    "per_page": 100,
}
# REST does not tell who edited a text.
_LAST_EDIT: Final = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    issue(number: $number) { lastEditedAt editor { __typename login } }
  }
}
"""


class GitHubForge:
    """Implements `ports.github.Forge` on HTTP."""

    def __init__(self, calls: RepositoryCalls) -> None:
        self._calls = calls

    async def own_login(self) -> str:
        """Return the login under which we act; what it does must never trigger anything."""
        return await self._calls.credentials.login()

    def installed(self, repository: str, installation: int) -> None:
        """Hear from an event which installation of our App a repository belongs to."""
        self._calls.credentials.installed(repository, installation)

    async def permission(self, repository: str, login: str) -> Permission:
        """Return what a person may do in the repository; a stranger may do nothing."""
        path = "/collaborators/{login}/permission"
        try:
            data = await self._calls.get(repository, path, login=login)
        except NotFound:
            # A repository that we may not see would answer the same.
            await self._calls.get(repository, "")
            return Permission.NONE
        return parsed(data, Role).view()

    async def react_to_comment(self, repository: str, comment_id: int, reaction: Reaction) -> None:
        """Put our reaction under a comment; once, however often it is asked."""
        await self._calls.send(
            "POST",
            repository,
            "/issues/comments/{comment}/reactions",
            {"content": reaction.value},
            repeat=True,
            comment=comment_id,
        )

    async def issue_events(self, repository: str, number: int) -> Sequence[IssueEvent]:
        """Return what happened to an issue, oldest first."""
        path = "/issues/{number}/events{?per_page}"
        pages = self._calls.pages(repository, path, number=number, per_page=100)
        return [each.view() async for page in pages for each in parsed(page, list[Event])]

    async def last_edit(self, repository: str, number: int) -> EditView | None:
        """Return who changed an issue's body last and when; None: it is as it was opened."""
        owner, _, name = repository.partition("/")
        variables = {"owner": owner, "name": name, "number": number}
        data = await self._calls.query(repository, _LAST_EDIT, variables)
        return parsed(data, Edited).repository.issue.view()

    async def ref_changes(self, repository: str, branch: str) -> Sequence[RefChange]:
        """Return when a branch was moved and by whom, the latest changes first."""
        path, ref = "/activity{?ref,per_page}", f"refs/heads/{branch}"
        data = await self._calls.get(repository, path, ref=ref, per_page=100)
        return [each.view() for each in parsed(data, list[Activity])]

    async def repositories(self) -> AsyncIterator[RepositoryView]:
        """Return every repository that our credentials reach."""
        async for caller, path in self._calls.credentials.reach():
            async for page in self._calls.requests.pages(caller, path, {"per_page": 100}):
                listed = (
                    parsed(page, Repositories).repositories
                    if isinstance(page, dict)
                    else parsed(page, list[Repository])
                )
                for each in listed:
                    yield each.view()

    async def issues_since(self, repository: str, since: datetime) -> AsyncIterator[IssueView]:
        """Return issues and pull requests changed at or after `since`, oldest first."""
        path = "/issues{?state,sort,direction,since,per_page}"
        pages = self._calls.pages(
            repository, path, state="all", since=_moment(since), **_OLDEST_FIRST
        )
        async for page in pages:
            for each in parsed(page, list[Issue]):
                yield each.view(repository)

    async def comments_since(self, repository: str, since: datetime) -> AsyncIterator[CommentView]:
        """Return comments changed at or after `since`, oldest first."""
        path = "/issues/comments{?sort,direction,since,per_page}"
        pages = self._calls.pages(repository, path, since=_moment(since), **_OLDEST_FIRST)
        async for page in pages:
            for each in parsed(page, list[Comment]):
                yield each.view()

    async def failed_deliveries(self, since: datetime) -> AsyncIterator[Delivery]:
        """Return failed tries since then, newest first, one per event; none without an App."""
        app = self._calls.credentials.app()
        if app is None:
            return
        seen: set[str] = set()
        path, variables = "app/hook/deliveries{?status,per_page}", {"status": "failure"}
        async for page in self._calls.requests.pages(app, path, {**variables, "per_page": "100"}):
            for each in parsed(page, list[HookDelivery]):
                if each.delivered_at < since:
                    return
                # Enterprise servers that do not know the filter list all of them.
                if each.guid not in seen and not 200 <= each.status_code < 300:
                    seen.add(each.guid)
                    yield each.view()

    async def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to send a delivery once more."""
        app = self._calls.credentials.app()
        if app is None:
            raise Invalid("only an App can have deliveries sent again", code="NoApp")
        path = "app/hook/deliveries/{delivery}/attempts"
        await self._calls.requests.send("POST", app, path, {"delivery": str(delivery_id)})


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
