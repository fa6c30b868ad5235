"""Who judges: every end-to-end test that has a simulator ends before the checker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.checker.guard import Guard, guarded
from issuesandbox.local.daytona.server import Simulator
from issuesandbox.local.github.server import GitHubSimulator


class Court:
    """Knows the simulators that ran in one test, and those that were judged."""

    def __init__(self) -> None:
        self._ran: set[str] = set()
        self._judged: set[str | None] = set()

    @asynccontextmanager
    async def judged(self, sources: Sources, kubeconfig: Path) -> AsyncIterator[Guard]:
        """Let the checker watch a world, and judge it at the end of the block."""
        self._judged |= {sources.daytona_admin, sources.github} - {None}
        async with guarded(sources, kubeconfig) as guard:
            yield guard

    @contextmanager
    def in_session(self) -> Iterator[None]:
        """See every simulator that this process starts; at the end none may be unjudged."""
        start, enter = Simulator.start, GitHubSimulator.__aenter__

        async def seen(simulator: Simulator) -> None:
            await start(simulator)
            self._ran.add(simulator.admin_url)

        async def entered(simulator: GitHubSimulator) -> GitHubSimulator:
            await enter(simulator)
            self._ran.add(simulator.url)
            return simulator

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Simulator, "start", seen)
            patch.setattr(GitHubSimulator, "__aenter__", entered)
            yield
        escaped = self._ran - self._judged
        assert not escaped, (
            f"the checker did not judge {', '.join(sorted(escaped))}: wrap the test's world in "
            "`court.judged(...)`, or use the `stage` fixture"
        )
