"""How others reach a running control plane: its address, credentials and kubectl.

Holds no process; a value that tests and the local world hand around.
"""

from __future__ import annotations

import base64
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Access:
    """The administrator's way into one control plane."""

    kubeconfig: Path
    server: str
    ca: Path
    token: str = field(repr=False)
    kubectl_binary: Path

    def kubectl(
        self, *args: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator and return its output as text."""
        try:
            return subprocess.run(
                [str(self.kubectl_binary), "--kubeconfig", str(self.kubeconfig), *args],
                input=stdin,
                # Never the terminal's: kubectl must not wait for a person.
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                check=check,
            )
        except subprocess.CalledProcessError as error:
            error.add_note(str(error.stderr).strip())  # its own text has only the exit code
            raise

    def service_account_kubeconfig(self, namespace: str, name: str, directory: Path) -> Path:
        """Write a kubeconfig of an existing ServiceAccount, with a token from TokenRequest."""
        request = ("create", "token", name, "--namespace", namespace, "--duration", "720h")
        path = directory / f"{namespace}-{name}.kubeconfig"
        token = self.kubectl(*request).stdout.strip()
        write_kubeconfig(path, self.server, self.ca, token, namespace)
        return path


def write_kubeconfig(
    path: Path, server: str, ca: Path, token: str, namespace: str = "default"
) -> None:
    """Write a kubeconfig that only its owner can read, complete or not at all."""
    authority = base64.b64encode(ca.read_bytes()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "local",
                "cluster": {"server": server, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": "local", "user": {"token": token}}],
        "contexts": [
            {
                "name": "local",
                "context": {"cluster": "local", "user": "local", "namespace": namespace},
            }
        ],
        "current-context": "local",
    }
    write_private(path, yaml.safe_dump(content, sort_keys=False).encode())


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 and rename it into place."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
