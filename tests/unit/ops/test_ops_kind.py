"""`make kind`, as far as it can be seen without Docker: what it checks, and what it would run."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from promql_names import ROOT

TOOLS = ("docker", "kind", "kubectl")
KEY = "dtn_not_on_any_command_line"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Stand-ins for the tools, which write down how they were called."""
    for name in TOOLS:
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/calls\n'
            f'case "$*" in *"-f -"*) cat > {tmp_path}/stdin;; esac\n'
        )
        program.chmod(0o755)
    return tmp_path


def make_kind(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "kind"],
        cwd=ROOT,
        env={"PATH": f"{folder}:/usr/bin:/bin", "HOME": os.environ["HOME"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_builds_loads_installs_and_waits_and_shows_no_secret(folder: Path) -> None:
    done = make_kind(folder, DAYTONA_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    calls = (folder / "calls").read_text()
    order = [
        "kind create cluster --config kind-config.yaml",
        "docker build -f operator/Dockerfile -t issuesandbox:0.1.0 .",
        "kind load docker-image issuesandbox:0.1.0 --name issuesandbox",
        "apply --server-side -f crds/",
        "apply -k manifests/overlays/kind",
        "apply -f -",
        "rollout status deploy/issuesandbox-operator",
    ]
    places = [calls.find(each) for each in order]
    assert -1 not in places, calls
    assert places == sorted(places)
    assert KEY not in calls + done.stdout + done.stderr
    (secret,) = json.loads((folder / "stdin").read_text())["items"]
    assert (secret["metadata"]["name"], secret["stringData"]) == (
        "issuesandbox-daytona",
        {"api-key": KEY},
    )
    for line in calls.splitlines():
        assert not line.startswith("kubectl") or "--context kind-issuesandbox" in line


def test_everything_that_is_missing_is_named_at_once(folder: Path) -> None:
    (folder / "kind").unlink()
    (folder / "docker").write_text("#!/bin/sh\nexit 1\n")
    done = make_kind(folder)
    assert done.returncode != 0
    for missing in ("kind:", "a running Docker", "DAYTONA_API_KEY"):
        assert missing in done.stderr
    assert not (folder / "calls").exists(), "nothing is begun"


def test_the_cluster_and_the_overlay_agree_on_name_and_port() -> None:
    cluster = yaml.safe_load((ROOT / "kind-config.yaml").read_text())
    (mapping,) = cluster["nodes"][0]["extraPortMappings"]
    service = yaml.safe_load((ROOT / "manifests/overlays/kind/webhook-port.yaml").read_text())
    assert mapping["containerPort"] == service["spec"]["ports"][0]["nodePort"]
    assert mapping["listenAddress"] == "127.0.0.1"
    assert (cluster["apiVersion"], cluster["kind"], cluster["name"]) == (
        "kind.x-k8s.io/v1alpha4",
        "Cluster",
        "issuesandbox",
    )
