"""A machine made of a few folders: programs on PATH are small shell scripts."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from issuesandbox.local.control_plane.archive import INDEX_VARIABLE
from issuesandbox.local.control_plane.progress import Reporter
from issuesandbox.local.control_plane.resolve import Resolver

# Port 1 is closed on every machine that is not made to be different.
NOBODY = "http://127.0.0.1:1/index.yaml"
SERVER = "v1.36.3"

GO = """
case "$1" in
env) echo go1.26.9; echo {home}/go-build; echo {home}/modules;;
list) echo "go: downloading k8s.io/kubernetes v1.36.3" >&2; echo k8s.io/one; echo k8s.io/two;;
build)
    echo "$@" >> {home}/builds
    while [ "$1" != -o ]; do shift; done
    /bin/mkdir -p "${{2%/*}}"
    {before}
    echo k8s.io/one >&2
    printf '#!/bin/sh\\n%s\\n' '{both}' > "$2"
    /bin/chmod 755 "$2";;
esac
"""

# What kube-apiserver and kubectl say, in one program.
BOTH = r"""
case "$1" in
version) echo "{\"clientVersion\": {\"gitVersion\": \"v1.36.3\"}}";;
*) echo Kubernetes v1.36.3;;
esac
"""


def write_program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def write_kubectl(path: Path, version: str) -> Path:
    return write_program(path, f"""echo '{{"clientVersion": {{"gitVersion": "{version}"}}}}'""")


@dataclass(frozen=True)
class Machine:
    """Where the programs and the cache of a made-up machine are."""

    root: Path
    output: io.StringIO

    @property
    def path(self) -> Path:
        return self.root / "path"

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "PATH": str(self.path),
            "HOME": str(self.root),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            INDEX_VARIABLE: NOBODY,
        }

    def resolver(self, **environment: str) -> Resolver:
        reporter = Reporter(Console(file=self.output, width=1000))
        return Resolver({**self.environment, **environment}, reporter)

    def servers(self, folder: Path) -> Path:
        write_program(folder / "kube-apiserver", f"echo Kubernetes {SERVER}")
        write_program(folder / "etcd", "true")
        return folder

    def go(self, before: str = "") -> Path:
        return write_program(self.path / "go", GO.format(home=self.root, before=before, both=BOTH))

    @property
    def builds(self) -> list[str]:
        """The names of the programs that Go was asked to build, in order."""
        log = self.root / "builds"
        words = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        return [Path(line[line.index("-o") + 1]).name for line in words]
