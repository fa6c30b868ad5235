"""Calls about one repository, each with the right credential.

A credential that GitHub does not know any more is replaced once: a 401 means that nothing was
done, so that asking again is safe for every call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from issuesandbox.adapters.github.credentials import Credentials
from issuesandbox.adapters.github.graphql import Told, refusal
from issuesandbox.adapters.github.models import parsed
from issuesandbox.adapters.github.requests import Answer, Caller, GitHubRequests, Variables
from issuesandbox.ports.errors import Denied


class RepositoryCalls:
    """Requests below `/repos/{owner}/{name}`."""

    def __init__(self, requests: GitHubRequests, credentials: Credentials) -> None:
        self.requests = requests
        self.credentials = credentials

    async def get(self, repository: str, path: str, **variables: str | int) -> Any:
        """Read one thing."""
        return (await self._page(repository, path, variables)).data

    async def pages(self, repository: str, path: str, **variables: str | int) -> AsyncIterator[Any]:
        """Read a list to its end, page by page."""
        answer = await self._page(repository, path, variables)
        while True:
            yield answer.data
            following = answer.following
            if following is None:
                return

            async def turned(caller: Caller, address: str = following) -> Answer:
                return await self.requests.following(caller, address)

            answer = await self._authorised(repository, turned)

    async def send(
        self,
        method: str,
        repository: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeat: bool = False,
        **variables: str | int,
    ) -> Any:
        """Change something; `repeat` says that sending it twice does no harm."""
        full, filled = _in_repository(repository, path, variables)

        async def sent(caller: Caller) -> Answer:
            return await self.requests.send(method, caller, full, filled, body=body, repeat=repeat)

        return (await self._authorised(repository, sent)).data

    async def query(self, repository: str, text: str, variables: Mapping[str, Any]) -> Any:
        """Ask what only GraphQL answers; the answer is that of the query alone."""
        body = {"query": text, "variables": variables}

        async def asked(caller: Caller) -> Answer:
            # Beside the API of github.com, and one step above that of an Enterprise server.
            return await self.requests.send("POST", caller, "../graphql", body=body, repeat=True)

        told = parsed((await self._authorised(repository, asked)).data, Told)
        if told.errors:
            raise refusal(told.errors[0])
        return told.data

    async def _page(self, repository: str, path: str, variables: Variables) -> Answer:
        full, filled = _in_repository(repository, path, variables)

        async def got(caller: Caller) -> Answer:
            return await self.requests.get(caller, full, filled)

        return await self._authorised(repository, got)

    async def _authorised(
        self, repository: str, call: Callable[[Caller], Awaitable[Answer]]
    ) -> Answer:
        caller = await self.credentials.caller(repository)
        try:
            return await call(caller)
        except Denied as error:
            if error.code != "Unauthorized" or not self.credentials.rejected(caller):
                raise
        return await call(await self.credentials.caller(repository))


def _in_repository(repository: str, path: str, variables: Variables) -> tuple[str, Variables]:
    owner, _, name = repository.partition("/")
    return f"repos/{{owner}}/{{name}}{path}", {**variables, "owner": owner, "name": name}
