"""A replica that does nothing but contest leases, as a process of its own that can be killed.

Prints a line for each change, so that a test can wait for it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from datetime import timedelta

from issuesandbox.adapters.kube.connection import load_connection
from issuesandbox.adapters.kube.leases import KubeLeases
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.clock import SystemClock
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.roles import Role


async def main(identity: str, namespace: str, shards: int, factor: float) -> None:
    """Run one replica until SIGTERM."""
    timings = Timings(
        lease_duration=timedelta(seconds=15) * factor,
        lease_hold=timedelta(seconds=10) * factor,
        lease_retry=timedelta(seconds=2) * factor,
    )
    connection = load_connection()
    requests = KubeRequests(connection.server, connection.session(limit=20), 10)
    leases = KubeLeases(requests, namespace, "election")
    role = Role(shards, identity, leases, timings, SystemClock())
    print("contesting", flush=True)
    task = asyncio.create_task(role.run(lambda held: print("won" if held else "lost", flush=True)))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await asyncio.wait([task])
    await requests.close()
    if not task.cancelled():
        task.result()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
