"""The CustomResourceDefinition is what the models say, in the form the API server wants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from tests.unit.api.schema_objects import fields

from issuesandbox.api.cli import crd
from issuesandbox.api.crd import build_crd, build_schema, render_crd

CRD = Path(__file__).parents[3] / "crds" / "issuesandboxes.yaml"

# Defaults are allowed only where no setting of the operator may say something else.
DEFAULTS = {
    ".spec.desiredState": "Running",
    ".spec.deletionPolicy": "Delete",
    ".spec.run.agent.profile": "claude",
    ".spec.run.agent.trustRepositorySettings": False,
    ".spec.run.onNewTrigger": "Replace",
    ".spec.run.keepAlive": False,
    ".spec.run.resumeSession": True,
    ".spec.run.publish.enabled": True,
    ".spec.run.publish.draft": False,
    ".spec.sandbox.network.blockAll": False,
    ".spec.sandbox.nameCollisionPolicy": "Suffix",
}

FORBIDDEN = {
    "$ref",
    "$defs",
    "title",
    "anyOf",
    "allOf",
    "oneOf",
    "const",
    "additionalProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
}


def own_fields() -> list[tuple[str, dict[str, Any]]]:
    described_by_kubernetes = {".apiVersion", ".kind", ".metadata"}
    return [each for each in fields(build_schema()) if each[0] not in described_by_kubernetes]


def test_the_shipped_file_is_what_the_command_prints() -> None:
    printed = CliRunner().invoke(crd)
    assert printed.exit_code == 0
    assert printed.output == CRD.read_text(), "run `issuesandbox crd > crds/issuesandboxes.yaml`"


def test_the_text_is_the_same_in_every_process() -> None:
    script = "from issuesandbox.api.crd import render_crd; print(render_crd(), end='')"
    other = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
    )
    assert other.stdout == render_crd()


def test_the_text_reads_back_as_the_definition() -> None:
    assert yaml.safe_load(render_crd()) == build_crd()


def test_the_schema_has_nothing_the_server_forbids() -> None:
    found = {(path, key) for path, each in own_fields() for key in each if key in FORBIDDEN}
    assert found == set()


def test_every_field_has_a_description_that_is_a_sentence() -> None:
    named = [(path, each) for path, each in own_fields() if not path.endswith("[]")]
    wrong = [path for path, each in named if not each.get("description", "").endswith(".")]
    assert len(named) > 150
    assert wrong == []


def test_every_field_of_a_setting_names_its_default() -> None:
    settings = (".spec.run.limits.", ".spec.cleanup.on", ".spec.recovery.", ".spec.sandbox.auto")
    silent = [
        path
        for path, each in own_fields()
        if path.startswith(settings) and "the operator's setting (" not in each["description"]
    ]
    assert silent == []


def test_every_text_and_list_and_number_has_a_bound() -> None:
    bounds = {"string": ("maxLength", "enum"), "array": ("maxItems",), "integer": ("minimum",)}
    unbounded = [
        path
        for path, each in own_fields()
        if each["type"] in bounds and not set(bounds[each["type"]]) & each.keys()
    ]
    assert unbounded == [".status.run.exitCode"]


def test_every_list_says_how_it_is_merged() -> None:
    silent = [
        path
        for path, each in own_fields()
        if each["type"] == "array" and "x-kubernetes-list-type" not in each
    ]
    assert silent == []


def test_defaults_are_only_where_no_setting_exists() -> None:
    found = {path: each["default"] for path, each in own_fields() if "default" in each}
    assert found == DEFAULTS


def test_only_the_issue_is_required() -> None:
    spec = build_schema()["properties"]["spec"]
    assert spec["required"] == ["issue"]
    assert spec["properties"]["issue"]["required"] == ["repository", "number"]


def test_every_rule_has_a_message() -> None:
    rules = [rule for _, each in own_fields() for rule in each.get("x-kubernetes-validations", ())]
    assert len(rules) > 50
    assert all(rule["message"] for rule in rules)


# R95
def test_the_deletion_record_has_its_seven_fields() -> None:
    status = build_schema()["properties"]["status"]["properties"]
    assert set(status["sandboxDeletion"]["properties"]) == {
        "sandboxId",
        "success",
        "message",
        "retriesUsed",
        "error",
        "skipped",
        "skipReason",
    }
