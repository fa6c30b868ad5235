"""`make kind`: the operator in a kind cluster on this machine, from the image to the first look.

Knows the standard library alone. Every step may be repeated: what is there already stays.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = "issuesandbox"
NAMESPACE = "issuesandbox-system"
CONTEXT = ("--context", f"kind-{CLUSTER}")
TOOLS = {
    "docker": "install Docker, and start it",
    "kind": "https://kind.sigs.k8s.io has it",
    "kubectl": "https://kubernetes.io/docs/tasks/tools has it",
}
# The environment variable, the Secret, and the key in it; only the first must be there.
SECRETS = (
    ("DAYTONA_API_KEY", "issuesandbox-daytona", "api-key"),
    ("GITHUB_TOKEN", "issuesandbox-github", "token"),
    ("GITHUB_READ_TOKEN", "issuesandbox-github", "read-token"),
    ("GITHUB_WEBHOOK_SECRET", "issuesandbox-github", "webhook-secret"),
    ("ANTHROPIC_API_KEY", "issuesandbox-agent", "ANTHROPIC_API_KEY"),
)


def main() -> int:
    """Check everything first, then do it; return the exit code."""
    missing = [f"{tool}: {fix}" for tool, fix in TOOLS.items() if shutil.which(tool) is None]
    if shutil.which("docker") and not docker_runs():
        missing.append("a running Docker: `docker info` fails")
    if not os.environ.get("DAYTONA_API_KEY"):
        missing.append("DAYTONA_API_KEY in the environment: the operator does not start without")
    if missing:
        print("Cannot start; these things are missing:", file=sys.stderr)
        for each in missing:
            print(f"  - {each}", file=sys.stderr)
        return 1
    try:
        build()
        install()
    except subprocess.CalledProcessError as error:
        print(f"Error: `{' '.join(error.cmd)}` failed.", file=sys.stderr)
        return 1
    print(f"Ready. Try: kubectl {' '.join(CONTEXT)} apply -f manifests/samples/sandbox-only.yaml")
    print("Remove it: kind delete cluster --name issuesandbox")
    return 0


def build() -> None:
    """Make the cluster and the image, and bring the one into the other."""
    known = subprocess.run(["kind", "get", "clusters"], capture_output=True, text=True, check=True)
    if CLUSTER not in known.stdout.split():
        run("kind", "create", "cluster", "--config", "kind-config.yaml")
    run("docker", "build", "-f", "operator/Dockerfile", "-t", image(), ".")
    run("kind", "load", "docker-image", image(), "--name", CLUSTER)


def install() -> None:
    """Bring the resource, the operator and its credentials into the cluster; wait for it."""
    kubectl = ("kubectl", *CONTEXT)
    run(*kubectl, "apply", "--server-side", "-f", "crds/")
    run(*kubectl, "apply", "-k", "manifests/overlays/kind")
    # Over stdin: what is on a command line can be read by everybody on the machine.
    run(*kubectl, "apply", "-f", "-", stdin=json.dumps(secrets()))
    home = ("-n", NAMESPACE)
    run(*kubectl, *home, "rollout", "restart", "deploy/issuesandbox-operator")
    run(*kubectl, *home, "rollout", "status", "deploy/issuesandbox-operator", "--timeout=180s")


def image() -> str:
    """Return the image as the manifests name it."""
    text = (ROOT / "manifests" / "base" / "kustomization.yaml").read_text()
    name, tag = (re.search(rf"{key}: (\S+)", text) for key in ("newName", "newTag"))
    if name is None or tag is None:
        raise SystemExit("manifests/base/kustomization.yaml names no image")
    return f"{name[1]}:{tag[1]}"


def secrets() -> dict[str, object]:
    """Return the Secrets that the environment gives the values of."""
    given: dict[str, dict[str, str]] = {}
    for variable, name, key in SECRETS:
        if os.environ.get(variable):
            given.setdefault(name, {})[key] = os.environ[variable]
    items = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": values,
        }
        for name, values in given.items()
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def run(*command: str, stdin: str | None = None) -> None:
    """Show a command and run it; a failure ends it all."""
    print(f"$ {' '.join(command)}", flush=True)
    subprocess.run(command, cwd=ROOT, input=stdin, text=True, check=True)


def docker_runs() -> bool:
    """Tell whether Docker answers."""
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
