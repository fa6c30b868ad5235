"""Waits for the end of a world and kills what is left of it, run as a script by `Leash`.

A process of its own, in its own session, because it must outlive a parent that is killed in any
way. It knows a marker, a state folder and an open pipe; nothing of what the world is made of.
"""

import signal
import sys
import time
from pathlib import Path

import psutil

DEADLINE_SECONDS = 20.0
PAUSE_SECONDS = 0.1


def belongs(process: psutil.Process, marker: str, state: Path, since: float) -> bool:
    """Say whether a process is part of the world.

    The marker in its environment decides. A program may clear its environment, so one that works
    inside the state folder counts too, unless it is older than the world, carries the marker of
    another one, or hangs on a terminal: then it is a person's shell.
    """
    name, _, value = marker.partition("=")
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        found = process.environ().get(name)
        if found is not None:
            return found == value
        # Not before: the world waits for the watcher, and the kernel counts in ticks.
        if process.create_time() <= since or process.terminal() is not None:
            return False
        return Path(process.cwd()).is_relative_to(state)
    except (psutil.Error, OSError):
        return False


def sweep(marker: str, state: Path) -> bool:
    """Kill every process of the world; true when two looks in a row found none."""
    me = psutil.Process()
    since, deadline, clean_looks = me.create_time(), time.monotonic() + DEADLINE_SECONDS, 0
    while clean_looks < 2:
        if time.monotonic() > deadline:
            return False
        found = [
            process
            for process in psutil.process_iter()
            if process.pid != me.pid and belongs(process, marker, state, since)
        ]
        for process in found:
            try:
                process.kill()
            except psutil.Error:
                continue
        clean_looks = 0 if found else clean_looks + 1
        time.sleep(PAUSE_SECONDS)
    return True


def main() -> None:
    """Block until the other end of standard input is gone, then sweep."""
    marker, state = sys.argv[1], Path(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    sys.exit(0 if sweep(marker, state) else 1)


if __name__ == "__main__":
    main()
