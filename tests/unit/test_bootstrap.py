"""What every `make` target does first: it names all that is missing, or makes the environment."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOOTSTRAP = ROOT / ".ci" / "bootstrap.py"
# Leads to nobody, at once.
NO_ARCHIVE = {"ISSUESANDBOX_ENVTEST_INDEX": "http://127.0.0.1:1/index.yaml"}


class Clone:
    """A clone of this repository as far as the set-up sees it, perhaps set up already."""

    def __init__(self, root: Path, *, lock: str = "", installed: bool = True) -> None:
        self.venv = root / ".venv"
        self.script = root / ".ci" / "bootstrap.py"
        self.script.parent.mkdir(parents=True)
        self.script.write_bytes(BOOTSTRAP.read_bytes())
        (root / "pyproject.toml").touch()
        (root / "requirements.lock").write_text(lock)
        if installed:
            self.venv.mkdir()
            inputs = sys.version.encode() + lock.encode()
            (self.venv / ".installed").write_text(hashlib.sha256(inputs).hexdigest())

    def bootstrap(self, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
        return subprocess.run(
            [sys.executable, "-I", str(self.script)],
            env={**kept, **NO_ARCHIVE, **environment},
            capture_output=True,
            text=True,
            check=False,
        )


def test_all_that_is_missing_is_told_at_once_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    clone = Clone(tmp_path / "clone", installed=False)
    refused = clone.bootstrap(PATH=str(tmp_path / "empty"), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert refused.returncode == 1
    title, *missing = refused.stderr.splitlines()
    assert title == "Cannot start; these things are missing:"
    assert [line.split(":")[0].split(" (")[0] for line in missing] == [
        "  - git",
        f"  - the right to write to {tmp_path}/file/issuesandbox",
        "  - a Kubernetes API server",
    ]
    assert not clone.venv.exists()


@pytest.mark.parametrize("found", ["assets", "path", "cache"])
def test_with_a_server_at_hand_neither_go_nor_the_network_is_needed(
    tmp_path: Path, found: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    servers = tmp_path / "issuesandbox/control-plane/key" if found == "cache" else tools
    servers.mkdir(parents=True, exist_ok=True)
    for program in (tools / "git", servers / "kube-apiserver", servers / "etcd"):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    more = {"KUBEBUILDER_ASSETS": str(tools)} if found == "assets" else {}
    clone = Clone(tmp_path / "clone")
    made = clone.bootstrap(PATH=str(tools), XDG_CACHE_HOME=str(tmp_path), **more)
    assert (made.returncode, made.stdout + made.stderr) == (0, "")


def test_packages_that_cannot_be_installed_are_told_without_a_traceback(tmp_path: Path) -> None:
    lock = "no-such-package==0.0.0 --hash=sha256:00\n"
    clone = Clone(tmp_path, lock=lock, installed=False)
    failed = clone.bootstrap(PIP_NO_INDEX="1")
    assert failed.returncode == 1
    assert "Installing the Python packages failed:" in failed.stderr
    assert failed.stderr.splitlines()[-1].startswith("Check the network, or run `rm -rf .venv`")
    assert "Traceback" not in failed.stderr
    assert not (clone.venv / ".installed").exists()
