"""The resource goes up and down a version: objects of either survive."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from issuesandbox.api.crd import render_crd
from issuesandbox.api.names import CRD_NAME
from issuesandbox.local.control_plane.access import Access

NEWER: dict[str, Any] = yaml.safe_load(render_crd())


def older() -> dict[str, Any]:
    """Return the resource as a version before would have had it: without some optional fields."""
    crd = copy.deepcopy(NEWER)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del schema["spec"]["properties"]["flags"]
    del schema["status"]["properties"]["comment"]
    return crd


@pytest.fixture
def versions(control_plane: Access, installed: None) -> Iterator[Access]:
    yield control_plane
    apply(control_plane, NEWER)


def apply(access: Access, crd: dict[str, Any]) -> None:
    manager = ("--force-conflicts", "--field-manager=kubectl")
    access.kubectl("apply", "--server-side", *manager, "-f", "-", stdin=json.dumps(crd))
    access.kubectl("wait", "--timeout=30s", f"crd/{CRD_NAME}", "--for=condition=Established")


def patch(access: Access, namespace: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    text = access.kubectl(
        *("-n", namespace, "patch", "isb", name, "--type=merge", "-o", "json"),
        *("-p", json.dumps(body)),
    ).stdout
    found: dict[str, Any] = json.loads(text)
    return found


def create(access: Access, namespace: str, name: str, number: int) -> None:
    body = {
        "apiVersion": "issuesandbox.dev/v1alpha1",
        "kind": "IssueSandbox",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"issue": {"repository": "octo/hello", "number": number}, "run": {}},
    }
    access.kubectl("create", "-f", "-", stdin=json.dumps(body))


def until_known(access: Access, namespace: str, field: str, known: bool) -> None:
    """Wait until the API server works by the schema that was applied last."""
    for _ in range(200):
        shown = access.kubectl("explain", f"isb.{field}", check=False)
        if (shown.returncode == 0) is known:
            return
    pytest.fail(f"the API server never {'learned' if known else 'forgot'} {field}")


def test_objects_survive_an_upgrade_and_a_downgrade(
    versions: Access, namespace: str
) -> None:  # R137
    apply(versions, older())
    until_known(versions, namespace, "spec.flags", known=False)
    create(versions, namespace, "old", 1)

    apply(versions, NEWER)
    until_known(versions, namespace, "spec.flags", known=True)
    create(versions, namespace, "new", 2)
    flags = {"spec": {"flags": {"healthProbe": False}}}
    assert patch(versions, namespace, "old", flags)["spec"]["flags"] == {"healthProbe": False}
    patch(versions, namespace, "new", flags)

    apply(versions, older())
    until_known(versions, namespace, "spec.flags", known=False)
    listed = json.loads(versions.kubectl("-n", namespace, "get", "isb", "-o", "json").stdout)
    assert [each["metadata"]["name"] for each in listed["items"]] == ["new", "old"]
    written = patch(versions, namespace, "new", {"spec": {"desiredState": "Stopped"}})
    assert written["spec"]["desiredState"] == "Stopped"
    assert "flags" not in written["spec"]
