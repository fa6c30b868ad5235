"""A small world on paper: one issue's life from its resource to its pull request, all clean.

Tests plant one violation in it and see it named.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from issuesandbox.local.checker.evidence import (
    Comment,
    Evidence,
    Moment,
    Observation,
    Row,
    Span,
)
from issuesandbox.local.checker.journals import read_daytona, read_github

INSTALLATION = "inst"
UID = "uid-1"
RUN = "run-1"
REPOSITORY = "acme/shop"
BRANCH = "claude-fix-issue-7"
PARENT, COMMIT = "a" * 40, "b" * 40
ZERO = "0" * 40
BOT = {"kind": "installation", "login": "issuesandbox[bot]"}
START = 1_800_000_000.0


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def labels(**changes: str) -> dict[str, str]:
    own = {
        "installation": INSTALLATION,
        "namespace": "default",
        "resource": "shop-7",
        "uid": UID,
        "repository": REPOSITORY,
        "number": "7",
        "name": "claude-issue-7",
        "attempt": "1",
    }
    return {f"issuesandbox.dev/{key}": value for key, value in {**own, **changes}.items()}


class Paper:
    """Everything that is written down, one entry per second."""

    def __init__(self) -> None:
        self.at = START
        self.daytona: list[dict[str, Any]] = []
        self.github: list[dict[str, Any]] = []
        self.observations: list[Observation] = []
        self.rows: dict[str, Row] = {}
        self.comments: list[Comment] = []
        self.texts: dict[str, str] = {}
        self.secrets: dict[str, str] = {}
        self.frozen: list[Span] = []
        self.with_github = True
        self.object: dict[str, Any] = {
            "metadata": {
                "uid": UID,
                "namespace": "default",
                "name": "shop-7",
                "annotations": {},
                "finalizers": ["issuesandbox.dev/sandbox"],
            },
            "spec": {
                "desiredState": "Running",
                "issue": {"repository": "Acme/Shop", "number": 7},
                "run": {},
            },
            "status": {},
        }

    def moment(self) -> Moment:
        return Moment(self.at, len(self.daytona), len(self.github))

    def pass_time(self, seconds: float = 10.0) -> None:
        self.at += seconds

    def state(
        self,
        sandbox: str,
        after: str,
        *,
        before: str | None = "x",
        cause: str = "api",
        name: str = "claude-issue-7",
        organization: str = "org",
        **changes: str,
    ) -> None:
        own = labels(**changes)
        self.at += 1
        self.daytona.append(
            {
                "seq": len(self.daytona) + 1,
                "at": self.at,
                "type": "state",
                "sandbox": sandbox,
                "name": name,
                "organization": organization,
                "labels": own,
                "from": before,
                "to": after,
                "cause": cause,
            }
        )
        self.rows[sandbox] = Row(sandbox, name, after, own)

    def born(self, sandbox: str, **options: Any) -> None:
        self.state(sandbox, "creating", before=None, **options)
        if options.get("cause") != "admin":
            self.call("sandbox.create", sandbox)

    def call(
        self,
        kind: str,
        sandbox: str | None,
        identity: str = "org/operator",
        status: int | None = 200,
    ) -> None:
        self.at += 1
        self.daytona.append(
            {
                "seq": len(self.daytona) + 1,
                "at": self.at,
                "type": "request",
                "identity": identity,
                "kind": kind,
                "status": status,
                "sandbox": sandbox,
                "name": None,
                "effect": "x" if status == 200 else None,
            }
        )

    def push(self, ref: str, old: str, new: str, identity: Mapping[str, str] = BOT) -> None:
        self.at += 1
        entry = {"repo": "Acme/Shop", "ref": f"refs/heads/{ref}", "old": old, "new": new}
        self._github("push", identity=identity, **entry)

    def act(self, what: str, number: int, ident: int, identity: Mapping[str, str] = BOT) -> None:
        self.at += 1
        effect = {"what": what, "repository": "Acme/Shop", "number": number, "id": ident}
        self._github("request", identity=identity, effect=[effect])

    def say(self, body: str = f"working <!-- {UID} -->", ident: int = 501) -> None:
        self.act("issue_comment.created", 7, ident)
        self.comments.append(Comment(REPOSITORY, 7, ident, body))

    def see(self, kind: str = "MODIFIED", run: dict[str, Any] | None = None) -> None:
        """Let the watch tell the resource as it is now."""
        self.at += 1
        if run is not None:
            self.object["status"].setdefault("run", {"id": RUN}).update(run)
        self.observations.append(Observation(self.moment(), kind, copy.deepcopy(self.object)))

    def annotate(self, name: str, value: str | None) -> None:
        self.object["metadata"]["annotations"][f"issuesandbox.dev/{name}"] = value
        self.see()

    def ask_for_deletion(self) -> None:
        self.object["metadata"]["deletionTimestamp"] = iso(self.at)
        self.see()

    def ask_for_stop(self) -> None:
        self.object["spec"]["desiredState"] = "Stopped"
        self.see()

    def release(self) -> None:
        self.object["metadata"]["finalizers"] = []
        self.see("DELETED")

    def gate(self, commit: str = COMMIT) -> None:
        publish = {"commit": commit, "old": ZERO, "at": iso(self.at)}
        self.see(run={"phase": "Publishing", "branch": BRANCH, "publish": publish})

    def evidence(self) -> Evidence:
        return Evidence(
            installation=INSTALLATION,
            observations=tuple(self.observations),
            daytona=read_daytona(self.daytona, {"org/operator"}),
            rows=tuple(row for row in self.rows.values() if row.state != "destroyed"),
            github=read_github(self.github) if self.with_github else None,
            comments=tuple(self.comments),
            texts=self.texts,
            secrets=self.secrets,
            frozen=tuple(self.frozen),
        )

    def _github(self, kind: str, **entry: Any) -> None:
        seq = len(self.github) + 1
        self.github.append({"seq": seq, "at": iso(self.at), "type": kind, **entry})


def begun() -> Paper:
    """A resource whose run executes in its sandbox, with its comment."""
    paper = Paper()
    paper.see("ADDED")
    paper.born("s1")
    paper.state("s1", "started")
    paper.say()
    paper.see(run={"phase": "Preparing"})
    paper.call("toolbox.git.clone", "s1")
    paper.see(run={"phase": "Executing", "deadlines": {"run": iso(paper.at + 900)}})
    paper.call("toolbox.execute", "s1")
    return paper


def published() -> Paper:
    """The same, up to a pull request and the outcome."""
    paper = begun()
    paper.gate()
    paper.push(BRANCH, ZERO, COMMIT)
    paper.act("pull_request.opened", 8, 601)
    paper.see(run={"phase": "Finalizing", "pullRequest": {"number": 8}})
    paper.act("issue_comment.edited", 7, 501)
    paper.see(run={"phase": "Finished", "outcome": "Succeeded"})
    return paper


def finished() -> Paper:
    """The whole life, until nothing is left."""
    paper = published()
    paper.call("sandbox.delete", "s1")
    paper.state("s1", "destroying")
    paper.state("s1", "destroyed")
    paper.ask_for_deletion()
    paper.release()
    return paper
