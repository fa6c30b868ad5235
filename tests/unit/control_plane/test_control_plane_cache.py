"""Two processes that want the same binaries, and one that is killed while it makes them."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
from made_up_machine import Machine

PROGRAM = """
import asyncio, json, sys
from issuesandbox.local.control_plane.resolve import Resolver
asyncio.run(Resolver(json.loads(sys.argv[1])).binaries())
"""


async def test_a_second_process_waits_and_says_so_instead_of_building_again(
    machine: Machine,
) -> None:
    machine.go(before="/bin/sleep 0.3")
    both = await asyncio.gather(machine.resolver().binaries(), machine.resolver().binaries())
    assert {found.source for found in both} == {"a build with go1.26.9", "the cache"}
    assert machine.builds == ["kube-apiserver", "etcd", "kubectl"]
    assert machine.output.getvalue().count("waiting for process") == 1


def test_a_killed_build_leaves_no_process_and_nothing_half(machine: Machine) -> None:
    started = machine.root / "started"
    machine.go(before=f"printf half > $2; /bin/sleep 1000 & echo $! > {started}; wait")
    builder = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(machine.environment)])
    _until(lambda: started.exists() and started.read_text().strip() != "")
    sleeper = int(started.read_text())
    builder.send_signal(signal.SIGKILL)
    builder.wait()
    _until(lambda: not psutil.pid_exists(sleeper))

    resolver = machine.resolver()
    assert resolver.present() is None
    machine.go()
    asyncio.run(resolver.binaries())
    left = sorted(path.name for path in resolver.cache.root.iterdir())
    assert left == sorted(["lock", resolver.cache.folder.name])


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
