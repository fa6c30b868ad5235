"""The programs of a control plane, their versions and the pinned module they are built from.

How they come to be on this machine is the resolver's business.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from issuesandbox.local.control_plane.errors import ControlPlaneError

APISERVER = "kube-apiserver"
ETCD = "etcd"
KUBECTL = "kubectl"
CONTROLLER_MANAGER = "kube-controller-manager"

MODULE = Path(__file__).parent / "gomod"

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Binaries:
    """A kube-apiserver with its etcd and a kubectl that fits it."""

    apiserver: Path
    etcd: Path
    kubectl: Path
    source: str


class Version(NamedTuple):
    """A Kubernetes version."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """Return the first version in a text such as `Kubernetes v1.36.3`."""
        found = re.search(r"\bv(\d+)\.(\d+)\.(\d+)", text)
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}"

    def fits(self, server: Version) -> bool:
        """Say whether a client of this version may talk to the server: one minor apart at most."""
        return self.major == server.major and abs(self.minor - server.minor) <= 1


@cache
def pinned_version() -> Version:
    """Return the Kubernetes version that our own module requires."""
    line = re.search(r"k8s\.io/kubernetes v\S+", (MODULE / "go.mod").read_text())
    version = Version.parse(line.group()) if line else None
    assert version is not None, "go.mod requires k8s.io/kubernetes"
    return version


def server_version(apiserver: Path) -> Version:
    """Ask a kube-apiserver for its version."""
    version = Version.parse(_output(apiserver, "--version"))
    if version is None:
        raise ControlPlaneError(
            f"{apiserver} does not run or tells no version; remove or replace it"
        )
    return version


def client_version(kubectl: Path) -> Version | None:
    """Ask a kubectl for its version; None if it does not say."""
    try:
        answer = json.loads(_output(kubectl, "version", "--client", "--output=json"))
        return Version.parse(str(answer["clientVersion"]["gitVersion"]))
    except (ValueError, KeyError, TypeError):
        return None


def this_platform() -> str:
    """Return this machine's platform in Go's words, or refuse it."""
    system, machine = platform.system().lower(), platform.machine().lower()
    if system not in ("linux", "darwin") or machine not in _MACHINES:
        raise ControlPlaneError(
            f"no local control plane on {system} {machine}: it runs on Linux and macOS, "
            "x86-64 and arm64; give your own cluster with --kubeconfig"
        )
    return f"{system}-{_MACHINES[machine]}"


def _output(program: Path, *args: str) -> str:
    try:
        return subprocess.run(
            [program, *args], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
