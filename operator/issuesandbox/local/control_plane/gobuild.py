"""Builds the binaries from the Go module proxy.

`k8s.io/kubernetes` replaces its staging modules, so that it cannot be installed by name: the small
module beside this file repeats these replacements and pins every checksum. Knows the Go tool, not
where the results are kept.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from issuesandbox.local.control_plane.binaries import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBECTL,
    MODULE,
    pinned_version,
)
from issuesandbox.local.control_plane.cache import Workshop
from issuesandbox.local.control_plane.errors import ControlPlaneError
from issuesandbox.local.control_plane.progress import Bar, Reporter
from issuesandbox.local.processes import Leash, spawn

PACKAGES = {
    APISERVER: "k8s.io/kubernetes/cmd/kube-apiserver",
    ETCD: "go.etcd.io/etcd/server/v3",
    KUBECTL: "k8s.io/kubernetes/cmd/kubectl",
    CONTROLLER_MANAGER: "k8s.io/kubernetes/cmd/kube-controller-manager",
}

GO_NEEDED = "Go 1.26 or newer"

_POLL_SECONDS = 0.2
_DOWNLOADING = "go: downloading "


@dataclass(frozen=True)
class Go:
    """A Go toolchain on this machine."""

    program: Path
    version: str
    caches: tuple[Path, ...]


def find_go(environment: Mapping[str, str]) -> Go | None:
    """Return the Go toolchain on PATH, if there is one that runs."""
    program = shutil.which("go", path=environment.get("PATH", ""))
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, "env", "GOVERSION", "GOCACHE", "GOMODCACHE"],
            # The answer must not depend on a go.mod or a newer toolchain it asks for.
            env={**environment, "GOTOOLCHAIN": "local"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        version, build, modules = answer.stdout.splitlines()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Go(Path(program), version, (Path(build), Path(modules)))


class GoBuild:
    """One build in the workshop."""

    def __init__(
        self, go: Go, environment: Mapping[str, str], workshop: Workshop, reporter: Reporter
    ) -> None:
        self._go = go
        self._environment = _build_environment(environment)
        self._workshop = workshop
        self._reporter = reporter
        self._module = workshop.path / "module"
        self._logs = 0

    async def run(self, names: Sequence[str]) -> list[Path]:
        """Build the named binaries and return them."""
        # The installed package may be read-only, and Go wants to lock the module's folder.
        shutil.copytree(MODULE, self._module)
        leash = Leash.attach(self._workshop.path, hold=[self._workshop.lock])
        try:
            total = await self._download_and_count(leash, names)
            return await self._compile(leash, names, total)
        finally:
            await leash.release()

    async def _download_and_count(self, leash: Leash, names: Sequence[str]) -> int:
        """Let Go fetch the modules and return how many packages have to be compiled."""
        modules = (self._module / "go.mod").read_text().count(" v")
        stale = ["list", *_flags(), "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"]
        with self._reporter.bar("fetching Go modules", modules, "modules") as bar:
            log = await self._go_to_end(
                leash, [*stale, *(PACKAGES[name] for name in names)], _Count(bar, _is_download)
            )
        return sum(map(_is_package, log.read_text().splitlines()))

    async def _compile(self, leash: Leash, names: Sequence[str], total: int) -> list[Path]:
        built = [self._workshop.path / "bin" / name for name in names]
        title = f"building {', '.join(names)} with {self._go.version}"
        with self._reporter.bar(title, total, "packages") as bar:
            count = _Count(bar, _is_package)
            for path in built:
                command = ["build", "-v", *_flags(), "-o", str(path), PACKAGES[path.name]]
                await self._go_to_end(leash, command, count)
        return built

    async def _go_to_end(self, leash: Leash, args: Sequence[str], count: _Count) -> Path:
        self._logs += 1
        log = self._workshop.path / f"go-{self._logs}.log"
        command = [str(self._go.program), *args]
        child = spawn("go", command, leash=leash, log=log, env=self._environment, cwd=self._module)
        try:
            with log.open() as output:
                while child.returncode is None:
                    count.add(output.readlines())
                    await asyncio.sleep(_POLL_SECONDS)
                count.add(output.readlines())
        finally:
            await child.stop()
        if child.returncode != 0:
            raise ControlPlaneError(f"go {args[0]} failed: {' / '.join(child.last_lines(2))}")
        return log


class _Count:
    """Counts the lines of Go's output that mean progress."""

    def __init__(self, bar: Bar, counts: Callable[[str], bool]) -> None:
        self._bar, self._counts, self._done = bar, counts, 0

    def add(self, lines: Sequence[str]) -> None:
        self._done += sum(map(self._counts, lines))
        self._bar.update(self._done)


def _is_download(line: str) -> bool:
    return line.startswith(_DOWNLOADING)


def _is_package(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("go: ")


def _flags() -> list[str]:
    """Return the flags of every Go command: with others the compiled packages would be stale."""
    version = pinned_version()
    # Without these kubectl cannot parse the server's version.
    stamp = {
        "gitVersion": str(version),
        "gitMajor": str(version.major),
        "gitMinor": str(version.minor),
    }
    variables = [
        f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items()
    ]
    return ["-trimpath", "-ldflags", " ".join(["-s -w", *variables])]


def _build_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what would change the result."""
    kept = {name: value for name, value in environment.items() if name not in ("GOOS", "GOARCH")}
    return {
        **kept,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly",
        "GOWORK": "off",
        "GO111MODULE": "on",
    }
