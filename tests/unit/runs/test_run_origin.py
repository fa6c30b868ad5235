"""How a run came by its sandbox is told from the status alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from issuesandbox.api.status import Status
from issuesandbox.api.status_run import Outcome, RunPhase, RunStatus
from issuesandbox.api.status_sandbox import Counters, SandboxStatus
from issuesandbox.domain.runs.origin import Origin, origin

END = datetime(2030, 1, 1, tzinfo=UTC)


def status(since: timedelta, *, creates: int = 1, ran: bool = True) -> Status:
    """Return a status whose sandbox is as it is since then; its last run was in attempt 1."""
    last = RunStatus(
        id="r",
        attempt=1,
        phase=RunPhase.FINISHED,
        started_at=END - timedelta(hours=1),
        finished_at=END,
        outcome=Outcome.SUCCEEDED,
    )
    return Status(
        sandbox=SandboxStatus(id="sb-1", state="started", state_since=END + since),
        counters=Counters(creates=creates),
        run=last if ran else None,
    )


def test_the_four_ways() -> None:
    # R112
    before, after = -timedelta(minutes=30), timedelta(minutes=1)
    assert origin(status(before, ran=False), 1) is Origin.CREATED
    assert origin(status(before), 1) is Origin.REUSED
    assert origin(status(after), 1) is Origin.RESTARTED
    assert origin(status(after), 2) is Origin.RECREATED
    assert origin(status(before, ran=False), 2) is Origin.RECREATED
    assert origin(status(before, ran=False, creates=0), 1) is Origin.REUSED, "it was adopted"
