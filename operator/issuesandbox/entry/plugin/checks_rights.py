"""Rights, as `kubectl isb doctor` looks at them: the caller's and the operator's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from issuesandbox.api.names import GROUP, PLURAL
from issuesandbox.entry.plugin.checks import OPERATOR, Finding, Verdict
from issuesandbox.entry.plugin.cluster import Cluster, failures


class _Right(NamedTuple):
    group: str
    resource: str
    verb: str
    in_operator_namespace: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


# One for each rule of the manifests: what is missing is a whole rule, never a single verb.
_OPERATORS = (
    _Right(GROUP, PLURAL, "watch"),
    _Right(GROUP, f"{PLURAL}/status", "patch"),
    _Right("events.k8s.io", "events", "create"),
    _Right("", "configmaps", "create"),
    _Right("", "secrets", "get"),
    _Right("coordination.k8s.io", "leases", "update", in_operator_namespace=True),
)


def callers_rights(cluster: Cluster, _: str) -> Iterator[Finding]:
    """Say whether the caller may edit resources in the namespace of their kubeconfig."""
    place = cluster.namespace
    verbs = ("get", "list", "watch", "create", "patch", "delete")
    missing = [verb for verb in verbs if not _may(_Right(GROUP, PLURAL, verb), place)]
    if missing:
        text = f"you may not {', '.join(missing)} {PLURAL} in {place}"
        yield Finding("your rights", Verdict.WARNING, text, "ask for the role edit there")
    else:
        yield Finding("your rights", Verdict.OK, f"you may edit {PLURAL} in {place}")


def operators_rights(cluster: Cluster, home: str) -> Iterator[Finding]:
    """Say whether the operator's account has its rights where the caller looks."""
    user = f"system:serviceaccount:{home}:{OPERATOR}"
    missing = [
        str(right)
        for right in _OPERATORS
        if not _may(right, home if right.in_operator_namespace else cluster.namespace, user)
    ]
    if missing:
        text = f"{OPERATOR} may not {', '.join(missing)} for resources in {cluster.namespace}"
        yield Finding("its rights", Verdict.FAILED, text, "kubectl apply -k manifests/base")
    else:
        yield Finding("its rights", Verdict.OK, f"{OPERATOR} may look after {cluster.namespace}")


def _may(right: _Right, namespace: str, user: str | None = None) -> bool:
    from kubernetes import client

    resource, _, part = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": part,
        "verb": right.verb,
        "namespace": namespace,
    }
    api: Any = client.AuthorizationV1Api()
    with failures("rights"):
        if user is None:
            body: dict[str, Any] = {"spec": {"resourceAttributes": attributes}}
            return bool(api.create_self_subject_access_review(body).status.allowed)
        body = {"spec": {"resourceAttributes": attributes, "user": user}}
        return bool(api.create_subject_access_review(body).status.allowed)
