"""Makes the virtual environment that every `make` target runs in.

Runs on a bare Python before anything is installed, so it knows the standard library alone. It
names everything that is missing at once, then installs what `requirements.lock` pins, and
does nothing when that was done before.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / ".installed"
INPUTS = (ROOT / "requirements.lock", ROOT / "pyproject.toml")
ROOM_FOR_PACKAGES = 1 << 30
ROOM_FOR_BUILD = 5 << 30
# The same two lines as in local/control_plane/archive.py, which is not installed yet.
INDEX = (
    "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
)
INDEX_VARIABLE = "ISSUESANDBOX_ENVTEST_INDEX"


def main() -> int:
    """Check, then install; return the exit code."""
    missing = [*missing_here(), *missing_for_the_control_plane()]
    if missing:
        print("Cannot start; these things are missing:", file=sys.stderr)
        for each in missing:
            print(f"  - {each}", file=sys.stderr)
        return 1
    if sys.platform != "linux" and not is_installed():
        print(f"Note: this was never run on {platform.system()}, only on Linux.", file=sys.stderr)
    with (ROOT / ".venv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return 0 if is_installed() else install()


def missing_here() -> list[str]:
    """Return what this machine lacks for the virtual environment."""
    missing = []
    if sys.version_info < (3, 11):  # noqa: UP036 - this file alone runs on any Python
        found = platform.python_version()
        missing.append(
            f"Python 3.11 or newer (found {found}): install it, or set PYTHON=/path/to/it"
        )
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        missing.append("the venv module of Python: install python3-venv")
    if shutil.which("git") is None:
        missing.append("git: install it with your package manager")
    if problem := unwritable(ROOT):
        missing.append(f"the right to write to {ROOT} ({problem}): clone to a folder of your own")
    if not is_installed() and shutil.disk_usage(ROOT).free < ROOM_FOR_PACKAGES:
        missing.append(f"1 GiB of free disk under {ROOT} for the Python packages")
    return missing


def missing_for_the_control_plane() -> list[str]:
    """Return what a local control plane lacks at first sight; its own preflight looks closer."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "issuesandbox"
    built = any(cache.glob("control-plane/*/kube-apiserver"))
    servers = all(shutil.which(name) for name in ("kube-apiserver", "etcd"))
    if built or servers or os.environ.get("KUBEBUILDER_ASSETS"):
        return []
    missing = []
    if problem := unwritable(cache):
        missing.append(f"the right to write to {cache} ({problem}): set XDG_CACHE_HOME elsewhere")
    go = shutil.which("go")
    room = shutil.disk_usage(existing(cache)).free >= ROOM_FOR_BUILD
    # The archive is tried first, and needs neither Go nor its room.
    if (go and room) or can_reach(os.environ.get(INDEX_VARIABLE) or INDEX):
        return missing
    missing.append(
        f"5 GiB of free disk under {cache} to build the API server"
        if go
        else "a Kubernetes API server: install Go 1.26 or newer, set KUBEBUILDER_ASSETS to a "
        "folder with kube-apiserver and etcd, or make the envtest archive reachable"
    )
    return missing


def unwritable(folder: Path) -> str | None:
    """Return why nothing can be written below a folder, which need not exist yet."""
    try:
        tempfile.TemporaryFile(dir=existing(folder)).close()
    except OSError as error:
        return error.strerror
    return None


def existing(path: Path) -> Path:
    """Return the nearest part of a path that is there."""
    return next(each for each in (path, *path.parents) if each.exists())


def can_reach(address: str) -> bool:
    """Tell whether an address answers, through a proxy where one is set."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=5).close()
    except (OSError, ValueError):
        return False
    return True


def fingerprint() -> str:
    """Return what the installed packages depend on: the lock, the project, this Python."""
    digest = hashlib.sha256(sys.version.encode())
    for each in INPUTS:
        digest.update(each.read_bytes())
    return digest.hexdigest()


def is_installed() -> bool:
    """Tell whether the environment is complete and up to date."""
    return STAMP.is_file() and STAMP.read_text() == fingerprint()


def install() -> int:
    """Build the environment from the lock; the stamp comes last."""
    STAMP.unlink(missing_ok=True)
    total = sum(1 for line in INPUTS[0].read_text().splitlines() if "==" in line)
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install"]
    # Each step, and how far it is: pip collects all packages first and installs them then.
    steps = (
        ([sys.executable, "-m", "venv", str(VENV)], lambda _: 0),
        ([*pip, "--require-hashes", "-r", str(INPUTS[0])], lambda log: collected(log) + unpacked()),
        ([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], lambda _: 2 * total),
    )
    with Bar("Python packages", 2 * total) as bar:
        for command, done in steps:
            code, output = run_with_progress(command, bar, done)
            if code != 0:
                break
    if code != 0:
        print(f"Installing the Python packages failed:\n{output[-2000:]}", file=sys.stderr)
        print("Check the network, or run `rm -rf .venv` and try again.", file=sys.stderr)
        return 1
    STAMP.write_text(fingerprint())
    return 0


def collected(log: list[str]) -> int:
    """Return how many packages pip has found and downloaded."""
    return sum(line.startswith("Collecting ") for line in log)


def unpacked() -> int:
    """Return how many packages lie in the environment."""
    return sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))


def run_with_progress(
    command: list[str], bar: Bar, done: Callable[[list[str]], int]
) -> tuple[int, str]:
    """Run a command to its end and show meanwhile how far it is."""
    log: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT
    ) as process:
        reader = threading.Thread(target=keep, args=(process.stdout, log))
        reader.start()
        while reader.is_alive():
            reader.join(0.2)
            bar.show(done(log))
    return process.returncode, "".join(log)


def keep(output: Iterable[str] | None, log: list[str]) -> None:
    """Add each line of an output to a list as it comes."""
    for line in output or ():
        log.append(line)


class Bar:
    """How far the installation is: a bar on a terminal, a line each ten seconds elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._shown_at = title, total, time.monotonic()
        self._terminal = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal:
            print(file=sys.stderr)

    def show(self, done: int) -> None:
        """Show how much is done; call it often."""
        percent = 100 * min(done, self._total) // self._total
        if self._terminal:
            drawn = ("█" * (percent * 3 // 10)).ljust(30)
            text = f"\r{self._title} {drawn} {percent:3} %"
            print(text, end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._shown_at >= 10:
            self._shown_at = time.monotonic()
            print(f"{self._title}: {percent} %", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the next run goes on")
