"""What of a preparation begins while its run is still being written down.

GitHub and the sandbox are asked, and the repository is cloned into a folder of its own. Nobody is
disturbed by that, so it may be given up at any time. Must not touch what a run or an agent uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from issuesandbox.domain.redaction import Redactor
from issuesandbox.engine.runs.agents import hidden_values
from issuesandbox.engine.runs.assignment import Assignment
from issuesandbox.engine.runs.beside import unattended
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.engine.runs.probing import Health, probe, unprobed
from issuesandbox.engine.runs.scouting import Scouted, Scouts
from issuesandbox.engine.runs.sources import Hopeless, Source
from issuesandbox.ports.errors import CallError, Conflict, Denied, Invalid, NotFound
from issuesandbox.ports.toolbox import Clone

T = TypeVar("T")
_REFUSALS: Mapping[type[CallError], tuple[str, str]] = {
    NotFound: ("RepositoryNotFound", "Nothing to clone"),
    Denied: ("RepositoryDenied", "The clone was refused"),
}


class Approach:
    """Begins with its making; what failed is raised where it is asked for."""

    def __init__(self, assignment: Assignment, outside: Outside, scouts: Scouts) -> None:
        self._outside = outside
        self._sandbox_id = assignment.sandbox_id
        fresh_for = outside.timings.settle_check.total_seconds()
        self._until = outside.clock.monotonic() + fresh_for
        self._home: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        ask = probe if assignment.flags.health_probe else unprobed
        self._tasks: list[asyncio.Task[Any]] = []
        self.scouted: asyncio.Task[Scouted] = self._begin(scouts.report(assignment))
        self.health: asyncio.Task[Health] = self._begin(
            ask(assignment.sandbox_id, outside, self._at_home)
        )
        self.cloned: asyncio.Task[str] = self._begin(self._clone(assignment))
        """The folder of the clone."""

    def is_fresh(self, sandbox_id: str) -> bool:
        """Tell whether this is about the sandbox that is meant, and has just begun."""
        is_now = self._outside.clock.monotonic() < self._until
        return self._sandbox_id == sandbox_id and is_now

    def give_up(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Wait until nothing is under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = unattended(work)
        self._tasks.append(task)
        return task

    def _at_home(self, home: str) -> None:
        if not self._home.done():
            self._home.set_result(home)

    async def _clone(self, assignment: Assignment) -> str:
        """Clone as soon as it is known what and where to; the rest of the health can wait."""
        source = (await self.scouted).source
        await asyncio.wait((self._home, self.health), return_when=asyncio.FIRST_COMPLETED)
        home = self._home.result() if self._home.done() else (await self.health).home
        return await _cloned(assignment, self._outside, home, source)


async def _cloned(assignment: Assignment, outside: Outside, home: str, source: Source) -> str:
    fresh = f"{home}/work.{uuid4().hex[:8]}"
    credential = source.credential
    order = Clone(
        url=source.url,
        path=fresh,
        branch=source.checkout,
        commit=source.commit,
        username=credential.username if credential is not None else None,
        password=credential.value if credential is not None else None,
    )
    outside.check_charge(assignment)
    seconds = outside.timings.clone_timeout.total_seconds()
    try:
        await outside.toolbox.clone(assignment.sandbox_id, order, seconds=seconds)
    except (NotFound, Denied, Invalid, Conflict) as error:
        reason, words = _REFUSALS.get(type(error), ("CloneFailed", "The clone failed"))
        # What git says there, it may have been told by the repository or by the sandbox.
        hide = Redactor(*await hidden_values(assignment, outside))
        hide = hide.with_secrets((credential.value,)) if credential is not None else hide
        said = f"{words}: {hide.redact(str(error))}"
        if source.keyless is None:
            raise Hopeless(reason, said) from None
        reason = "ReadTokenMissing" if isinstance(error, Denied) else reason
        raise Hopeless(reason, f"{said}. {source.keyless}") from None
    return fresh
