"""Rules that hold once everything has come to rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from issuesandbox.api.names import LABEL_UID
from issuesandbox.local.checker.evidence import Evidence, Observation, Violation
from issuesandbox.local.checker.resources import (
    is_stopped,
    leaves_sandbox,
    pull_request_of,
    resources,
    run_of,
)
from issuesandbox.local.checker.sandboxes import ENDED, is_own, issue_of

# Nobody could open a pull request: the operator has no credentials for one.
_NO_PULL_REQUEST = "Pushed"
# Decided, tried, and refused by the remote: then there is nothing to find there.
_REFUSED = frozenset({"PublishFailed", "BranchMoved"})


def no_orphan(evidence: Evidence) -> Iterator[Violation]:
    """No sandbox without a resource."""
    known = resources(evidence)
    kept = {each.uid for each in known if each.exists or leaves_sandbox(each.last)}
    for row in evidence.rows:
        orphaned = row.labels.get(LABEL_UID) not in kept
        if is_own(evidence, row.labels) and row.state not in ENDED and orphaned:
            subject = f"sandbox {row.id} ({row.name})"
            text = f"{row.state}, and no resource for {issue_of(row.labels)} is left"
            yield Violation("no-orphan", _end(evidence), subject, text)


def one_push(evidence: Evidence) -> Iterator[Violation]:
    """Every publication that was decided was pushed exactly once."""
    if evidence.github is None:
        return
    for resource in resources(evidence):
        # What a lost sandbox held may be the very same as what the next one came to.
        own = [each for each in evidence.github.pushes if not resource.salvaged_by(each)]
        pushed = Counter((push.repository, push.new) for push in own)
        for run_id, seen in resource.runs().items():
            decided = [run_of(each.object).get("publish") for each in seen]
            commits = {publish["commit"] for publish in decided if publish}
            if len(commits) > 1:
                text = f"run {run_id} decided on {len(commits)} different commits"
                yield Violation("one-push", _end(evidence), resource.name, text)
            refused = run_of(seen[-1].object).get("reason") in _REFUSED
            for commit in commits:
                count = pushed[resource.repository, commit]
                if count > 1 or (count == 0 and not refused):
                    text = f"run {run_id} pushed {commit[:12]} {count} times"
                    yield Violation("one-push", _end(evidence), resource.name, text)


def one_pull_request(evidence: Evidence) -> Iterator[Violation]:
    """Every pull request belongs to a run, no branch has two, and no success is without one."""
    if evidence.github is None:
        return
    branches = _branches(evidence)
    opened = [act for act in evidence.github.acts if act.what == "pull_request.opened"]
    for act in opened:
        if (act.repository, act.number or 0) not in branches:
            text = f"pull request #{act.number} was opened, and no run knows it"
            yield Violation("one-pull-request", act.at, act.repository, text)
    count = Counter(
        branch for act in opened for branch in branches.get((act.repository, act.number or 0), ())
    )
    for branch, times in count.items():
        if times > 1:
            text = f"{times} pull requests were opened for one branch"
            yield Violation("one-pull-request", _end(evidence), branch, text)
    for resource in resources(evidence):
        for run_id, seen in resource.runs().items():
            if _lacks_pull_request(seen):
                text = f"run {run_id} was published and succeeded without a pull request"
                yield Violation("one-pull-request", seen[-1].moment.at, resource.name, text)


def one_comment(evidence: Evidence) -> Iterator[Violation]:
    """Every resource that ran has exactly one comment with its mark."""
    if evidence.github is None:
        return
    for resource in resources(evidence):
        if not any(run_of(each.object).get("outcome") for each in resource.history):
            continue
        marked = [comment.id for comment in evidence.comments if resource.uid in comment.body]
        if len(marked) != 1:
            issue = f"{resource.repository}#{resource.number}"
            text = f"{len(marked)} comments on {issue} carry its mark"
            yield Violation("one-comment", _end(evidence), resource.name, text)


def _branches(evidence: Evidence) -> dict[tuple[str, int], set[str]]:
    """Return the branches that runs name, by the repository and number of their pull request."""
    found: dict[tuple[str, int], set[str]] = {}
    for resource in resources(evidence):
        for observation in resource.history:
            run = run_of(observation.object)
            number = pull_request_of(observation.object)
            if number:
                branch = f"{resource.repository} {run.get('branch')}"
                found.setdefault((resource.repository, number), set()).add(branch)
    return found


def _lacks_pull_request(seen: Sequence[Observation]) -> bool:
    run = run_of(seen[-1].object)
    if run.get("outcome") != "Succeeded" or not run.get("publish") or run.get("pullRequest"):
        return False
    working = [each.object for each in seen if not run_of(each.object).get("outcome")]
    return run.get("reason") != _NO_PULL_REQUEST and not any(map(is_stopped, working))


def _end(evidence: Evidence) -> float:
    """Return the moment of the last thing that is known."""
    changes = [change.at for change in evidence.daytona.states[-1:]]
    sights = [observation.moment.at for observation in evidence.observations[-1:]]
    return max(changes + sights, default=0.0)
