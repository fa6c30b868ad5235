"""The operator as it is, with a probe in each of its event loops.

A probe sleeps five milliseconds at a time; what it oversleeps, its loop was kept from running.
Each delay becomes a line `moment delay own_cpu` in the file BENCH_DELAYS: the CPU time of the
loop's own thread in that time tells code that blocks from a machine that is busy. SIGUSR1 switches
the probes off and on again, because they cost CPU themselves. With BENCH_PROFILE every loop's
thread runs under cProfile and leaves its figures beside that path.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import signal
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import kopf
import uvloop

from issuesandbox.entry import cli

_SLEEP = 0.005
_WORTH_A_LINE = 0.005


class Probe:
    """Measures how long one event loop is kept from running."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._lines = os.open(os.environ["BENCH_DELAYS"], os.O_WRONLY | os.O_APPEND)
        self._task: asyncio.Task[None] | None = None

    def switch(self, on: bool) -> None:
        """Start or stop measuring; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._switch, on)

    def _switch(self, on: bool) -> None:
        if on and self._task is None:
            self._task = self._loop.create_task(self._measure())
        elif not on and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _measure(self) -> None:
        while True:
            began, cpu = time.monotonic(), time.thread_time()
            await asyncio.sleep(_SLEEP)
            delay = time.monotonic() - began - _SLEEP
            if delay > _WORTH_A_LINE:
                used = time.thread_time() - cpu
                line = f"{self._name} {began:.4f} {delay:.4f} {used:.4f}\n"
                os.write(self._lines, line.encode())


class Probes:
    """The probes of all loops, switched together."""

    def __init__(self) -> None:
        self._probes: list[Probe] = []
        self._on = True

    async def around(self, name: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Do the work with a probe beside it."""
        probe = Probe(name)
        self._probes.append(probe)
        probe.switch(self._on)
        with _profiled(name):
            return await work

    def toggle(self, *_: object) -> None:
        """Switch all probes the other way."""
        self._on = not self._on
        for probe in self._probes:
            probe.switch(self._on)


@contextmanager
def _profiled(name: str) -> Iterator[None]:
    path = os.environ.get("BENCH_PROFILE")
    if not path:
        yield
        return
    profile = cProfile.Profile(time.thread_time)
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        profile.dump_stats(f"{path}.{name}")


def main() -> None:
    """Put the probes in and run the operator's own command line."""
    probes = Probes()
    run, informer = uvloop.run, kopf.operator

    def probed_run(work: Coroutine[Any, Any, Any], **options: Any) -> Any:
        return run(probes.around("engine", work), **options)

    async def probed_informer(*args: Any, **options: Any) -> Any:
        # On the engine's own thread there is a probe already.
        work = informer(*args, **options)
        if threading.current_thread() is threading.main_thread():
            return await work
        return await probes.around("informer", work)

    setattr(uvloop, "run", probed_run)  # noqa: B010 - not for the type checker
    setattr(kopf, "operator", probed_informer)  # noqa: B010
    signal.signal(signal.SIGUSR1, probes.toggle)
    cli.main()


if __name__ == "__main__":
    main()
