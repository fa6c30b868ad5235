"""The steps of the manual test and what must be so after each. Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import click

from issuesandbox.api.names import FREEZE_MAP
from issuesandbox.entry.plugin.checks import Finding, Verdict, examine
from issuesandbox.entry.plugin.cluster import Body, Cluster, MissingError, failures
from issuesandbox.entry.plugin.credentials import daytona_key, setting
from issuesandbox.entry.plugin.shape import conditions_of, moment, phase_of, run_of, span, status_of

_STOP_LIMIT = timedelta(seconds=30)
_DEFAULT_URL = "https://app.daytona.io/api"


@dataclass(frozen=True, slots=True)
class Scene:
    """Where a step is looked at."""

    cluster: Cluster
    namespace: str
    name: str
    home: str
    """The operator's namespace."""

    def body(self) -> Body:
        """Return the resource."""
        return self.cluster.get(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Step:
    """One numbered step."""

    title: str
    look: Callable[[Scene], Iterator[Finding]]
    about_a_resource: bool = True


def check(what: str, holds: bool, seen: object) -> Finding:
    """Return what was looked for, and what is there."""
    return Finding(what, Verdict.OK if holds else Verdict.FAILED, str(seen))


def of_body(look: Callable[[Body], Iterator[Finding]]) -> Callable[[Scene], Iterator[Finding]]:
    """Return the step that looks at the resource alone."""
    return lambda scene: look(scene.body())


def installed(scene: Scene) -> Iterator[Finding]:
    """Nothing that the doctor looks at has failed."""
    yield from examine(scene.cluster, scene.home)


def sandbox_runs(body: Body) -> Iterator[Finding]:
    """One sandbox, named after the issue, runs."""
    sandbox, issue = _sandbox(body), body["spec"]["issue"]
    expected = f"claude-issue-{issue.get('id') or issue['number']}"
    yield check("phase is Idle", phase_of(body) == "Idle", phase_of(body))
    yield check("Daytona shows it started", sandbox.get("state") == "started", sandbox.get("state"))
    named = str(sandbox.get("name", "")).startswith(expected)
    yield check(f"it is called {expected}", named, sandbox.get("name"))


def restarted(body: Body) -> Iterator[Finding]:
    """The same sandbox was started again."""
    yield from sandbox_runs(body)
    starts = _counters(body).get("starts", 0)
    yield check("it was started again", starts >= 1, f"{starts} starts")
    attempt = _sandbox(body).get("attempt")
    yield check("it is still the first one", attempt == 1, f"attempt {attempt}")


def replaced(body: Body) -> Iterator[Finding]:
    """Another sandbox took the place of the one that is gone."""
    yield from sandbox_runs(body)
    attempt = _sandbox(body).get("attempt") or 0
    yield check("it is another one", attempt >= 2, f"attempt {attempt}")
    old = [each["id"] for each in status_of(body).get("retired", ())]
    present = _sandbox(body).get("id")
    yield check("the old id is not used any more", present not in old, f"{present}, not {old}")


def gone(scene: Scene) -> Iterator[Finding]:
    """The resource is gone, and so is its sandbox."""
    try:
        phase = phase_of(scene.body())
        yield check("the resource is gone", False, f"it is {phase}")
    except MissingError:
        yield check("the resource is gone", True, "gone")
    label = {"issuesandbox.dev/resource": scene.name, "issuesandbox.dev/namespace": scene.namespace}
    yield _none_left(scene, label)


def succeeded(body: Body) -> Iterator[Finding]:
    """One branch, one pull request, one comment."""
    run, status = run_of(body), status_of(body)
    yield check("the run succeeded", run.get("outcome") == "Succeeded", _outcome(run))
    push = run.get("publish") or {}
    yield check("its push is confirmed", bool(push.get("confirmedAt")), run.get("branch"))
    yield check(
        "a pull request is open", "pullRequest" in run, run.get("pullRequest", {}).get("url")
    )
    comment = status.get("comment") or {}
    yield check("the issue has its comment", "id" in comment, comment.get("url"))
    finished = conditions_of(body).get("Finished", {}).get("status")
    yield check("Finished is True", finished == "True", finished)
    usage = run.get("usage") or {}
    yield check(
        "tokens are counted", bool(usage.get("outputTokens")), f"${usage.get('costUSD', '?')}"
    )


def stopped(body: Body) -> Iterator[Finding]:
    """The run was cancelled in time, and nothing was pushed."""
    run, state = run_of(body), _sandbox(body).get("state")
    yield check("the run was cancelled", run.get("outcome") == "Cancelled", _outcome(run))
    yield check("the sandbox does not run", state not in ("started", "starting"), state)
    yield check("nothing was pushed", "publish" not in run, run.get("publish", "no push"))
    asked, ended = moment(status_of(body).get("stopRequestedAt")), moment(run.get("finishedAt"))
    if asked is not None and ended is not None:
        took = ended - asked
        yield check(f"it took less than {span(_STOP_LIMIT)}", took < _STOP_LIMIT, span(took))


def continued(body: Body) -> Iterator[Finding]:
    """The follow-up went to the same pull request."""
    yield from succeeded(body)
    history = status_of(body).get("history", ())
    yield check("there was a run before", bool(history), f"{len(history)} earlier runs")
    before = {each.get("pullRequestNumber") for each in history} - {None}
    number = (run_of(body).get("pullRequest") or {}).get("number")
    yield check("it is the same pull request", before == {number}, f"#{number}, before: {before}")


def survived(scene: Scene) -> Iterator[Finding]:
    """Another process finished what the first one had begun."""
    from kubernetes import client

    run = run_of(scene.body())
    yield check("the run succeeded", run.get("outcome") == "Succeeded", _outcome(run))
    began, ended = moment(run.get("startedAt")), moment(run.get("finishedAt"))
    api: Any = client.CoordinationV1Api()
    with failures(f"leases in {scene.home}"):
        leases = api.list_namespaced_lease(scene.home).items
    taken = [each.spec.acquire_time for each in leases if each.spec.acquire_time]
    during = [at for at in taken if began and ended and began < at < ended]
    yield check("another replica took over during the run", bool(during), f"leases of {taken}")


def frozen(scene: Scene) -> Iterator[Finding]:
    """Everything is frozen, and nothing was made for the newcomer."""
    freeze = scene.cluster.config_map(scene.home, FREEZE_MAP)
    yield check("the freeze is there", freeze is not None, (freeze or {}).get("reason"))
    body = scene.body()
    reason = conditions_of(body).get("Synced", {}).get("reason")
    yield check("the resource is held", reason == "ReconcilePaused", reason)
    yield check("it has no sandbox", "id" not in _sandbox(body), _sandbox(body).get("id"))


def unfrozen(scene: Scene) -> Iterator[Finding]:
    """What was held goes on."""
    freeze = scene.cluster.config_map(scene.home, FREEZE_MAP)
    yield check("the freeze is lifted", freeze is None, (freeze or {}).get("reason", "lifted"))
    sandbox = _sandbox(scene.body())
    yield check("the resource has its sandbox", "id" in sandbox, sandbox.get("id"))


def refused(body: Body) -> Iterator[Finding]:
    """A wrong key is told and changes nothing."""
    synced = conditions_of(body).get("Synced", {})
    told = synced.get("reason") in ("Unauthorized", "WrongOrganization")
    yield check("the key is said to be refused", told, synced.get("reason"))
    kept = _sandbox(body).get("id")
    yield check("the sandbox is still remembered", bool(kept), kept)


def used(body: Body) -> Iterator[Finding]:
    """Time, tokens and cost are on record."""
    usage = status_of(body).get("usage") or {}
    seconds = sum(each["seconds"] for each in usage.get("states", ()))
    yield check("time of the sandboxes", seconds > 0, f"{seconds} s")
    yield check("tokens of the agent", bool(usage.get("outputTokens")), usage.get("outputTokens"))
    yield check("cost of the agent", bool(usage.get("costUSD")), f"${usage.get('costUSD', '?')}")


def uninstalled(scene: Scene) -> Iterator[Finding]:
    """No resource and no sandbox is left."""
    try:
        left = len(scene.cluster.list(None))
        yield check("no resource is left", left == 0, f"{left} resources")
    except click.ClickException as error:
        yield check(
            "no resource is left", "does not know IssueSandbox" in error.message, error.message
        )
    yield _none_left(scene, {})


def _none_left(scene: Scene, labels: dict[str, str]) -> Finding:
    """Ask Daytona whether any sandbox with our labels is left."""
    title = "Daytona shows no sandbox of it"
    key = daytona_key(scene.cluster, scene.home)
    if not key:
        return Finding(title, Verdict.UNKNOWN, "set DAYTONA_API_KEY to ask Daytona")
    from daytona import Daytona, DaytonaConfig, DaytonaError, ListSandboxesQuery

    url = setting(scene.cluster, scene.home, "DAYTONA_API_URL") or _DEFAULT_URL
    client = Daytona(DaytonaConfig(api_key=key, api_url=url))
    try:
        found = [each.id for each in client.list(ListSandboxesQuery(labels=labels)) if _ours(each)]
    except DaytonaError as error:
        return Finding(title, Verdict.UNKNOWN, f"Daytona cannot be asked: {error}")
    return check(title, not found, found or "none")


def _ours(sandbox: Any) -> bool:
    live = getattr(sandbox.state, "value", sandbox.state) not in ("destroying", "destroyed")
    return live and "issuesandbox.dev/installation" in (sandbox.labels or {})


def _sandbox(body: Body) -> dict[str, Any]:
    return status_of(body).get("sandbox") or {}


def _counters(body: Body) -> dict[str, int]:
    return status_of(body).get("counters") or {}


def _outcome(run: Body) -> str:
    return f"{run.get('outcome') or run.get('phase', 'no run')} {run.get('reason') or ''}".strip()


# In the order of docs/manual-test.md; a test compares the titles.
STEPS: tuple[Step, ...] = (
    Step("Install", installed, about_a_resource=False),
    Step("A sandbox for an issue", of_body(sandbox_runs)),
    Step("A stopped sandbox is started", of_body(restarted)),
    Step("A deleted sandbox is replaced", of_body(replaced)),
    Step("A deleted resource takes its sandbox along", gone),
    Step("An issue becomes a pull request", of_body(succeeded)),
    Step("A run is stopped", of_body(stopped)),
    Step("A follow-up", of_body(continued)),
    Step("The operator is killed during a run", survived),
    Step("A freeze holds everything", frozen),
    Step("The freeze is lifted", unfrozen),
    Step("A wrong key changes nothing", of_body(refused)),
    Step("What it cost", of_body(used)),
    Step("Uninstall", uninstalled, about_a_resource=False),
)
