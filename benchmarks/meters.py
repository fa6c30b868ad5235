"""What is read from outside while something runs: CPU, memory, requests, the rest of the machine.

Nothing here asks the measured process itself.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} ([0-9.e+]+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, all threads, to the nanosecond."""
    # How the kernel encodes "the CPU clock of process pid" in a clock id.
    return time.clock_gettime(((~pid) << 3) | 2)


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a process in MiB, now and at its peak."""

    now: float
    peak: float


def memory(pid: int) -> Memory:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return Memory(int(sizes["VmRSS"]) / 1024, int(sizes["VmHWM"]) / 1024)


def requests_in(metrics: str) -> Counter[str]:
    """Return the API server's count of requests by `VERB resource/subresource`."""
    found: Counter[str] = Counter()
    for labels, value in _SAMPLE.findall(metrics):
        label = dict(_LABEL.findall(labels))
        below = f"/{label['subresource']}" if label.get("subresource") else ""
        found[f"{label['verb']} {label['resource']}{below}"] += int(float(value))
    return found


class OtherLoad:
    """How much of the machine others used, in cores, since it was made."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy = _busy()
        self._own = _own()

    def cores(self) -> float:
        """Return the average number of cores that processes other than ours kept busy."""
        seconds = time.monotonic() - self._began
        others = (_busy() - self._busy) - (_own() - self._own)
        return max(0.0, others / seconds)


def _busy() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def _own() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = ended.ru_utime + ended.ru_stime
    me = psutil.Process(os.getpid())
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several rounds, and how far they lay apart."""

    median: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of the values of all rounds."""
        return cls(statistics.median(values), min(values), max(values), len(values))


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which so many percent of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
