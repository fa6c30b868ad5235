"""What the operator fills in: the resource's word, else the setting's, also while it runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

from tests.fakes.clock import EPOCH, FakeClock, FakeTime

from issuesandbox.api.spec_cleanup import CleanupAction, SaveWork
from issuesandbox.api.status import Phase
from issuesandbox.api.status_run import Outcome
from issuesandbox.domain.model import Action, ActionKind, Plan
from issuesandbox.domain.runs import chapters
from issuesandbox.domain.runs.limits import RunLimits
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.fleet import Fleet
from issuesandbox.engine.orders import order_for
from issuesandbox.engine.reading import Reader, Reading, Views
from issuesandbox.engine.runs.scenes import scene_of
from issuesandbox.entry.plugin.until import Rules, waits
from issuesandbox.entry.runs import defaults
from issuesandbox.entry.settings import load_settings
from issuesandbox.ports.sandboxes import Sandboxes

STORED = {
    "DAYTONA_TARGET": "eu",
    "ISSUESANDBOX_CLEANUP_ON_SUCCESS": "Archive",
    "ISSUESANDBOX_CLEANUP_ON_FAILURE": "Delete",
    "ISSUESANDBOX_CLEANUP_RETENTION": "100h",
    "ISSUESANDBOX_CLEANUP_WINDOW": '{"start": "22:00", "end": "06:00", "days": ["Sat"]}',
    "ISSUESANDBOX_RECOVERY_MAX_ATTEMPTS": "5",
    "ISSUESANDBOX_RECOVERY_SAVE_WORK": "Patch",
    "ISSUESANDBOX_SANDBOX_AUTO_STOP": "0s",
    "ISSUESANDBOX_SANDBOX_TTL": "90m",
}


def reader() -> Reader:
    timings, clock = Timings(), FakeClock(FakeTime())
    fleet = Fleet(cast("Sandboxes", None), "ours", timings, clock)
    return Reader("ours", timings, clock, Views(fleet))


def settled(**stored: str) -> Reader:
    found = reader()
    found.adopt(defaults(load_settings({"DAYTONA_API_KEY": "dtn-key"}, stored)))
    return found


def body(spec: dict[str, Any] | None = None, **run: Any) -> dict[str, Any]:
    issue = {"repository": "octo/hello", "number": 1}
    began = {"id": "r1", "phase": "Finished", "startedAt": "2029-12-31T00:00:00Z", **run}
    return {
        "metadata": {"name": "one", "namespace": "team", "uid": "u-1"},
        "spec": {"issue": issue, "run": {}, **(spec or {})},
        "status": {"sandbox": {"id": "sb-1", "state": "stopped", "stopReason": "x"}, "run": began},
    }


def effective(reading: Reading) -> dict[str, Any]:
    """Return what a pass writes down of the values in force."""
    scene = scene_of(reading, Plan("", Phase.FAILED, "", ""), EPOCH)
    status = chapters.ruled(
        reading.resource.status, scene.policy.recorded(), scene.recovery.recorded(), scene.asked
    )
    written: dict[str, Any] = status.to_json()["run"].get("effective", {})
    return written


def test_a_setting_holds_where_the_resource_is_silent() -> None:
    reading = settled(**STORED).read(body())
    policy = reading.policy
    assert policy.action(Outcome.SUCCEEDED) is CleanupAction.ARCHIVE
    assert policy.action(Outcome.FAILED) is CleanupAction.DELETE
    assert policy.action(Outcome.CANCELLED) is CleanupAction.STOP
    assert policy.retention == timedelta(hours=100)
    assert policy.window is not None
    assert (policy.window.start, policy.window.days) == ("22:00", ("Sat",))
    assert reading.desired.max_attempts == 5
    assert scene_of(reading, Plan("", Phase.FAILED, "", ""), EPOCH).recovery.save_work is (
        SaveWork.PATCH
    )


def test_the_resource_goes_before_the_setting() -> None:
    own = {
        "cleanup": {"onSuccess": "Retain", "retention": "1h"},
        "recovery": {"maxAttempts": 1},
    }
    reading = settled(**STORED).read(body(own))
    assert reading.policy.action(Outcome.SUCCEEDED) is CleanupAction.RETAIN
    assert reading.policy.action(Outcome.FAILED) is CleanupAction.DELETE
    assert reading.policy.retention == timedelta(hours=1)
    assert reading.desired.max_attempts == 1
    assert reading.recovery.save_work is SaveWork.PATCH


def test_a_changed_setting_counts_from_the_next_reading_on() -> None:
    kept = body(outcome="Failed", finishedAt="2029-12-31T21:00:00Z")
    found = settled()
    assert found.read(kept).wish.want.name == "REST"
    changed = load_settings(
        {"DAYTONA_API_KEY": "dtn-key"}, {"ISSUESANDBOX_CLEANUP_RETENTION": "2h"}
    )
    assert found.adopt(defaults(changed)), "everybody has to be looked at again"
    assert found.read(kept).wish.want.name == "GONE"
    assert not found.adopt(defaults(changed))


def test_the_order_of_a_sandbox_has_the_settings_in_it() -> None:
    create = Action(ActionKind.CREATE, name="claude-issue-1", attempt=1)
    order = order_for(settled(**STORED).read(body()), create, {})
    assert (order.target, order.auto_stop_minutes, order.ttl_minutes) == ("eu", 0, 90)
    assert order.auto_archive_minutes == 1440
    assert order.auto_delete_minutes == 124 * 60, "a day after the retention"
    never = settled(ISSUESANDBOX_SANDBOX_AUTO_DELETE="0s").read(body())
    assert order_for(never, create, {}).auto_delete_minutes == -1
    own = {"sandbox": {"target": "us", "autoStop": "5m", "autoDelete": "1h", "ttl": "0s"}}
    order = order_for(settled(**STORED).read(body(own)), create, {})
    assert (order.target, order.auto_stop_minutes, order.ttl_minutes) == ("us", 5, 0)
    assert order.auto_delete_minutes == 60
    plain = order_for(reader().read(body()), create, {})
    assert (plain.auto_stop_minutes, plain.auto_archive_minutes) == (60, 1440)
    assert (plain.auto_delete_minutes, plain.ttl_minutes) == (4320, 10080)


def test_what_is_in_force_is_written_down_while_there_is_a_sandbox() -> None:
    reading = settled(**STORED).read(body({"cleanup": {"delay": "5m"}}, outcome="Failed"))
    written = effective(reading)
    assert written["cleanup"]["onFailure"] == "Delete"
    assert written["cleanup"]["delay"] == "5m"
    assert written["cleanup"]["window"] == {"start": "22:00", "end": "06:00", "days": ["Sat"]}
    assert written["recovery"] == {"maxAttempts": 5, "saveWork": "Patch"}
    gone = body(outcome="Failed")
    del gone["status"]["sandbox"]
    assert effective(settled(**STORED).read(gone)) == {}


def test_the_plugin_goes_by_what_is_written_down() -> None:
    kept = body(outcome="Failed", finishedAt="2029-12-31T21:00:00Z")
    (by_default,) = waits(kept, Rules.of({}), EPOCH)
    assert "2030-01-01T21:00:00Z" in by_default
    kept["status"]["run"]["effective"] = {"cleanup": {"retention": "5h"}}
    (by_setting,) = waits(kept, Rules.of({}), EPOCH)
    assert "2030-01-01T02:00:00Z" in by_setting


def test_what_the_sandbox_was_asked_for_is_written_down_and_stays_when_the_spec_is_edited() -> None:
    stored = {"DAYTONA_TARGET": "eu", "DAYTONA_SNAPSHOT": "base"}
    asked = body({"sandbox": {"target": "us"}})
    written = effective(settled(**stored).read(asked))
    assert written["sandbox"] == {"snapshot": "base", "target": "us"}
    asked["status"]["run"]["effective"] = written
    asked["spec"]["sandbox"] = {"target": "asia"}
    assert effective(settled(**stored).read(asked))["sandbox"]["target"] == "us"


def test_a_sandbox_of_an_older_spec_is_not_said_to_be_of_the_present_one() -> None:
    outdated = body({"sandbox": {"target": "us"}})
    outdated["status"]["sandbox"]["specHash"] = "0" * 16
    assert "sandbox" not in effective(settled().read(outdated))


def test_the_next_run_in_the_same_sandbox_inherits_what_it_was_asked_for() -> None:
    past = body(attempt=1, outcome="Succeeded", effective={"sandbox": {"target": "us"}})
    resource = settled().read(past).resource
    limits = RunLimits()
    for attempt, wanted in ((1, "us"), (2, None)):
        run = chapters.begin(resource, "r2", attempt, limits, EPOCH).run
        assert run is not None
        assert run.effective is not None
        found = run.effective.sandbox
        assert (found.target if found is not None else None) == wanted
