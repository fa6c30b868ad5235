"""Resources and statuses to publish and to tell about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Status

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW = START + timedelta(minutes=3, seconds=20)
UID = "6f1c2a3b-0000-4000-8000-123456789abc"
COMMIT = "c0ffee" + "0" * 34
PULL = {"number": 13, "url": "https://github.com/acme/app/pull/13", "state": "open"}


def resource(title: str | None = "It breaks", **publish: Any) -> IssueSandbox:
    return IssueSandbox.model_validate(
        {
            "metadata": {"name": "acme-app-12", "namespace": "team", "uid": UID},
            "spec": {
                "issue": {"repository": "acme/app", "number": 12, "title": title},
                "run": {"publish": publish} if publish else {},
            },
        }
    )


def status(phase: str = "Executing", run: dict[str, Any] | None = None, **more: Any) -> Status:
    started = {"id": "r1", "phase": phase, "startedAt": START.isoformat()}
    return Status.model_validate(
        {
            "phase": phase,
            "sandbox": {"id": "s1", "name": "claude-issue-12", "state": "started"},
            "run": {**started, **(run or {})},
            **more,
        }
    )


def ended(outcome: str, run: dict[str, Any] | None = None, **more: Any) -> Status:
    finish = {"outcome": outcome, "finishedAt": (START + timedelta(minutes=4)).isoformat()}
    return status("Finalizing", {**finish, **(run or {})}, **more)


def pushed() -> dict[str, Any]:
    publish = {"commit": COMMIT, "old": "", "at": START.isoformat()}
    return {
        "branch": "claude-fix-issue-12",
        "commit": COMMIT,
        "publish": {**publish, "confirmedAt": START.isoformat()},
        "changeTotals": {
            "files": 3,
            "created": 1,
            "modified": 2,
            "additions": 10,
            "deletions": 4,
        },
    }
