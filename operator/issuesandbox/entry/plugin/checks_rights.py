"""Rights, as `kubectl isb doctor` looks at them: the caller's and the operator's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from issuesandbox.api.names import (
    CURSOR_MAP,
    FREEZE_MAP,
    GROUP,
    PLURAL,
    POLICY_MAP,
    SETTINGS_MAP,
    STATUS_MAP,
)
from issuesandbox.entry.plugin.checks import ADAPTER, OPERATOR, Finding, Verdict
from issuesandbox.entry.plugin.cluster import Cluster, failures


class Right(NamedTuple):
    """What an account may do, where the resources are or only beside the operator."""

    group: str
    resource: str
    verb: str
    name: str = ""
    in_operator_namespace: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f' {self.name}' if self.name else ''}"


def _at_home(group: str, resource: str, verb: str, name: str = "") -> Right:
    return Right(group, resource, verb, name, in_operator_namespace=True)


_LEASES, _EVENTS = "coordination.k8s.io", "events.k8s.io"

# One for each rule of the manifests: what is missing is a whole rule, never a single verb.
OPERATORS = (
    Right(GROUP, PLURAL, "watch"),
    Right(GROUP, f"{PLURAL}/status", "patch"),
    Right(_EVENTS, "events", "create"),
    Right("", "configmaps", "create"),
    Right("", "secrets", "get"),
    _at_home("", "namespaces", "get"),
    _at_home(_LEASES, "leases", "update"),
    _at_home("", "configmaps", "watch", SETTINGS_MAP),
    _at_home("", "configmaps", "watch", FREEZE_MAP),
    _at_home("", "configmaps", "get", STATUS_MAP),
)
ADAPTERS = (
    Right(GROUP, PLURAL, "watch"),
    _at_home("", "configmaps", "watch", POLICY_MAP),
    _at_home("", "configmaps", "patch", CURSOR_MAP),
    _at_home(_LEASES, "leases", "update", "issuesandbox-webhook-catch-up"),
    _at_home(_LEASES, "leases", "create"),
    _at_home(_EVENTS, "events", "create"),
)


def callers_rights(cluster: Cluster, _: str) -> Iterator[Finding]:
    """Say whether the caller may edit resources in the namespace of their kubeconfig."""
    place = cluster.namespace
    verbs = ("get", "list", "watch", "create", "patch", "delete")
    missing = [verb for verb in verbs if not _may(Right(GROUP, PLURAL, verb), place)]
    if missing:
        text = f"you may not {', '.join(missing)} {PLURAL} in {place}"
        yield Finding("your rights", Verdict.WARNING, text, "ask for the role edit there")
    else:
        yield Finding("your rights", Verdict.OK, f"you may edit {PLURAL} in {place}")


def operators_rights(cluster: Cluster, home: str) -> Iterator[Finding]:
    """Say whether the operator's account has its rights where the caller looks."""
    yield _accounts_rights("its rights", OPERATOR, OPERATORS, cluster, home)


def adapters_rights(cluster: Cluster, home: str) -> Iterator[Finding]:
    """Say the same of the webhook adapter's account."""
    yield _accounts_rights("adapter's rights", ADAPTER, ADAPTERS, cluster, home)


def _accounts_rights(
    check: str, account: str, rights: Sequence[Right], cluster: Cluster, home: str
) -> Finding:
    user = f"system:serviceaccount:{home}:{account}"
    missing = [
        str(right)
        for right in rights
        if not _may(right, home if right.in_operator_namespace else cluster.namespace, user)
    ]
    if missing:
        text = f"{account} may not {', '.join(missing)} for resources in {cluster.namespace}"
        return Finding(check, Verdict.FAILED, text, "kubectl apply -k manifests/base")
    return Finding(check, Verdict.OK, f"{account} may look after {cluster.namespace}")


def _may(right: Right, namespace: str, user: str | None = None) -> bool:
    from kubernetes import client

    resource, _, part = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": part,
        "verb": right.verb,
        # A namespace is an object in itself.
        "name": namespace if resource == "namespaces" else right.name,
        "namespace": namespace,
    }
    api: Any = client.AuthorizationV1Api()
    with failures("rights"):
        if user is None:
            body: dict[str, Any] = {"spec": {"resourceAttributes": attributes}}
            return bool(api.create_self_subject_access_review(body).status.allowed)
        body = {"spec": {"resourceAttributes": attributes, "user": user}}
        return bool(api.create_subject_access_review(body).status.allowed)
