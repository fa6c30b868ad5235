"""Bad resources are refused by a real API server, in words a person understands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes.client import ApiException
from tests.e2e.resource.resource_access import Resources, resource, words_of

from issuesandbox.local.control_plane.access import Access

DURATION = "must be a duration such as 90s, 5m, 24h or 1h30m"


def issue(**fields: Any) -> dict[str, Any]:
    return {"issue": {"repository": "octocat/hello-world", "number": 12, **fields}}


def agent(**fields: Any) -> dict[str, Any]:
    return {"run": {"agent": fields}}


def limits(**fields: Any) -> dict[str, Any]:
    return {"run": {"limits": fields}}


def publish(**fields: Any) -> dict[str, Any]:
    return {"run": {"publish": fields}}


def sandbox(**fields: Any) -> dict[str, Any]:
    return {"sandbox": fields}


def cleanup(**fields: Any) -> dict[str, Any]:
    return {"cleanup": fields}


def clone(**fields: Any) -> dict[str, Any]:
    return {"repository": fields}


# name of the case: (changed part of the spec, field named by the server, its words)
BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "no repository": ({"issue": {"number": 1}}, "spec.issue.repository", "Required value"),
    "no number": ({"issue": {"repository": "o/r"}}, "spec.issue.number", "Required value"),
    "a repository without owner": (
        issue(repository="hello-world"),
        "spec.issue.repository",
        'must be "owner/name" as on GitHub',
    ),
    "a repository as address": (
        issue(repository="https://github.com/o/r"),
        "spec.issue.repository",
        'must be "owner/name" as on GitHub',
    ),
    "a repository named by dots": (
        issue(repository="octocat/.."),
        "spec.issue.repository",
        'must be "owner/name" as on GitHub',
    ),
    "a repository with a line break": (
        issue(repository="octocat/hello\n"),
        "spec.issue.repository",
        'must be "owner/name" as on GitHub',
    ),
    "a repository with .git": (
        issue(repository="octocat/hello-world.git"),
        "spec.issue.repository",
        'must not end in ".git"',
    ),
    "issue number zero": (issue(number=0), "spec.issue.number", "greater than or equal to 1"),
    "an issue number as text": (issue(number="12"), "spec.issue.number", "must be of type integer"),
    "a negative id": (issue(id=-1), "spec.issue.id", "greater than or equal to 1"),
    "a long title": (issue(title="t" * 257), "spec.issue.title", "Too long"),
    "a body over 64 KiB": (issue(body="b" * 65_537), "spec.issue.body", "Too long"),
    "a body over 64 KiB in bytes": (
        issue(body="😀" * 16_385),
        "spec.issue.body",
        "must be at most 65536 bytes in UTF-8",
    ),
    "an author with a space": (issue(author="mona lisa"), "spec.issue.author", "a GitHub login"),
    "a url of another kind": (issue(url="ftp://x"), "spec.issue.url", "an http:// or https://"),
    "101 labels": (issue(labels=["bug"] * 101), "spec.issue.labels", "must have at most 100 items"),
    "an unknown desired state": (
        {"desiredState": "Paused"},
        "spec.desiredState",
        'supported values: "Running", "Stopped"',
    ),
    "an unknown deletion policy": (
        {"deletionPolicy": "Keep"},
        "spec.deletionPolicy",
        'supported values: "Delete", "Orphan"',
    ),
    "a trigger with a space": (
        {"run": {"trigger": "run again"}},
        "spec.run.trigger",
        "must be 1 to 63 letters, digits",
    ),
    "a trigger that looks like a flag": (
        {"run": {"trigger": "--force"}},
        "spec.run.trigger",
        "any new value starts a new run",
    ),
    "a trigger as number": ({"run": {"trigger": 2}}, "spec.run.trigger", "must be of type string"),
    "a prompt over 16 KiB": (
        {"run": {"prompt": "ü" * 8_193}},
        "spec.run.prompt",
        "must be at most 16384 bytes in UTF-8",
    ),
    "a custom agent without a command": (
        agent(profile="custom"),
        "spec.run.agent",
        "profile custom needs a command",
    ),
    "an empty command": (agent(command=[]), "spec.run.agent.command", "at least 1 items"),
    "a budget for another agent": (
        agent(profile="cursor", maxBudgetUSD="1"),
        "spec.run.agent",
        "maxBudgetUSD works with profile claude only",
    ),
    "a budget as number": (agent(maxBudgetUSD=5), "spec.run.agent.maxBudgetUSD", "of type string"),
    "a budget in euros": (
        agent(maxBudgetUSD="5 EUR"),
        "spec.run.agent.maxBudgetUSD",
        "an amount of US dollars",
    ),
    "a model that is a flag": (
        agent(model="--mcp-config=x"),
        "spec.run.agent.model",
        "must be the name of a model",
    ),
    "zero turns": (agent(maxTurns=0), "spec.run.agent.maxTurns", "greater than or equal to 1"),
    "an unknown agent": (agent(profile="emacs"), "spec.run.agent.profile", '"claude", "cursor"'),
    "a variable given twice": (
        agent(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        "spec.run.agent.env[1]",
        "Duplicate value",
    ),
    "a variable with a dash": (
        agent(env=[{"name": "NODE-ENV", "value": "1"}]),
        "spec.run.agent.env[0].name",
        "must be the name of an environment variable",
    ),
    "a variable without value": (
        agent(env=[{"name": "A"}]),
        "spec.run.agent.env[0].value",
        "Required value",
    ),
    "a Secret in upper case": (
        agent(envFrom=[{"secretRef": {"name": "Key"}}]),
        "spec.run.agent.envFrom[0].secretRef.name",
        "must be the name of a Kubernetes object",
    ),
    "a limit without unit": (limits(agent="300"), "spec.run.limits.agent", DURATION),
    "a limit in days": (limits(run="1d"), "spec.run.limits.run", DURATION),
    "a limit in words": (limits(agent="5 minutes"), "spec.run.limits.agent", DURATION),
    "a limit of nothing": (limits(agent="0s"), "spec.run.limits", "agent must be at least 1s"),
    "inactivity over agent": (
        limits(inactivity="6m", agent="300s"),
        "spec.run.limits",
        "inactivity must not be longer than agent",
    ),
    "agent over run": (
        limits(agent="1h", run="59m59s"),
        "spec.run.limits",
        "agent must not be longer than run",
    ),
    "inactivity over run": (
        limits(inactivity="16m", run="15m"),
        "spec.run.limits",
        "inactivity must not be longer than run",
    ),
    "a branch with spaces": (
        publish(branch="my fix"),
        "spec.run.publish.branch",
        "must be a name that git accepts",
    ),
    "a branch that is a flag": (
        publish(branch="--delete"),
        "spec.run.publish.branch",
        "must be a name that git accepts",
    ),
    "a branch out of its folder": (
        publish(branch="a/../b"),
        "spec.run.publish.branch",
        "must be a name that git accepts",
    ),
    "a branch into itself": (
        publish(branch="main", base="main"),
        "spec.run.publish",
        "branch and base must differ",
    ),
    "snapshot and image": (
        sandbox(snapshot="base", image="debian:12"),
        "spec.sandbox",
        "give at most one of snapshot and image",
    ),
    "a size for a snapshot": (
        sandbox(snapshot="base", resources={"cpu": 2}),
        "spec.sandbox",
        "resources cannot be given with a snapshot",
    ),
    "an image of two lines": (
        sandbox(image="debian:12\nRUN curl evil"),
        "spec.sandbox.image",
        "must be the name of an image",
    ),
    "memory as quantity": (
        sandbox(image="debian:12", resources={"memory": "4Gi"}),
        "spec.sandbox.resources.memory",
        "must be of type integer",
    ),
    "no cores": (
        sandbox(image="debian:12", resources={"cpu": 0}),
        "spec.sandbox.resources.cpu",
        "greater than or equal to 1",
    ),
    "an archive after years": (
        sandbox(autoArchive="8760h"),
        "spec.sandbox",
        "autoArchive must be at most 720h",
    ),
    "a negative autoStop": (sandbox(autoStop="-1m"), "spec.sandbox.autoStop", "never negative"),
    "all blocked but some allowed": (
        sandbox(network={"blockAll": True, "allowDomains": ["example.com"]}),
        "spec.sandbox.network",
        "blockAll leaves nothing to allow",
    ),
    "a network without mask": (
        sandbox(network={"allowCIDRs": ["10.0.0.1"]}),
        "spec.sandbox.network.allowCIDRs[0]",
        "must be a network in CIDR notation",
    ),
    "a domain with a path": (
        sandbox(network={"allowDomains": ["example.com/x"]}),
        "spec.sandbox.network.allowDomains[0]",
        "must be a domain",
    ),
    "a user with a space": (sandbox(user="a b"), "spec.sandbox.user", "must be a Linux user name"),
    "a password in the address": (
        clone(cloneURL="https://me:secret@github.com/octocat/hello-world"),
        "spec.repository.cloneURL",
        "must not contain a user or password",
    ),
    "an address of ssh": (
        clone(cloneURL="git@github.com:octocat/hello-world"),
        "spec.repository.cloneURL",
        "must be an http:// or https:// address",
    ),
    "another repository without credentials": (
        clone(cloneURL="https://github.com/octocat/other"),
        "spec",
        "name a Secret in repository.credentialsSecretRef",
    ),
    "a repository that only ends alike": (
        clone(cloneURL="https://github.com/evil-octocat/hello-world"),
        "spec",
        "name a Secret in repository.credentialsSecretRef",
    ),
    "negative retention": (cleanup(retention="-24h"), "spec.cleanup.retention", "never negative"),
    "an unknown cleanup": (
        cleanup(onSuccess="Burn"),
        "spec.cleanup.onSuccess",
        'supported values: "Delete", "Stop", "Archive", "Retain"',
    ),
    "a date without time": (
        cleanup(deleteAfter="tomorrow"),
        "spec.cleanup.deleteAfter",
        "must be of type date-time",
    ),
    "an hour too many": (
        cleanup(window={"start": "24:00", "end": "06:00"}),
        "spec.cleanup.window.start",
        "must be a time of day in UTC",
    ),
    "a window without end": (
        cleanup(window={"start": "22:00"}),
        "spec.cleanup.window.end",
        "Required value",
    ),
    "a window of no length": (
        cleanup(window={"start": "22:00", "end": "22:00"}),
        "spec.cleanup.window",
        "start and end must differ",
    ),
    "a day given twice": (
        cleanup(window={"start": "22:00", "end": "06:00", "days": ["Sat", "Sat"]}),
        "spec.cleanup.window.days[1]",
        "Duplicate value",
    ),
    "no attempts": ({"recovery": {"maxAttempts": 0}}, "spec.recovery.maxAttempts", "equal to 1"),
    "a flag as text": ({"flags": {"healthProbe": "off"}}, "spec.flags.healthProbe", "boolean"),
    "an unknown field": (limits(agnet="5m"), "spec.run.limits.agnet", "unknown field"),
}

GOOD: dict[str, dict[str, Any]] = {
    "one limit alone": limits(agent="20m"),
    "limits of equal length": limits(inactivity="300s", agent="5m", run="5m"),
    "the same repository on another host": clone(
        cloneURL="https://github.example.com/Octocat/Hello-World.git"
    ),
    "another repository with credentials": clone(
        cloneURL="https://example.com/x", credentialsSecretRef={"name": "key"}
    ),
    "a branch with letters of the world": clone(ref="feature/ünïcode@2"),
    "a sandbox that never stops": sandbox(autoStop="0s", autoArchive="720h"),
    "networks of both kinds": sandbox(network={"allowCIDRs": ["10.0.0.0/8", "2001:db8::/32"]}),
    "names only large companies have": issue(repository="corp_x/.github", author="renovate[bot]"),
    "a body of letters that JSON writes with six": issue(body="<" * 65_536),
    "a body with NUL": issue(body="a\x00b"),
    "a moment in another time zone": cleanup(deleteAfter="2030-01-31T18:00:00+02:00"),
    "no retention": cleanup(retention="0s"),
}

FIRST = {"repository": "octocat/hello-world", "number": 12}

# name of the case: (issue before, issue after, the server's words)
CHANGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another repository": (
        FIRST,
        {**FIRST, "repository": "octocat/spoon-knife"},
        "repository cannot be changed",
    ),
    "another number": (FIRST, {**FIRST, "number": 13}, "number cannot be changed"),
    "an id added": (FIRST, {**FIRST, "id": 99}, "id cannot be added or removed later"),
    "an id removed": ({**FIRST, "id": 99}, FIRST, "id cannot be added or removed later"),
    "another id": ({**FIRST, "id": 99}, {**FIRST, "id": 98}, "id cannot be changed"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_resource_is_refused(dry_resources: Resources, case: str) -> None:
    spec, field, words = BAD[case]
    refusal = dry_resources.refusal(resource(**spec))
    assert words in refusal
    assert field in refusal
    assert "evaluation error" not in refusal


@pytest.mark.parametrize("case", CHANGED)
def test_the_identity_of_the_issue_never_changes(resources: Resources, case: str) -> None:
    before, after, words = CHANGED[case]
    stored = resources.create(resource(issue=before))
    stored["spec"]["issue"] = after
    with pytest.raises(ApiException) as refused:
        resources.replace(stored)
    assert words in words_of(refused.value)


def test_the_text_of_the_issue_may_change(resources: Resources) -> None:
    stored = resources.create(resource(issue={**FIRST, "id": 99, "title": "Old"}))
    stored["spec"]["issue"] |= {"title": "New", "body": "text", "labels": ["bug"]}
    assert resources.replace(stored)["spec"]["issue"]["title"] == "New"


@pytest.mark.parametrize("case", GOOD)
def test_a_good_resource_is_not_refused(dry_resources: Resources, case: str) -> None:
    assert dry_resources.refusal(resource(**GOOD[case])) == ""


def test_a_person_sees_the_words_on_the_command_line(control_plane: Access, crd: None) -> None:
    bad = json.dumps(resource(**limits(agent="1h", run="15m")))
    answer = control_plane.kubectl("apply", "--dry-run=server", "-f", "-", stdin=bad, check=False)
    assert answer.returncode != 0
    assert "spec.run.limits: Invalid value" in answer.stderr
    assert "agent must not be longer than run" in answer.stderr
