"""What a pass writes of its sandbox before it asks Daytona for the next one."""

from __future__ import annotations

from datetime import UTC, datetime

from issuesandbox.api.status import Phase, Status
from issuesandbox.api.status_sandbox import Intent, IntentKind
from issuesandbox.engine.lodging import with_intent

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_from_the_announcement_of_the_next_one_on_nothing_is_in_use() -> None:
    before = Status.model_validate(
        {"phase": "Idle", "sandbox": {"id": "sb-1", "name": "claude-issue-1", "attempt": 1}}
    )
    intent = Intent(kind=IntentKind.CREATE, name="claude-issue-1", attempt=2, at=NOW)
    after = with_intent(before, intent)
    assert after.phase is Phase.BOOTING
    assert after.sandbox is not None
    assert after.sandbox.id is None
    assert [each.id for each in after.retired] == ["sb-1"]
