"""An inbox at a simulated GitHub, with people of every kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from inbox_stage import Inbox
from tests.fakes.github_stage import Stage, github_stage

from issuesandbox.local.github.tokens import new_private_key


@pytest.fixture(scope="session")
def inbox_key() -> str:
    return new_private_key()


@pytest.fixture
async def stage(inbox_key: str) -> AsyncIterator[Stage]:
    async with github_stage(inbox_key) as made:
        for login, permission, association in (
            ("owner", "admin", "OWNER"),
            ("member", "write", "MEMBER"),
            ("helper", "triage", "CONTRIBUTOR"),
            ("stranger", "read", "NONE"),
        ):
            person = {"permission": permission, "association": association}
            await made.admin("PUT", f"/users/{login}", person)
        yield made


@pytest.fixture
async def opened(stage: Stage) -> AsyncIterator[Callable[[str], Awaitable[Inbox]]]:
    """Open an inbox with a policy."""
    async with AsyncExitStack() as stack:

        async def make(policy: str = "") -> Inbox:
            github = stage.connect()
            stack.push_async_callback(github.close)
            inbox = Inbox(stage, github, policy)
            await inbox.open(stack)
            return inbox

        yield make


@pytest.fixture
async def inbox(opened: Callable[[str], Awaitable[Inbox]]) -> Inbox:
    return await opened("")
