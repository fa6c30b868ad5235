"""GitHub is away for an hour, and nobody tells afterwards what happened meanwhile."""

from __future__ import annotations

import pytest
from inbox_stage import Inbox

from issuesandbox.adapters.github import requests
from issuesandbox.domain.webhook.issue import text_trigger

HOUR = 3600.0


async def _passes(inbox: Inbox, seconds: float) -> int:
    """Let the catch-up look at its own pace for so long, in vain; return how often it did."""
    passes = 0
    while seconds > 0:
        assert not await inbox.catch_up.look()
        rest = inbox.catch_up.rest_after(False)
        inbox.later(rest)
        seconds -= rest
        passes += 1
    return passes


async def test_an_hour_without_github_loses_nothing_and_starts_nothing_twice(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_PAUSE_SECONDS", 0.0)
    edited, told, closed = [await inbox.issue(title) for title in ("One", "Two", "Three")]
    first = {number: list(had) for number, had in inbox.cluster.triggers.items()}
    await inbox.deafen()
    await inbox.stage.post("/faults", kind="status", status=503, count=None)
    passes = await _passes(inbox, HOUR / 2)
    new = await inbox.issue("Four")
    await inbox.act(edited, "edit", body="More.")
    command = await inbox.say(told, "/run with care")
    await inbox.act(closed, "close")
    passes += await _passes(inbox, HOUR / 2)
    assert 5 < passes < 12, "it asks, and more and more seldom"
    assert inbox.cluster.triggers == first

    await inbox.stage.admin("DELETE", "/faults")
    await inbox.listen()
    assert await inbox.catch_up.look()
    after = {number: list(had) for number, had in inbox.cluster.triggers.items()}
    assert after == {
        edited: [*first[edited], text_trigger("One", "More.")],
        told: [*first[told], f"c{command}"],
        closed: first[closed],
        new: [text_trigger("Four", "")],
    }
    states = {number: (inbox.spec(number) or {})["desiredState"] for number in after}
    assert states == {edited: "Running", told: "Running", closed: "Stopped", new: "Running"}

    # Late or twice, whatever else tells of it changes nothing more.
    await inbox.resend()
    await inbox.settled()
    inbox.later(600)
    assert await inbox.catch_up.look()
    assert inbox.cluster.triggers == after
