"""How a real API server stores, shows and explains the resource."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config
from tests.e2e.resource.resource_access import Resources, resource
from tests.unit.api.schema_objects import acceptable, maximal_object

from issuesandbox.adapters.kube.connection import Connection
from issuesandbox.adapters.kube.requests import KubeRequests
from issuesandbox.api import names
from issuesandbox.api.resource import IssueSandbox
from issuesandbox.local.control_plane.access import Access
from issuesandbox.ports.errors import CallError

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "manifests" / "samples").glob("*.yaml"))
CRD = ROOT / "crds" / "issuesandboxes.yaml"

STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "issue": "octocat/hello-world#12",
    "phase": "Executing",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "AgentRunning",
            "message": "the agent is at work",
            "lastTransitionTime": "2030-01-31T18:00:00Z",
        }
    ],
    "sandbox": {"id": "s-1", "name": "claude-issue-12", "state": "started", "attempt": 2},
    "run": {
        "id": "run-1",
        "phase": "Executing",
        "startedAt": "2020-01-31T18:00:00Z",
        "lastOutputAt": "2020-01-31T18:00:00Z",
        "pullRequest": {"number": 57, "url": "https://github.com/octocat/hello-world/pull/57"},
    },
}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_applies_and_survives_the_models(
    control_plane: Access, resources: Resources, sample: Path
) -> None:
    control_plane.kubectl("apply", "-n", resources.namespace, "-f", str(sample))
    name = yaml.safe_load(sample.read_text())["metadata"]["name"]
    stored = _get(control_plane, resources.namespace, name)
    assert IssueSandbox.model_validate(stored).to_json()["spec"] == stored["spec"]


def test_the_largest_object_is_stored_whole(resources: Resources) -> None:
    largest = acceptable(maximal_object())
    largest["metadata"]["namespace"] = resources.namespace
    stored = resources.create(largest)
    stored["status"] = largest["status"]
    stored = resources.write_status(stored)
    assert stored["spec"] == largest["spec"]
    assert stored["status"] == largest["status"]


def test_only_allowed_defaults_are_filled_in(resources: Resources) -> None:
    parts: dict[str, Any] = {"agent": {}, "limits": {}, "publish": {}}
    stored = resources.create(
        resource(
            run=parts, sandbox={"resources": {}, "network": {}}, cleanup={}, recovery={}, flags={}
        )
    )
    assert stored["spec"] == {
        "issue": {"repository": "octocat/hello-world", "number": 12},
        "desiredState": "Running",
        "deletionPolicy": "Delete",
        "run": {
            "agent": {"profile": "claude", "trustRepositorySettings": False},
            "limits": {},
            "publish": {"enabled": True, "draft": False},
            "onNewTrigger": "Replace",
            "keepAlive": False,
            "resumeSession": True,
        },
        "sandbox": {
            "resources": {},
            "network": {"blockAll": False},
            "nameCollisionPolicy": "Suffix",
        },
        "cleanup": {},
        "recovery": {},
        "flags": {},
    }


def test_a_sandbox_only_resource_gets_no_run(resources: Resources) -> None:
    assert set(resources.create(resource())["spec"]) == {
        "issue",
        "desiredState",
        "deletionPolicy",
    }


def test_unknown_fields_are_refused_by_strict_clients(
    control_plane: Access, crd: None, namespace: str
) -> None:
    manifest = json.dumps(resource(colour="red"))
    answer = control_plane.kubectl("apply", "-n", namespace, "-f", "-", stdin=manifest, check=False)
    assert answer.returncode != 0
    assert 'unknown field "spec.colour"' in answer.stderr


def test_unknown_fields_of_other_clients_are_dropped(
    control_plane: Access, crd: None, namespace: str
) -> None:
    manifest = json.dumps(resource(colour="red"))
    control_plane.kubectl("apply", "--validate=false", "-n", namespace, "-f", "-", stdin=manifest)
    assert "colour" not in _get(control_plane, namespace, "one")["spec"]


async def test_the_operators_own_client_is_strict(
    control_plane: Access, resources: Resources
) -> None:
    resources.create(resource())
    configuration = client.Configuration()
    config.load_kube_config(str(control_plane.kubeconfig), client_configuration=configuration)
    connection = Connection(control_plane.server, resources.namespace, configuration)
    session = connection.session(limit=2)
    requests = KubeRequests(connection.server, session, 10)
    path = f"/apis/{names.API_VERSION}/namespaces/{resources.namespace}/{names.PLURAL}"
    async with session:
        with pytest.raises(CallError, match=r'unknown field "spec\.colour"'):
            await requests.send("PATCH", f"{path}/one", {"spec": {"colour": "red"}})
        with pytest.raises(CallError, match=r'unknown field "spec\.colour"'):
            await requests.send("POST", path, resource("two", colour="red"))


# R118
def test_a_person_sees_the_columns(control_plane: Access, resources: Resources) -> None:
    stored = resources.create(resource())
    resources.write_status({**stored, "status": STATUS})
    header, row = _table(control_plane, resources.namespace)
    assert header == ["NAME", "ISSUE", "PHASE", "SANDBOX", "STATE", "RUN", "PR", "AGE"]
    assert row[:-1] == [
        "one",
        "octocat/hello-world#12",
        "Executing",
        "claude-issue-12",
        "started",
        "run-1",
        "57",
    ]


def test_a_person_sees_the_wide_columns(control_plane: Access, resources: Resources) -> None:
    stored = resources.create(resource())
    resources.write_status({**stored, "status": STATUS})
    header, row = _table(control_plane, resources.namespace, "-o", "wide")
    assert header[-4:] == ["AGE", "ATTEMPT", "LAST-OUTPUT", "REASON"]
    assert row[-3] == "2"
    assert row[-2].endswith("d"), "the last output is shown as an age"
    assert row[-1] == "AgentRunning"


def test_short_name_and_category_find_the_resource(
    control_plane: Access, resources: Resources
) -> None:
    resources.create(resource())
    for word in (names.SHORT_NAME, names.CATEGORY, names.SINGULAR, names.PLURAL):
        found = control_plane.kubectl("get", word, "-n", resources.namespace, "-o", "name")
        assert found.stdout == f"{names.SINGULAR}.{names.GROUP}/one\n"


def test_phase_and_repository_can_be_selected(control_plane: Access, resources: Resources) -> None:
    stored = resources.create(resource("one"))
    resources.create(resource("two", issue={"repository": "octocat/spoon-knife", "number": 2}))
    resources.write_status({**stored, "status": STATUS})
    assert _selected(control_plane, resources.namespace, "status.phase=Executing") == ["one"]
    assert _selected(control_plane, resources.namespace, "status.phase!=Executing") == ["two"]
    repository = "spec.issue.repository=octocat/spoon-knife"
    assert _selected(control_plane, resources.namespace, repository) == ["two"]


def test_users_cannot_write_the_status_by_the_way(resources: Resources) -> None:
    stored = resources.create({**resource(), "status": STATUS})
    assert "status" not in stored
    replaced = resources.replace({**stored, "status": STATUS})
    assert "status" not in replaced


def test_writing_the_status_leaves_the_spec_alone(resources: Resources) -> None:
    stored = resources.create(resource())
    other = {**stored, "spec": {**stored["spec"], "desiredState": "Stopped"}, "status": STATUS}
    written = resources.write_status(other)
    assert written["spec"]["desiredState"] == "Running"
    assert written["status"] == STATUS
    assert written["metadata"]["generation"] == 1


def test_two_conditions_of_one_type_are_refused(
    control_plane: Access, resources: Resources
) -> None:
    resources.create(resource())
    patch = json.dumps({"status": {"conditions": STATUS["conditions"] * 2}})
    answer = control_plane.kubectl(
        *("patch", "isb", "one", "-n", resources.namespace, "--subresource=status"),
        *("--type=merge", "-p", patch),
        check=False,
    )
    assert "status.conditions[1]: Duplicate value" in answer.stderr


def test_conditions_can_be_waited_for(control_plane: Access, resources: Resources) -> None:
    stored = resources.create(resource())
    resources.write_status({**stored, "status": STATUS})
    waited = control_plane.kubectl(
        "wait", "isb/one", "-n", resources.namespace, "--for=condition=Ready", "--timeout=5s"
    )
    assert "condition met" in waited.stdout


def test_kubectl_explains_the_limits(control_plane: Access, crd: None) -> None:
    text = control_plane.kubectl("explain", "isb.spec.run.limits").stdout
    for words in ("inactivity\t<string>", "such as `5m`", "from\n    Preparing", "enum: Output"):
        assert words in text


def test_every_field_is_explained(control_plane: Access, crd: None) -> None:
    served = json.loads(
        control_plane.kubectl("get", "--raw", f"/openapi/v3/apis/{names.API_VERSION}").stdout
    )
    (schema,) = (
        each
        for name, each in served["components"]["schemas"].items()
        if name.endswith(f".{names.KIND}")
    )
    silent = [path for part in ("spec", "status") for path in _silent(schema, part)]
    assert silent == []


def test_applying_the_definition_again_changes_nothing(control_plane: Access, crd: None) -> None:
    def version() -> str:
        return control_plane.kubectl(
            "get", "crd", names.CRD_NAME, "-o", "jsonpath={.metadata.resourceVersion}"
        ).stdout

    before = version()
    control_plane.kubectl("apply", "--server-side", "-f", str(CRD))
    assert version() == before


def test_the_server_raises_no_complaint_about_the_definition(
    control_plane: Access, crd: None
) -> None:
    conditions = json.loads(
        control_plane.kubectl("get", "crd", names.CRD_NAME, "-o", "json").stdout
    )["status"]["conditions"]
    by_type = {each["type"]: each["status"] for each in conditions}
    assert by_type["Established"] == "True"
    assert by_type["NamesAccepted"] == "True"
    assert by_type.get("NonStructuralSchema", "False") == "False"


def _get(control_plane: Access, namespace: str, name: str) -> dict[str, Any]:
    answer = control_plane.kubectl("get", "isb", name, "-n", namespace, "-o", "json")
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def _table(control_plane: Access, namespace: str, *options: str) -> list[list[str]]:
    text = control_plane.kubectl("get", "isb", "-n", namespace, *options).stdout
    return [line.split() for line in text.splitlines()]


def _selected(control_plane: Access, namespace: str, selector: str) -> list[str]:
    answer = control_plane.kubectl(
        *("get", "isb", "-n", namespace, "--field-selector", selector),
        *("-o", "jsonpath={.items[*].metadata.name}"),
    )
    return answer.stdout.split()


def _silent(schema: dict[str, Any], path: str) -> list[str]:
    """Return the fields below the last part of `path` that have no description."""
    each = schema["properties"][path.rpartition(".")[2]]
    found = [] if each.get("description") else [path]
    inner = each.get("items", each)
    for name in inner.get("properties", ()):
        found += _silent(inner, f"{path}.{name}")
    return found
