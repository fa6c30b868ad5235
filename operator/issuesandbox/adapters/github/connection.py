"""The way to one GitHub: a session, an identity, and the two faces that others use."""

from __future__ import annotations

from typing import Final

from issuesandbox.adapters.github.app import AppCredentials, AppKey
from issuesandbox.adapters.github.calls import RepositoryCalls
from issuesandbox.adapters.github.client import GitHubClient
from issuesandbox.adapters.github.credentials import Credentials, PersonalToken, PlainToken
from issuesandbox.adapters.github.forge import GitHubForge
from issuesandbox.adapters.github.requests import GitHubRequests, open_session
from issuesandbox.clock import Clock

PUBLIC_GITHUB: Final = "https://api.github.com"


class GitHubConnection:
    """Owns the session; make it inside a running event loop and close it in the end."""

    def __init__(
        self, url: str, identity: AppKey | PlainToken, clock: Clock, *, timeout: float = 10.0
    ) -> None:
        """Connect to `GITHUB_API_URL` as an App, or with a token."""
        self._session = open_session()
        self._clock = clock
        self._requests = GitHubRequests(url, self._session, clock, timeout)
        self._calls = RepositoryCalls(self._requests, self._credentials(identity))
        self.client = GitHubClient(self._calls)
        self.forge = GitHubForge(self._calls)

    def act_as(self, identity: AppKey | PlainToken) -> None:
        """Make every further call as somebody else, or with another key."""
        self._calls.credentials = self._credentials(identity)

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _credentials(self, identity: AppKey | PlainToken) -> Credentials:
        if isinstance(identity, AppKey):
            return AppCredentials(identity, self._requests, self._clock)
        return PersonalToken(identity, self._requests)
