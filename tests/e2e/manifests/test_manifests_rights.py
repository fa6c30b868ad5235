"""The rights of operator and webhook adapter: enough for every call, and not one too many."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from rights_calls import CALLS, SHIPPED, Right, caller

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.world.layout import SERVICE_ACCOUNT, manifests
from issuesandbox.ports.errors import CallError, Denied
from issuesandbox.ports.resources import ResourceKey

ROLES = ("Role", "ClusterRole")


def shipped(file: str = "rbac.yaml") -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((manifests() / "base" / file).read_text()))


def rights_of(rule: dict[str, Any]) -> Iterator[Right]:
    for resource in rule["resources"]:
        for verb in rule["verbs"]:
            for name in rule.get("resourceNames", [""]):
                yield Right(resource, verb, name)


def single_rules(rule: dict[str, Any]) -> Iterator[tuple[Right, dict[str, Any]]]:
    for right in rights_of(rule):
        single = {
            "apiGroups": rule["apiGroups"],
            "resources": [right.resource],
            "verbs": [right.verb],
        }
        yield right, {**single, "resourceNames": [right.name]} if right.name else single


def granted(file: str, home: str, account: str, without: Right | None) -> list[dict[str, Any]]:
    """Return the shipped rights for an account of a test, all of them or all but one."""
    objects = copy.deepcopy(shipped(file))
    for each in objects:
        each["metadata"]["name"] = account
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = home
        if each["kind"] in ROLES:
            singles = [single for rule in each["rules"] for single in single_rules(rule)]
            each["rules"] = [rule for right, rule in singles if right != without]
        if "roleRef" in each:
            each["roleRef"]["name"] = account
            each["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": home}]
    return objects


async def denied(call: Any) -> bool:
    try:
        await call
    except Denied:
        return True
    except CallError:
        return False
    return False


@pytest.mark.parametrize("file", SHIPPED)
def test_every_shipped_right_is_known_here(file: str) -> None:
    given = [
        right
        for each in shipped(file)
        if each["kind"] in ROLES
        for rule in each["rules"]
        for right in rights_of(rule)
    ]
    assert sorted(given) == sorted(SHIPPED[file])


def test_no_right_is_a_wildcard() -> None:
    for each in [*shipped(), *shipped("webhook-rbac.yaml"), *shipped("users.yaml")]:
        for rule in each.get("rules", ()):
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


@pytest.mark.parametrize("file", SHIPPED)
async def test_all_rights_are_enough_and_each_one_less_breaks_its_call(
    control_plane: Access, installed: None, namespace: str, file: str
) -> None:
    calls = SHIPPED[file]
    cases: dict[str, Right | None] = {f"{namespace}-full": None}
    cases |= {f"{namespace}-{number}": right for number, right in enumerate(calls)}
    objects = [
        each
        for account, right in cases.items()
        for each in granted(file, namespace, account, right)
    ]
    control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    async with caller(control_plane, namespace, f"{namespace}-full") as process:
        for right, call in calls.items():
            assert not await denied(call(process)), f"the shipped rights lack {right}"
    for number, (right, call) in enumerate(calls.items()):
        async with caller(control_plane, namespace, f"{namespace}-{number}") as process:
            assert await denied(call(process)), f"{right} is one right too many"


async def test_the_single_namespace_overlay_has_no_right_outside(
    control_plane: Access, installed: None, namespace: str
) -> None:
    text = control_plane.kubectl("kustomize", str(manifests() / "overlays/single-namespace")).stdout
    objects = [
        each
        for each in yaml.safe_load_all(text)
        if each["kind"] in ("ServiceAccount", "Role", "RoleBinding")
        and each["metadata"]["name"].startswith(SERVICE_ACCOUNT)
    ]
    for each in objects:
        each["metadata"]["namespace"] = namespace
        for subject in each.get("subjects", ()):
            subject["namespace"] = namespace
    control_plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    async with caller(control_plane, namespace, SERVICE_ACCOUNT) as operator:
        for right, call in CALLS.items():
            assert not await denied(call(operator)), f"the overlay lacks {right}"
    async with caller(control_plane, namespace, SERVICE_ACCOUNT) as operator:
        operator.key = ResourceKey("default", "none", "none")
        assert await denied(operator.resources.get(operator.key))


@pytest.mark.parametrize(
    ("role", "verb", "allowed"),
    [
        ("view", "get", True),
        ("view", "create", False),
        ("view", "patch", False),
        ("edit", "get", True),
        ("edit", "patch", True),
        ("edit", "delete", True),
    ],
)
def test_users_get_what_their_role_in_the_namespace_says(
    role: str, verb: str, allowed: bool
) -> None:
    """By the labels that Kubernetes aggregates by; no controller runs here that does it."""
    label = f"rbac.authorization.k8s.io/aggregate-to-{role}"
    verbs = {
        given
        for each in shipped("users.yaml")
        if each["metadata"]["labels"].get(label) == "true"
        for rule in each["rules"]
        for given in rule["verbs"]
    }
    assert (verb in verbs) is allowed


def test_users_never_write_the_status() -> None:
    resources = {
        resource
        for each in shipped("users.yaml")
        for rule in each["rules"]
        for resource in rule["resources"]
    }
    assert resources == {"issuesandboxes"}
