"""The health probe: can a sandbox that Daytona calls running run a command at all?

Asked before a run uses a sandbox, for a few seconds only. What a miss means is not decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from issuesandbox.domain import numbers
from issuesandbox.engine.runs.beside import ahead
from issuesandbox.engine.runs.outside import Outside
from issuesandbox.ports.errors import Unavailable

# The code of a failure that is a missed probe.
MUTE = "Unresponsive"
# With these Daytona says itself that the sandbox does not run: a look at it tells more.
_ELSEWHERE = frozenset({"NotRunning", "NotReachable"})


@dataclass(frozen=True, slots=True)
class Health:
    """What a sandbox that answers told."""

    home: str
    has_git: bool


async def probe(
    sandbox_id: str, outside: Outside, at_home: Callable[[str], None] = lambda _: None
) -> Health:
    """Run a trivial command; `Unavailable` with the code `MUTE` if nobody answers in time.

    A sandbox that was started just now may need a moment, so it is asked until the time is up.
    `at_home` gets to know the home directory as soon as it is known.
    """
    limit = outside.timings.probe_timeout.total_seconds()
    pause = min(limit / 5, outside.timings.settle_check.total_seconds())
    last: Unavailable | None = None
    try:
        async with asyncio.timeout(limit):
            while True:
                try:
                    health = await _ask(sandbox_id, outside, limit, at_home)
                    outside.books.tally.count(numbers.PROBES, "healthy")
                    return health
                except Unavailable as error:
                    if error.code in _ELSEWHERE:
                        raise
                    last = error
                await asyncio.sleep(pause)
    except TimeoutError:
        outside.books.tally.count(numbers.PROBES, "unhealthy")
        text = f"the sandbox did not answer within {limit:g} s"
        raise Unavailable(f"{text}: {last}" if last else text, code=MUTE) from None


async def unprobed(sandbox_id: str, outside: Outside, at_home: Callable[[str], None]) -> Health:
    """Take for granted that the sandbox works, as before there were probes."""
    limit = outside.timings.toolbox_timeout.total_seconds()
    return await _ask(sandbox_id, outside, limit, at_home)


async def _ask(
    sandbox_id: str, outside: Outside, limit: float, at_home: Callable[[str], None]
) -> Health:
    tools = "command -v git >/dev/null && command -v sh >/dev/null"
    async with ahead(outside.toolbox.execute(sandbox_id, tools, seconds=limit)) as done:
        home = await outside.toolbox.home(sandbox_id)
        at_home(home)
        return Health(home, (await done).exit_code == 0)
