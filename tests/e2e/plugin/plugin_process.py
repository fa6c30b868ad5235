"""The plugin as a process of its own, against the real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from nursery import born

from issuesandbox.local.control_plane.access import Access

BIN = Path(sys.executable).parent


@dataclass
class Plugin:
    """`kubectl isb` in one namespace, and what it works on."""

    access: Access
    namespace: str
    kubeconfig: Path

    def __call__(self, *args: str, code: int = 0, **environment: str) -> str:
        """Run the plugin; return what it said, on both channels."""
        done = self.run(*args, **environment)
        assert done.returncode == code, f"{args}: {done.returncode} {done.stdout} {done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def json(self, *args: str) -> Any:
        return json.loads(self.run(*args, "-o", "json").stdout)

    def run(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            child = born(
                "kubectl-isb", *args, out=out, err=err, env=self.environment(**environment)
            )
            code = child.process.wait()
            return subprocess.CompletedProcess(args, code, out.read_text(), err.read_text())

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "USER") if name in os.environ}
        tools = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return {**kept, "PATH": tools, "KUBECONFIG": str(self.kubeconfig), **more}

    def apply(self, name: str, number: int, *, labels: Any = None, **spec: Any) -> None:
        body = {
            "apiVersion": "issuesandbox.dev/v1alpha1",
            "kind": "IssueSandbox",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels or {}},
            "spec": {"issue": {"repository": "octo/hello", "number": number}, **spec},
        }
        self.access.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))

    def set_status(self, name: str, **status: Any) -> None:
        """Write a status as the operator would."""
        self.access.kubectl(
            *("-n", self.namespace, "patch", "isb", name, "--subresource=status"),
            *("--type=merge", "-p", json.dumps({"status": status})),
        )

    def get(self, name: str) -> dict[str, Any]:
        text = self.access.kubectl("-n", self.namespace, "get", "isb", name, "-o", "json").stdout
        found: dict[str, Any] = json.loads(text)
        return found
