"""Programs of the product that begin with their code loaded.

Importing it takes an operator more than a second of CPU, and the tests start hundreds. So one
process imports it once and is forked for each. All that comes after the imports is what the shipped
command does; test_operator_process starts that one itself.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from kubernetes.config import kube_config

from issuesandbox.local.processes import Child
from issuesandbox.local.tied_exec import PR_SET_PDEATHSIG

_LOADED = (
    "issuesandbox.entry.run",
    "issuesandbox.entry.webhook.command",
    "issuesandbox.entry.plugin.listing",
    "kubernetes.client",
)
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(_LOADED))
_MODULES = {"issuesandbox": "issuesandbox.entry.cli", "kubectl-isb": "issuesandbox.entry.plugin"}


class Forked:
    """As much of `subprocess.Popen` as a child needs."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def born(*command: str, out: Path, err: Path | None = None, env: Mapping[str, str]) -> Child:
    """Start a program of ours with this environment; what it says is appended to files."""
    process = _CONTEXT.Process(target=_live, args=(command, out, err, dict(env)), daemon=True)
    process.start()
    return Child(command[-1], out, Forked(process))


def _live(command: tuple[str, ...], out: Path, err: Path | None, env: dict[str, str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for path, stream in ((out, sys.stdout), (err or out, sys.stderr)):
        with path.open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
    os.environ.clear()
    os.environ.update(env)
    # Read from the environment when the module is loaded.
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = env.get("KUBECONFIG", "~/.kube/config")
    sys.argv = list(command)
    import_module(_MODULES[command[0]]).main()
