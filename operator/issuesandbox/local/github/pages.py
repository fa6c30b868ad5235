"""What a person sees who follows a link: issues and pull requests as plain text.

For whoever runs the simulator, like the admin API: it asks for no token and leaves no trace in the
journal. Programs read the REST answers instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from issuesandbox.local.github.model import Issue, Pull, Repository
from issuesandbox.local.github.world import World

_RULE = "-" * 72


def add_pages(app: web.Application, world: World) -> None:
    """Serve the addresses that answers call `html_url`."""

    async def page(request: web.Request) -> web.Response:
        wanted = request.match_info
        repository = world.store.repository(wanted["owner"], wanted["repo"])
        issue = world.store.issue(repository, int(wanted["number"])) if repository else None
        if repository is None or issue is None or issue.deleted:
            return web.Response(status=404, text="Not Found\n")
        lines = [line async for line in _lines(world, repository, issue)]
        return web.Response(text="\n".join(lines) + "\n")

    for kind in ("issues", "pull"):
        app.router.add_get(f"/{{owner}}/{{repo}}/{kind}/{{number:[0-9]+}}", page)


async def _lines(world: World, repository: Repository, issue: Issue) -> AsyncIterator[str]:
    pull = world.store.pulls.get(issue.pull_id) if issue.pull_id else None
    name = world.store.full_name(repository)
    state = "merged" if pull and pull.merged_at else issue.state
    yield f"{name}#{issue.number} {issue.title} ({state})"
    yield _RULE
    yield issue.body or "No description."
    for line in _comments(world, issue):
        yield line
    if pull is not None:
        yield _RULE
        yield f"{pull.head} into {pull.base}"
        yield await _difference(world, pull)


def _comments(world: World, issue: Issue) -> Iterator[str]:
    for comment in world.store.comments.group(issue.id):
        yield _RULE
        author = world.store.accounts[comment.author_id].login
        yield f"{author}, {comment.created_at:%Y-%m-%d %H:%M:%S} UTC:"
        yield comment.body


async def _difference(world: World, pull: Pull) -> str:
    between = f"{pull.base_sha}...{pull.head_sha}"
    return await world.git.run(pull.repository_id, "diff", between)
