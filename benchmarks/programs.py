"""The programs under test as processes of their own, measured from outside."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from issuesandbox.local.control_plane.access import Access, write_kubeconfig
from issuesandbox.local.control_plane.ports import LOOPBACK, free_ports
from issuesandbox.local.daytona.config import DEFAULT_KEY
from issuesandbox.local.processes import Child, Leash, spawn
from issuesandbox.local.world.layout import NAMESPACE, SERVICE_ACCOUNT
from meters import Memory, cpu_seconds, memory

HERE = Path(__file__).parent
# What would hold a benchmark back on purpose is lifted; everything else is as shipped.
_PLENTY = "1000000"
LIFTED = {
    "ISSUESANDBOX_MAX_SANDBOXES": _PLENTY,
    "ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY": _PLENTY,
    "ISSUESANDBOX_MAX_NEW_RUNS_PER_MINUTE": _PLENTY,
}


@dataclass(frozen=True)
class Program:
    """One running program."""

    child: Child
    started_at: float
    url: str
    delays: Path

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self.child.pid

    def cpu(self) -> float:
        """Return the CPU seconds it has used so far."""
        return cpu_seconds(self.pid)

    def memory(self) -> Memory:
        """Return its memory."""
        return memory(self.pid)

    def toggle_probes(self) -> None:
        """Switch its probes off, or on again."""
        os.kill(self.pid, signal.SIGUSR1)

    def delays_between(self, begin: float, end: float) -> list[tuple[float, float]]:
        """Return for how long its loops were kept from running, and by how much of own CPU."""
        rows = (line.split() for line in self.delays.read_text().splitlines())
        return [(float(late), float(own)) for _, at, late, own in rows if begin <= float(at) <= end]


class Programs:
    """Starts programs that watch one cluster."""

    def __init__(self, access: Access, leash: Leash, folder: Path) -> None:
        self._access = access
        self._leash = leash
        self._folder = folder
        self._count = 0
        self._kubeconfig = access.service_account_kubeconfig(NAMESPACE, SERVICE_ACCOUNT, folder)

    def operator(self, namespace: str, daytona: str, *, home: str = "", **settings: str) -> Program:
        """Start the operator for one namespace, under the rights it is shipped with.

        With a home of its own it has its own Leases and can run beside another one; what it is
        shipped with holds only in the usual place, so there it has all rights.
        """
        (port,) = free_ports(1)
        environment = {
            "KUBECONFIG": str(self._kubeconfig_of(home)),
            "DAYTONA_API_KEY": DEFAULT_KEY,
            "DAYTONA_API_URL": f"{daytona}/api",
            "ISSUESANDBOX_INSTALLATION": namespace,
            "ISSUESANDBOX_WATCH_NAMESPACES": namespace,
            "ISSUESANDBOX_HTTP_HOST": LOOPBACK,
            "ISSUESANDBOX_HTTP_PORT": str(port),
            **LIFTED,
            **settings,
        }
        return self._start("operator", ["probed_operator.py", "run"], environment, port)

    def _kubeconfig_of(self, home: str) -> Path:
        if not home:
            return self._kubeconfig
        path = self._folder / f"{home}.kubeconfig"
        write_kubeconfig(path, self._access.server, self._access.ca, self._access.token, home)
        return path

    def baseline(self, namespace: str, daytona: str, *, announce: bool) -> Program:
        """Start the baseline for one namespace, under the same rights."""
        user = yaml.safe_load(self._kubeconfig.read_text())["users"][0]["user"]
        environment = {
            "BENCH_NAMESPACE": namespace,
            "BENCH_API_SERVER": self._access.server,
            "BENCH_CA": str(self._access.ca),
            "BENCH_TOKEN": user["token"],
            "BENCH_DAYTONA": daytona,
            "BENCH_ANNOUNCE": "1" if announce else "",
        }
        return self._start("baseline", ["baseline.py"], environment)

    def stub(self) -> Program:
        """Start the Daytona stub."""
        (port,) = free_ports(1)
        return self._start("stub", ["daytona_stub.py", str(port)], {}, port)

    def simulator(self) -> Program:
        """Start the Daytona simulator, its admin API included."""
        (port,) = free_ports(1)
        command = ["-m", "issuesandbox", "local", "daytona", "--port", str(port)]
        # Sandboxes find their programs where everybody does.
        return self._start("simulator", command, {"PATH": os.environ["PATH"]}, port)

    def github(self, token: str) -> Program:
        """Start the GitHub simulator, its admin API included, with a token for everything."""
        (port,) = free_ports(1)
        command = ["-m", "issuesandbox", "local", "github", "--port", str(port), "--token", token]
        return self._start("github", command, {"PATH": os.environ["PATH"]}, port)

    def _start(
        self, name: str, arguments: list[str], environment: Mapping[str, str], port: int = 0
    ) -> Program:
        self._count += 1
        if arguments[0].endswith(".py"):
            arguments = [str(HERE / arguments[0]), *arguments[1:]]
        log = self._folder / f"{name}-{self._count}.log"
        delays = self._folder / f"{name}-{self._count}.delays"
        delays.touch()
        started_at = time.monotonic()
        child = spawn(
            name,
            [sys.executable, "-P", *arguments],
            leash=self._leash,
            log=log,
            env={
                "PATH": str(Path(sys.executable).parent),
                "BENCH_DELAYS": str(delays),
                **_passed_on(),
                **environment,
            },
        )
        return Program(child, started_at, f"http://{LOOPBACK}:{port}", delays)


def _passed_on() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name == "BENCH_PROFILE"}


def log_tail(program: Program) -> str:
    """Return the end of a program's log, for error messages."""
    return json.dumps(program.child.last_lines(5), indent=1)
