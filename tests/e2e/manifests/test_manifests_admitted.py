"""Every shipped object is accepted by a real API server, and the overlays render the same twice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.world.layout import NAMESPACE, manifests

Build = Callable[[str], list[dict[str, Any]]]

FOLDERS = (
    "base",
    "monitoring",
    "overlays/single-namespace",
    "overlays/ha",
    "overlays/kind",
    "overlays/monitoring",
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_api_server_admits_every_object_without_a_warning(
    control_plane: Access, installed: None, monitoring_kinds: None, build: Build, folder: str
) -> None:
    objects = build(folder)
    answer = control_plane.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict"),
        *("--force-conflicts", "--field-manager=test", "-f", "-"),
        stdin=yaml.safe_dump_all(objects),
    )
    assert answer.stdout.count("serverside-applied") == len(objects)
    assert answer.stderr == ""


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_overlay_renders_the_same_twice(
    control_plane: Access, build: Build, folder: str
) -> None:
    text = control_plane.kubectl("kustomize", str(manifests() / folder)).stdout
    assert list(yaml.safe_load_all(text)) == build(folder)


def test_every_folder_with_a_kustomization_is_tested() -> None:
    found = {
        str(each.parent.relative_to(manifests()))
        for each in manifests().rglob("kustomization.yaml")
    }
    assert found == set(FOLDERS)


@pytest.mark.parametrize(
    "example", sorted(each.name for each in (manifests() / "examples").iterdir())
)
def test_the_examples_are_admitted(control_plane: Access, installed: None, example: str) -> None:
    path = manifests() / "examples" / example
    answer = control_plane.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "-f", str(path)
    )
    assert "created (server dry run)" in answer.stdout


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pods that the Deployments would make."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**each["spec"]["template"]["metadata"], "name": each["metadata"]["name"]},
            "spec": each["spec"]["template"]["spec"],
        }
        for each in objects
        if each["kind"] == "Deployment"
    ]


@pytest.mark.parametrize(
    "folder", ["base", "overlays/single-namespace", "overlays/ha", "overlays/kind"]
)
def test_restricted_pod_security_admits_the_pods_and_would_refuse_laxer_ones(
    control_plane: Access, installed: None, build: Build, folder: str
) -> None:
    create = ("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-")
    for pod in pods(build(folder)):
        control_plane.kubectl(*create, stdin=yaml.safe_dump(pod))
        lax = copy.deepcopy(pod)
        lax["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        refused = control_plane.kubectl(*create, stdin=yaml.safe_dump(lax), check=False)
        assert 'violates PodSecurity "restricted' in refused.stderr
