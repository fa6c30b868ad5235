"""The command lines of etcd, kube-apiserver and kube-controller-manager.

Pure: from paths and ports to lists of arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from issuesandbox.local.control_plane.ports import LOOPBACK
from issuesandbox.local.control_plane.state import StateFolder

# What tests of deletion need; the others want nodes or pods, which do not exist here.
CONTROLLERS = (
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
)


@dataclass(frozen=True)
class Ports:
    """The three ports of one control plane."""

    apiserver: int
    etcd_client: int
    etcd_peer: int


def etcd_command(binary: Path, state: StateFolder, ports: Ports) -> list[str]:
    """Return the command that starts etcd."""
    client = f"http://{LOOPBACK}:{ports.etcd_client}"
    peer = f"http://{LOOPBACK}:{ports.etcd_peer}"
    return [
        str(binary),
        "--name=local",
        f"--data-dir={state.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        # The page cache outlives a killed process; a crash of the machine may lose a test world.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_command(binary: Path, state: StateFolder, ports: Ports) -> list[str]:
    """Return the command that starts kube-apiserver."""
    return [
        str(binary),
        f"--etcd-servers=http://{LOOPBACK}:{ports.etcd_client}",
        f"--secure-port={ports.apiserver}",
        f"--bind-address={LOOPBACK}",
        # Without it the server wants a default route, which an offline machine has not.
        f"--advertise-address={LOOPBACK}",
        # No pod reaches the server through the kubernetes Service, and its endpoint must not be
        # a loopback address.
        "--endpoint-reconciler-type=none",
        f"--cert-dir={state.certificates}",
        f"--token-auth-file={state.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={state.signing_key}",
        f"--service-account-signing-key-file={state.signing_key}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        # It refuses pods until the controller manager has made their ServiceAccount.
        "--disable-admission-plugins=ServiceAccount",
    ]


def controller_manager_command(binary: Path, kubeconfig: Path) -> list[str]:
    """Return the command that starts kube-controller-manager, without a port of its own."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        "--secure-port=0",
        # Faster than the defaults: tests wait for deletions.
        "--concurrent-namespace-syncs=10",
        "--namespace-sync-period=2s",
    ]
