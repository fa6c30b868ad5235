"""Names agree across files: every reference of one object to another leads somewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

Build = Callable[[str], list[dict[str, Any]]]

OVERLAYS = (
    "base",
    "overlays/single-namespace",
    "overlays/ha",
    "overlays/kind",
    "overlays/monitoring",
)
CONFIGURATION = Path(__file__).parents[3] / "docs" / "configuration.md"
EXAMPLES = Path(__file__).parents[3] / "manifests" / "examples"


def names(objects: list[dict[str, Any]], kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in objects if each["kind"] == kind}


def of_kind(objects: list[dict[str, Any]], *kinds: str) -> Iterator[dict[str, Any]]:
    return (each for each in objects if each["kind"] in kinds)


def pod_labels(objects: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        each["spec"]["template"]["metadata"]["labels"] for each in of_kind(objects, "Deployment")
    ]


def selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rights_are_bound_to_roles_and_accounts_that_exist(build: Build, overlay: str) -> None:
    objects = build(overlay)
    accounts = names(objects, "ServiceAccount")
    for binding in of_kind(objects, "RoleBinding", "ClusterRoleBinding"):
        assert binding["roleRef"]["name"] in names(objects, binding["roleRef"]["kind"])
        assert {subject["name"] for subject in binding["subjects"]} <= accounts
    for deployment in of_kind(objects, "Deployment"):
        assert deployment["spec"]["template"]["spec"]["serviceAccountName"] in accounts


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_selectors_find_pods_and_ports_have_their_names(build: Build, overlay: str) -> None:
    objects = build(overlay)
    for each in of_kind(objects, "Deployment"):
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert selects(each["spec"]["selector"]["matchLabels"], labels)
        for spread in each["spec"]["template"]["spec"].get("topologySpreadConstraints", ()):
            assert selects(spread["labelSelector"]["matchLabels"], labels)
    for each in of_kind(objects, "PodDisruptionBudget"):
        assert any(
            selects(each["spec"]["selector"]["matchLabels"], it) for it in pod_labels(objects)
        )
    for each in of_kind(objects, "NetworkPolicy"):
        wanted = each["spec"]["podSelector"].get("matchLabels", {})
        assert any(selects(wanted, it) for it in pod_labels(objects))
    for each in of_kind(objects, "Service"):
        chosen = [
            container
            for deployment in of_kind(objects, "Deployment")
            if selects(
                each["spec"]["selector"], deployment["spec"]["template"]["metadata"]["labels"]
            )
            for container in deployment["spec"]["template"]["spec"]["containers"]
        ]
        ports = {port["name"] for container in chosen for port in container["ports"]}
        assert {port["targetPort"] for port in each["spec"]["ports"]} <= ports


def test_prometheus_finds_the_services(build: Build) -> None:
    objects = build("overlays/monitoring")
    services = list(of_kind(objects, "Service"))
    for monitor in of_kind(objects, "ServiceMonitor"):
        found = [
            each
            for each in services
            if selects(monitor["spec"]["selector"]["matchLabels"], each["metadata"]["labels"])
        ]
        assert found
        ports = {port["name"] for each in found for port in each["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_one_image_with_one_tag_runs_everywhere(build: Build, overlay: str) -> None:
    images = {
        container["image"]
        for each in of_kind(build(overlay), "Deployment")
        for container in each["spec"]["template"]["spec"]["containers"]
    }
    assert len(images) == 1
    assert ":" in images.pop()


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_configmaps_and_variables_are_all_documented(build: Build, overlay: str) -> None:
    documented = CONFIGURATION.read_text()
    for each in of_kind(build(overlay), "Deployment"):
        spec = each["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for container in spec["containers"]:
            mounts = {mount["name"] for mount in container.get("volumeMounts", ())}
            assert mounts <= set(volumes)
            for variable in container.get("env", ()):
                assert f"`{variable['name'].removesuffix('_FILE')}`" in documented, variable["name"]
                source = variable.get("valueFrom", {}).get("secretKeyRef")
                assert source is None or f"`{source['name']}`" in documented
        for volume in volumes.values():
            assert f"`{volume['secret']['secretName']}`" in documented


def test_the_namespace_is_one_and_the_same(build: Build) -> None:
    for overlay in OVERLAYS:
        objects = build(overlay)
        (home,) = names(objects, "Namespace")
        assert {each["metadata"].get("namespace", home) for each in objects} == {home}


def test_every_alert_links_to_the_runbook_by_the_one_address_that_is_set(build: Build) -> None:
    source = yaml.safe_load((EXAMPLES.parent / "monitoring" / "runbook.yaml").read_text())
    objects = build("overlays/monitoring")
    assert source["metadata"]["name"] not in names(objects, "ConfigMap"), "only kustomize reads it"
    (rules,) = of_kind(objects, "PrometheusRule")
    links = [
        rule["annotations"]["runbook_url"]
        for group in rules["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    assert links
    for link in links:
        address, _, section = link.partition("#")
        assert address == source["data"]["address"]
        assert address.startswith("https://")
        assert section
