"""What a resource costs for which nothing has to be done: lists, Leases and rare renewals."""

from __future__ import annotations

import re
from collections import Counter

from operator_stage import Stage


async def ticks(stage: Stage, count: int) -> None:
    """Wait until the fleet view was read so many times more."""
    lists = len(await stage.calls("sandbox.list"))

    async def later() -> bool:
        return len(await stage.calls("sandbox.list")) >= lists + count

    await stage.until(later, f"{count} fleet ticks")


async def asked_of_kubernetes(stage: Stage) -> Counter[str]:
    """Return how often the API server was asked to change what, as it counted itself."""
    found: Counter[str] = Counter()
    for line in (await stage.plain("GET", "/metrics")).splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            if labels["verb"] not in ("GET", "LIST", "WATCH"):
                found[labels["resource"]] += int(float(line.rpartition(" ")[2]))
    return found


async def test_a_steady_fleet_costs_lists_and_leases_and_no_word(stage: Stage) -> None:
    place = f"/api/v1/namespaces/{stage.namespace}/configmaps"
    await stage.api("POST", place, {"metadata": {"name": "issuesandbox-status"}})
    timings = stage.timings(settings_tick="100ms")
    operator = await stage.start_operator(ISSUESANDBOX_TIMINGS=timings)
    await stage.apply("one", 1)
    await stage.apply("two", 2)
    for name in ("one", "two"):
        await stage.until_phase(name, "Idle")

    async def has_reported() -> bool:
        return "data" in await stage.api("GET", f"{place}/issuesandbox-status")

    await stage.until(has_reported, "the opinion of the settings, which is told once")

    await ticks(stage, 2)  # what their last writes brought about is over
    written, said = await asked_of_kubernetes(stage), operator.log.read_text()
    happened = await stage.happenings()
    await ticks(stage, 4)
    news = [each for each in await stage.journal() if each["seq"] > happened]
    assert {each.get("kind", each["type"]) for each in news} == {"sandbox.list"}
    changed = await asked_of_kubernetes(stage) - written
    assert set(changed) <= {"leases"}, changed
    assert changed["leases"] > 0, "the API server counts"
    assert operator.log.read_text() == said


async def test_nothing_but_the_operators_own_writes_is_on_a_resource(stage: Stage) -> None:
    # kopf watches and nothing else: what it wrote would be under a name of its own.
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    metadata = (await stage.get("one"))["metadata"]
    managers = {each["manager"] for each in metadata["managedFields"]}
    assert managers == {"issuesandbox", "Python"}, "the operator, and this test"
    assert metadata["finalizers"] == ["issuesandbox.dev/sandbox"]
    assert set(metadata["annotations"]) == {"issuesandbox.dev/first-create"}


async def test_a_sandbox_that_nobody_uses_is_renewed_once_per_half_interval(stage: Stage) -> None:
    await stage.start_operator()
    await stage.apply("one")
    sandbox = (await stage.until_phase("one", "Idle"))["sandbox"]["id"]
    await stage.admin("POST", f"sandboxes/{sandbox}/idle", {"seconds": 29 * 60})
    await ticks(stage, 2)
    await stage.patch("one", {"metadata": {"annotations": {"touched": "once"}}})
    await ticks(stage, 2)
    assert await stage.calls("sandbox.last_activity") == [], "half an hour is not over"
    await stage.admin("POST", f"sandboxes/{sandbox}/idle", {"seconds": 31 * 60})
    await ticks(stage, 2)
    # The edit brings a pass forward that is due when half an hour is over.
    await stage.patch("one", {"metadata": {"annotations": {"touched": "again"}}})

    async def renewed() -> bool:
        return bool(await stage.calls("sandbox.last_activity"))

    await stage.until(renewed, "the renewal")
    # Longer than what is sent may stay unseen.
    await ticks(stage, 8)
    assert len(await stage.calls("sandbox.last_activity")) == 1
