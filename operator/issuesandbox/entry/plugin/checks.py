"""The checks of `kubectl isb doctor`: each one looks and never changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

import click
import yaml

from issuesandbox.api.crd import render_crd
from issuesandbox.api.names import CRD_NAME, FREEZE_MAP, POLICY_KEY, POLICY_MAP, STATUS_MAP
from issuesandbox.clock import SystemClock
from issuesandbox.entry.plugin.cluster import Cluster, MissingError, failures
from issuesandbox.entry.plugin.credentials import DAYTONA_SECRET, GITHUB_SECRET
from issuesandbox.entry.plugin.settings_status import opinion_of
from issuesandbox.entry.plugin.shape import span

OPERATOR = "issuesandbox-operator"
ADAPTER = "issuesandbox-webhook"
_OLDEST_SERVER = (1, 31)
_SKEW = timedelta(seconds=5)
_LEASE_AGE = timedelta(seconds=30)


class Verdict(StrEnum):
    """What a check found."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "FAILED"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination."""

    check: str
    verdict: Verdict
    what: str
    fix: str = ""


def examine(cluster: Cluster, home: str) -> list[Finding]:
    """Look at everything; a check that the caller may not make is unknown."""
    from issuesandbox.entry.plugin.checks_daytona import daytona_findings
    from issuesandbox.entry.plugin.checks_github import github_findings
    from issuesandbox.entry.plugin.checks_rights import (
        adapters_rights,
        callers_rights,
        operators_rights,
    )

    checks = {
        "CRD": _crd,
        "your rights": callers_rights,
        "its rights": operators_rights,
        "adapter's rights": adapters_rights,
        "operator": _operator,
        "leases": _leases,
        "settings": _settings,
        "policy": _policy,
        "secrets": _secrets,
        "Daytona": daytona_findings,
        "GitHub": github_findings,
    }

    findings = list(_server())
    for check, look in checks.items():
        findings += _guarded(check, look(cluster, home))
    return findings


def _guarded(check: str, findings: Iterator[Finding]) -> list[Finding]:
    try:
        return list(findings)
    except click.ClickException as error:
        return [Finding(check, Verdict.UNKNOWN, error.message, "ask somebody with more rights")]


def _server() -> Iterator[Finding]:
    from kubernetes import client

    with failures("the API server"):
        version, _, headers = client.VersionApi().get_code_with_http_info()
    number = (int(version.major), int(version.minor.rstrip("+")))
    verdict = Verdict.OK if number >= _OLDEST_SERVER else Verdict.FAILED
    yield Finding(
        "API server",
        verdict,
        version.git_version,
        "" if verdict is Verdict.OK else "1.31 or newer is needed",
    )
    skew = abs(SystemClock().now() - parsedate_to_datetime(headers["Date"]))
    if skew > _SKEW:
        text = f"this machine and the API server are {span(skew)} apart"
        yield Finding("clock", Verdict.WARNING, text, "set both clocks by NTP")
    else:
        yield Finding("clock", Verdict.OK, "this machine and the API server agree")


def _crd(_: Cluster, __: str) -> Iterator[Finding]:
    from kubernetes import client

    apply = "kubectl apply --server-side -f crds/"
    api: Any = client.CustomObjectsApi()
    try:
        with failures(f"CustomResourceDefinition {CRD_NAME}"):
            found = api.get_cluster_custom_object(
                "apiextensions.k8s.io", "v1", "customresourcedefinitions", CRD_NAME
            )
    except MissingError:
        yield Finding("CRD", Verdict.FAILED, "not installed", apply)
        return
    shipped = yaml.safe_load(render_crd())
    schemas = [
        {each["name"]: each["schema"] for each in crd["spec"]["versions"]}
        for crd in (found, shipped)
    ]
    if _without_defaults(schemas[0]) == _without_defaults(schemas[1]):
        yield Finding("CRD", Verdict.OK, "as shipped with this version")
    else:
        yield Finding("CRD", Verdict.WARNING, "of another version than this program", apply)


def _without_defaults(value: Any) -> Any:
    """Return a schema without what the API server fills in by itself."""
    if isinstance(value, dict):
        return {
            name: _without_defaults(each)
            for name, each in value.items()
            if not (name == "x-kubernetes-map-type" or each is None)
        }
    return [_without_defaults(each) for each in value] if isinstance(value, list) else value


def _operator(_: Cluster, home: str) -> Iterator[Finding]:
    from kubernetes import client

    apply = "kubectl apply -k manifests/base"
    api: Any = client.AppsV1Api()
    try:
        with failures(f"Deployment {home}/{OPERATOR}"):
            found = api.read_namespaced_deployment(OPERATOR, home)
    except MissingError:
        yield Finding("operator", Verdict.FAILED, f"no Deployment {home}/{OPERATOR}", apply)
        return
    ready, wanted = found.status.ready_replicas or 0, found.spec.replicas
    look = f"kubectl -n {home} describe pods; kubectl -n {home} logs deploy/{OPERATOR}"
    verdict = Verdict.OK if ready == wanted else Verdict.WARNING if ready else Verdict.FAILED
    fix = "" if ready == wanted else look
    yield Finding("operator", verdict, f"{ready} of {wanted} replicas are ready", fix)


def _leases(_: Cluster, home: str) -> Iterator[Finding]:
    from kubernetes import client

    api: Any = client.CoordinationV1Api()
    with failures(f"leases in {home}"):
        found = api.list_namespaced_lease(home).items
    now, acting = SystemClock().now(), []
    for lease in found:
        name = lease.metadata.name.removeprefix("issuesandbox-")
        fresh = lease.spec.renew_time and now - lease.spec.renew_time < _LEASE_AGE
        if (
            name.startswith(("leader", "shard-", "singleton"))
            and lease.spec.holder_identity
            and fresh
        ):
            acting.append(f"{name}: {lease.spec.holder_identity}")
    if acting:
        yield Finding("leases", Verdict.OK, ", ".join(sorted(acting)))
    else:
        text = "no replica holds a lease: nobody acts"
        yield Finding("leases", Verdict.FAILED, text, "see whether the operator runs, above")


def _settings(cluster: Cluster, home: str) -> Iterator[Finding]:
    opinion = opinion_of(cluster.config_map(home, STATUS_MAP))
    edit = f"kubectl -n {home} edit configmap issuesandbox"
    if opinion is None:
        text = "the operator has not judged them yet"
        yield Finding("settings", Verdict.UNKNOWN, text, "see whether the operator runs, above")
    elif not opinion.valid:
        yield Finding("settings", Verdict.FAILED, opinion.message, edit)
    elif opinion.reason == "Accepted":
        yield Finding("settings", Verdict.OK, opinion.message)
    else:
        yield Finding("settings", Verdict.WARNING, opinion.message, edit)
    freeze = cluster.config_map(home, FREEZE_MAP)
    if freeze is not None:
        since = f"by {freeze.get('by', 'somebody')} since {freeze.get('at', '?')}"
        text = f"{since}: {freeze.get('reason', 'no reason given')}"
        yield Finding("freeze", Verdict.WARNING, text, "kubectl isb unfreeze")


def _policy(cluster: Cluster, home: str) -> Iterator[Finding]:
    from issuesandbox.domain.webhook.policy import PolicyError, read_policy

    stored = cluster.config_map(home, POLICY_MAP)
    if stored is None:
        yield Finding("policy", Verdict.OK, "there is none; the defaults are in force")
        return
    edit = f"kubectl -n {home} edit configmap {POLICY_MAP}"
    try:
        if POLICY_KEY not in stored:
            raise PolicyError(f"the ConfigMap has no key `{POLICY_KEY}`")
        read_policy(stored[POLICY_KEY])
    except PolicyError as error:
        yield Finding("policy", Verdict.FAILED, str(error), edit)
    else:
        yield Finding("policy", Verdict.OK, "can be used")


def _secrets(cluster: Cluster, home: str) -> Iterator[Finding]:
    wanted = {
        DAYTONA_SECRET: (("api-key",), Verdict.FAILED),
        GITHUB_SECRET: (("app-id", "private-key", "webhook-secret"), Verdict.WARNING),
        "issuesandbox-agent": ((), Verdict.WARNING),
    }
    for name, (keys, otherwise) in wanted.items():
        create = f"kubectl -n {home} create secret generic {name} …: docs/install.md, step 2"
        try:
            with failures(f"Secret {home}/{name}"):
                data = cluster.core.read_namespaced_secret(name, home).data or {}
        except MissingError:
            yield Finding(f"Secret {name}", otherwise, "does not exist", create)
            continue
        missing = [key for key in keys if not data.get(key)]
        if name == GITHUB_SECRET and data.get("token"):
            missing = [key for key in missing if key == "webhook-secret"]
        text = f"lacks {', '.join(missing)}" if missing else "is there"
        verdict = otherwise if missing else Verdict.OK
        yield Finding(f"Secret {name}", verdict, text, create if missing else "")
