"""The CustomResourceDefinition, built from the models and from nothing else.

Turns pydantic's JSON schema into the structural schema the API server wants: no references, no
titles, no null (an optional field is absent). Knows nothing of the fields themselves.
"""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel

from issuesandbox.api import names
from issuesandbox.api.constraints import JsonSchema
from issuesandbox.api.spec import Spec
from issuesandbox.api.status import Status

_HEADER = "# Printed by `issuesandbox crd` from the models in issuesandbox.api; do not edit.\n"

# Names that mean nothing to the API server, or that it forbids in a structural schema.
_DROPPED = frozenset({"title", "additionalProperties", "$defs"})

_SELECTABLE = (".spec.issue.repository", ".status.phase")


def build_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition of the IssueSandbox."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": names.CRD_NAME},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": names.LIST_KIND,
                "plural": names.PLURAL,
                "singular": names.SINGULAR,
                "shortNames": [names.SHORT_NAME],
                "categories": [names.CATEGORY],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": path} for path in _SELECTABLE],
                    "additionalPrinterColumns": _columns(),
                    "schema": {"openAPIV3Schema": build_schema()},
                }
            ],
        },
    }


def render_crd() -> str:
    """Return the CustomResourceDefinition as YAML, always the same text for the same models."""
    return _HEADER + yaml.safe_dump(
        build_crd(), sort_keys=False, width=100, allow_unicode=True, default_flow_style=False
    )


def build_schema() -> JsonSchema:
    """Return the structural schema of the whole object."""
    return {
        "type": "object",
        "description": "One GitHub issue, one Daytona sandbox, and usually one run of an agent.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"Always {names.API_VERSION}."},
            "kind": {"type": "string", "description": f"Always {names.KIND}."},
            "metadata": {"type": "object"},
            "spec": structural_schema(Spec, defaults=True),
            # What the operator did not write must not seem written.
            "status": structural_schema(Status, defaults=False),
        },
    }


def structural_schema(model: type[BaseModel], *, defaults: bool) -> JsonSchema:
    """Return the model's schema in the form the API server accepts."""
    raw = model.model_json_schema(by_alias=True, mode="validation")
    return _structural(raw, raw.get("$defs", {}), defaults)


def _structural(node: JsonSchema, defs: dict[str, JsonSchema], defaults: bool) -> JsonSchema:
    node = _inlined(node, defs)
    schema = {key: node[key] for key in sorted(node, key=_reading_order) if key not in _DROPPED}
    if not defaults or schema.get("default", 0) is None:
        schema.pop("default", None)
    if "properties" in schema:
        schema["properties"] = {
            name: _structural(value, defs, defaults) for name, value in schema["properties"].items()
        }
    if "items" in schema:
        schema["items"] = _structural(schema["items"], defs, defaults)
    return schema


def _reading_order(key: str) -> tuple[int, str]:
    """Put what a reader looks for first, and what is long last."""
    return {"type": 0, "description": 1, "properties": 9, "items": 9}.get(key, 5), key


def _inlined(node: JsonSchema, defs: dict[str, JsonSchema]) -> JsonSchema:
    """Replace a reference, or a choice between something and null, by the thing itself."""
    while True:
        if "$ref" in node:
            inner = defs[node["$ref"].rpartition("/")[2]]
            node = {**inner, **_without(node, "$ref")}
        elif "anyOf" in node:
            (inner,) = (each for each in node["anyOf"] if each != {"type": "null"})
            node = {**inner, **_without(node, "anyOf")}
        else:
            return node


def _without(node: JsonSchema, key: str) -> JsonSchema:
    return {name: value for name, value in node.items() if name != key}


def _columns() -> list[dict[str, Any]]:
    # A column's path cannot join two fields, so the operator writes `owner/name#12` to the status.
    return [
        _column("Issue", ".status.issue", "Issue on GitHub."),
        _column("Phase", ".status.phase", "What is going on, in one word."),
        _column("Sandbox", ".status.sandbox.name", "Name of the sandbox in Daytona."),
        _column("State", ".status.sandbox.state", "State of the sandbox in Daytona."),
        _column("Run", ".status.run.id", "Id of the present or last run."),
        _column("PR", ".status.run.pullRequest.number", "Number of the pull request.", "integer"),
        _column("Age", ".metadata.creationTimestamp", "Age of the resource.", "date"),
        _wide(_column("Attempt", ".status.sandbox.attempt", "Which sandbox it is.", "integer")),
        _wide(_column("Last-Output", ".status.run.lastOutputAt", "Last sign of life.", "date")),
        _wide(
            _column(
                "Reason",
                '.status.conditions[?(@.type=="Ready")].reason',
                "Why the resource is ready or not.",
            )
        ),
    ]


def _column(name: str, path: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}


def _wide(column: dict[str, Any]) -> dict[str, Any]:
    return {**column, "priority": 1}
