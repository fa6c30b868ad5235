"""What holds for every test: it leaves no task and no process behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator

import psutil
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

# How fast an example is says how busy the machine is, not whether it is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Every process that a test starts inherits it, and so does what that one leaves to its own fate.
MARKER = "ISSUESANDBOX_TESTS"
os.environ[MARKER] = str(os.getpid())

# A shell lets what it starts in the background ignore Ctrl-C, and so would all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest_asyncio.fixture(autouse=True)
async def no_leaked_task(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Fail a test that leaves a task running on its loop."""
    before = asyncio.all_tasks()
    yield
    leaked = {task for task in asyncio.all_tasks() - before if not task.done()}
    leaked.discard(asyncio.current_task())  # type: ignore[arg-type]
    assert not leaked, f"tasks left running: {leaked}"


@pytest.fixture(scope="module", autouse=True)
def no_leaked_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a module that leaves a process behind; session fixtures may keep theirs."""
    before = {each.pid for each in _started_here()}
    yield
    kept = request.config.stash.get(KEPT_PROCESSES, set())
    left = [each for each in _started_here() if each.pid not in before | kept]
    _, alive = psutil.wait_procs(left, timeout=5)
    shown = [_command(each) for each in alive]
    for each in alive:
        each.kill()  # it must not disturb the modules that come after
    assert not shown, f"processes left running: {shown}"


def _started_here() -> set[psutil.Process]:
    """Return our children, and whom they left behind."""
    orphans = {each for each in psutil.process_iter() if _is_marked(each)}
    return orphans | set(psutil.Process().children())


def _is_marked(process: psutil.Process) -> bool:
    try:
        return process.environ().get(MARKER) == os.environ[MARKER]
    except (psutil.Error, OSError):
        return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return f"process {process.pid}"


KEPT_PROCESSES = pytest.StashKey[set[int]]()
