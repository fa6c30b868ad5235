"""Who we are on GitHub, and what others may do there; asked once and remembered for a while."""

from __future__ import annotations

from issuesandbox.clock import Clock
from issuesandbox.domain.webhook.issue import Person
from issuesandbox.domain.webhook.judge import is_permitted
from issuesandbox.domain.webhook.policy import Rules
from issuesandbox.ports.github import Forge, Permission

_REMEMBERED = 60.0
_MOST = 10_000
# Who may not give commands is told so this often an hour: more would spend GitHub's allowance.
_PATIENCE = 5
_HOUR = 3600.0


class People:
    """Answers questions about people from the event, from memory or from GitHub."""

    def __init__(self, forge: Forge, clock: Clock) -> None:
        self._forge = forge
        self._clock = clock
        self.known_login = ""
        """Our own login, once GitHub told it."""
        self._permissions: dict[tuple[str, str], tuple[float, Permission]] = {}
        self._refusals: dict[tuple[str, str], list[float]] = {}

    def forget(self) -> None:
        """Ask anew who we are: we may act as somebody else now."""
        self.known_login = ""

    async def own_login(self) -> str:
        """Return the login whose doings are never listened to."""
        if not self.known_login:
            self.known_login = await self._forge.own_login()
        return self.known_login

    def reached(self, repository: str, installation: int) -> None:
        """Hear through which installation of ours a repository is reached."""
        self._forge.installed(repository, installation)

    async def may_start(self, person: Person, rules: Rules, repository: str) -> bool:
        """Tell whether somebody may start runs."""
        told = is_permitted(person, rules)
        if told is not None:
            return told
        wanted = Permission(rules.minimum_permission or Permission.WRITE)
        return (await self._permission(repository, person.login)).at_least(wanted)

    def may_be_told(self, person: Person, repository: str) -> bool:
        """Tell whether somebody without permission is answered once more."""
        key, now = (repository.lower(), person.login.lower()), self._clock.monotonic()
        if len(self._refusals) >= _MOST:
            self._refusals.clear()
        recent = [each for each in self._refusals.get(key, ()) if now - each < _HOUR]
        self._refusals[key] = [*recent, now][-_PATIENCE:]
        return len(recent) < _PATIENCE

    async def _permission(self, repository: str, login: str) -> Permission:
        key, now = (repository.lower(), login.lower()), self._clock.monotonic()
        known = self._permissions.get(key)
        if known is not None and now - known[0] < _REMEMBERED:
            return known[1]
        found = await self._forge.permission(repository, login)
        if len(self._permissions) >= _MOST:
            self._permissions.clear()
        self._permissions[key] = (now, found)
        return found
