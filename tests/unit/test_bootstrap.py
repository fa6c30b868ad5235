"""What every `make` target does first: it names all that is missing, or makes the environment."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

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


def loaded() -> ModuleType:
    """Return the script as a module, to show it a machine that this one is not."""
    spec = importlib.util.spec_from_file_location("bootstrap", BOOTSTRAP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_old_python_without_venv_and_a_full_disk_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bootstrap = loaded()
    monkeypatch.setattr(sys, "version_info", (3, 10, 14))
    monkeypatch.setattr(platform, "python_version", lambda: "3.10.14")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10**8))
    monkeypatch.setattr(bootstrap, "is_installed", lambda: False)
    assert bootstrap.missing_here() == [
        "Python 3.11 or newer (found 3.10.14): install it, or set PYTHON=/path/to/it",
        "the venv module of Python: install python3-venv",
        f"1 GiB of free disk under {ROOT} for the Python packages",
    ]
    monkeypatch.setattr(bootstrap, "is_installed", lambda: True)
    assert len(bootstrap.missing_here()) == 2, "what is installed needs no more room"


@pytest.mark.parametrize(("archive", "missing"), [(False, ["5 GiB of free disk"]), (True, [])])
def test_a_disk_too_small_for_a_build_is_large_enough_for_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bool, missing: list[str]
) -> None:
    bootstrap = loaded()
    (tmp_path / "go").write_text("#!/bin/sh\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4 << 30))
    monkeypatch.setattr(bootstrap, "can_reach", lambda address: archive)
    told = bootstrap.missing_for_the_control_plane()
    assert [each.split(" under ")[0] for each in told] == missing
