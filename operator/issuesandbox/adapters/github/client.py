"""GitHub as a run needs it: the issue, branches, tokens, the pull request and the comment."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from issuesandbox.adapters.github.calls import RepositoryCalls
from issuesandbox.adapters.github.models import Comment, Issue, Pull, Ref, Repository, parsed
from issuesandbox.ports.errors import Conflict, Invalid, NotFound
from issuesandbox.ports.github import (
    CommentView,
    IssueView,
    PullOrder,
    PullView,
    RepositoryView,
    Token,
)


class GitHubClient:
    """Implements `ports.github.GitHub` on HTTP."""

    def __init__(self, calls: RepositoryCalls) -> None:
        self._calls = calls

    async def repository(self, repository: str) -> RepositoryView:
        """Return the repository; `NotFound` also if it is private and not ours to see."""
        return parsed(await self._calls.get(repository, ""), Repository).view()

    async def issue(self, repository: str, number: int) -> IssueView:
        """Return the issue; `NotFound` also if it was deleted or transferred."""
        data = await self._calls.get(repository, "/issues/{number}", number=number)
        return parsed(data, Issue).view(repository)

    async def branch_tip(self, repository: str, branch: str) -> str | None:
        """Return the commit a branch points to, or None if there is no such branch."""
        try:
            data = await self._calls.get(
                repository, "/git/ref/heads/{+branch}", branch=quote(branch, safe="/")
            )
        except NotFound:
            # A repository that we may not see would answer the same.
            await self.repository(repository)
            return None
        except Conflict:
            # A repository without any commit.
            return None
        return parsed(data, Ref).object.sha

    async def read_token(self, repository: str) -> Token | None:
        """Return a token that can read this repository's contents and nothing else, if any."""
        return await self._calls.credentials.read_token(repository)

    async def write_token(self, repository: str) -> Token:
        """Return a token that can push to this repository."""
        return await self._calls.credentials.write_token(repository)

    async def open_pull(self, repository: str, branch: str) -> PullView | None:
        """Return the open pull request that comes from a branch of the repository itself."""
        owner = repository.partition("/")[0]
        path = "/pulls{?head,state,per_page}"
        data = await self._calls.get(
            repository, path, head=f"{owner}:{branch}", state="open", per_page=100
        )
        found = [each for each in parsed(data, list[Pull]) if each.is_from(repository)]
        own = [each for each in found if each.head.ref == branch]
        return min(own, key=lambda each: each.number).view() if own else None

    async def create_pull(self, repository: str, order: PullOrder) -> PullView:
        """Open a pull request; if one is open from that branch already, return that one."""
        body = {
            "title": order.title,
            "body": order.body,
            "head": order.head,
            "base": order.base,
            "draft": order.draft,
        }
        try:
            data = await self._calls.send("POST", repository, "/pulls", body)
        except Invalid as error:
            existing = None
            if error.code == "PullRequestExists":
                existing = await self.open_pull(repository, order.head)
            if existing is None:
                raise
            return existing
        return parsed(data, Pull).view()

    async def update_pull(self, repository: str, number: int, *, title: str, body: str) -> PullView:
        """Change the texts of a pull request."""
        data = await self._calls.send(
            "PATCH",
            repository,
            "/pulls/{number}",
            {"title": title, "body": body},
            repeat=True,
            number=number,
        )
        return parsed(data, Pull).view()

    async def comments(self, repository: str, number: int, marker: str) -> Sequence[CommentView]:
        """Return our own comments that contain the marker, lowest id first."""
        own = await self._calls.credentials.login()
        found: list[CommentView] = []
        path = "/issues/{number}/comments{?per_page}"
        async for page in self._calls.pages(repository, path, number=number, per_page=100):
            views = [each.view() for each in parsed(page, list[Comment])]
            found += [each for each in views if each.author == own and marker in each.body]
        return sorted(found, key=lambda each: each.id)

    async def create_comment(self, repository: str, number: int, body: str) -> CommentView:
        """Post a comment."""
        data = await self._calls.send(
            "POST", repository, "/issues/{number}/comments", {"body": body}, number=number
        )
        return parsed(data, Comment).view()

    async def update_comment(self, repository: str, comment_id: int, body: str) -> CommentView:
        """Change the text of a comment; `NotFound` if somebody deleted it."""
        data = await self._calls.send(
            "PATCH",
            repository,
            "/issues/comments/{comment}",
            {"body": body},
            repeat=True,
            comment=comment_id,
        )
        return parsed(data, Comment).view()

    async def delete_comment(self, repository: str, comment_id: int) -> None:
        """Delete a comment; one that is gone already is no error."""
        try:
            await self._calls.send(
                "DELETE",
                repository,
                "/issues/comments/{comment}",
                repeat=True,
                comment=comment_id,
            )
        except NotFound:
            return
