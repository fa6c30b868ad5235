"""The overlays as kubectl renders them, and the monitoring kinds they use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.world.layout import manifests

Build = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def build(control_plane: Access) -> Build:
    """Render a folder of the manifests; each folder once."""
    rendered: dict[str, list[dict[str, Any]]] = {}

    def render(folder: str) -> list[dict[str, Any]]:
        if folder not in rendered:
            text = control_plane.kubectl("kustomize", str(manifests() / folder)).stdout
            rendered[folder] = list(yaml.safe_load_all(text))
        return rendered[folder]

    return render


def _kind(name: str, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return a CRD with the fields we use: the API server prunes and refuses all others."""
    group = "monitoring.coreos.com"
    schema = {"type": "object", "properties": {"spec": spec}, "required": ["spec"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": name, "plural": plural, "singular": name.lower()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
# As Prometheus reads them: larger units first, each at most once.
_UNITS = ("y", "w", "d", "h", "m", "s", "ms")
_LENGTH = "".join(f"([0-9]+{unit})?" for unit in _UNITS)
_DURATION = {"type": "string", "pattern": f"^{_LENGTH}$"}
_RULE = _object(
    ("expr",),
    alert=_TEXT,
    record={"type": "string", "pattern": "^[a-zA-Z_:][a-zA-Z0-9_:]*$"},
    expr=_TEXT,
    labels=_TEXTS,
    annotations=_TEXTS,
    **{"for": _DURATION},
)
_GROUP = _object(("name",), name=_TEXT, interval=_DURATION, rules={"type": "array", "items": _RULE})
_ENDPOINT = _object(port=_TEXT, path=_TEXT, interval=_DURATION, scrapeTimeout=_DURATION)
_MONITOR = _object(
    ("endpoints", "selector"),
    selector=_object(matchLabels=_TEXTS),
    endpoints={"type": "array", "items": _ENDPOINT},
    namespaceSelector=_object(matchNames={"type": "array", "items": _TEXT}),
)


@pytest.fixture(scope="session")
def monitoring_kinds(control_plane: Access) -> None:
    """ServiceMonitor and PrometheusRule, with those fields of theirs that the manifests use."""
    kinds = [
        _kind("ServiceMonitor", "servicemonitors", _MONITOR),
        _kind(
            "PrometheusRule",
            "prometheusrules",
            _object(
                groups={
                    "type": "array",
                    "items": _GROUP,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                }
            ),
        ),
    ]
    control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all(kinds))
    for each in kinds:
        name = f"crd/{each['metadata']['name']}"
        wait = ("wait", "--timeout=30s", name)
        control_plane.kubectl(*wait, "--for=jsonpath={.status.conditions}")
        control_plane.kubectl(*wait, "--for=condition=Established")
