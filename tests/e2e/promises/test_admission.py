"""Who may have a sandbox: limits, fairness, and repositories a namespace may not use."""

from __future__ import annotations

import json

from operator_stage import Stage


async def test_what_exceeds_the_limit_waits_and_follows_by_itself(stage: Stage) -> None:
    await stage.start_operator(ISSUESANDBOX_MAX_SANDBOXES_PER_REPOSITORY="2")
    for number in (1, 2, 3):
        await stage.apply(f"issue-{number}", number)

    async def one_waits() -> bool:
        phases = sorted([str(await stage.phase(f"issue-{n}")) for n in (1, 2, 3)])
        return phases == ["Idle", "Idle", "Queued"]

    await stage.until(one_waits, "two to run and one to wait")
    (waiting,) = [n for n in (1, 2, 3) if await stage.phase(f"issue-{n}") == "Queued"]
    admitted = await stage.condition(f"issue-{waiting}", "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "Queued")
    assert len(await stage.sandboxes()) == 2
    done = next(n for n in (1, 2, 3) if n != waiting)
    await stage.delete(f"issue-{done}")
    await stage.until_phase(f"issue-{waiting}", "Idle")
    assert (await stage.condition(f"issue-{waiting}", "Admitted"))["status"] == "True"


async def test_new_runs_of_one_author_are_rationed_and_follow_by_themselves(stage: Stage) -> None:
    # R87
    timings = stage.timings(run_rate_window="6s")
    await stage.start_operator(
        ISSUESANDBOX_MAX_NEW_RUNS_PER_MINUTE="2", ISSUESANDBOX_TIMINGS=timings
    )
    for number in (1, 2, 3):
        await stage.apply(f"issue-{number}", number, run={}, issue={"author": "ann"})
    await stage.apply("issue-4", 4, run={}, issue={"author": "bob"})

    async def sandboxes() -> set[int]:
        return {n for n in (1, 2, 3, 4) if "sandbox" in await stage.status(f"issue-{n}")}

    async def rationed() -> int:
        (left,) = {1, 2, 3, 4} - served if len(served := await sandboxes()) == 3 else (0,)
        admitted = await stage.condition(f"issue-{left}", "Admitted") if left else {}
        return left if admitted.get("reason") == "RateLimited" else 0

    waiting = await stage.until(rationed, "one to be held back by the rate")
    assert waiting != 4, "bob has an allowance of his own"
    assert await stage.phase(f"issue-{waiting}") == "Queued"

    async def followed() -> bool:
        return waiting in await sandboxes()

    await stage.until(followed, "the one that waited")
    assert (await stage.condition(f"issue-{waiting}", "Admitted"))["status"] == "True"


async def test_a_repository_that_the_namespace_may_not_use_gets_nothing(stage: Stage) -> None:
    allowed = json.dumps({stage.namespace: ["acme/*"]})
    await stage.start_operator(ISSUESANDBOX_ALLOWED_REPOSITORIES=allowed)
    await stage.apply("one")
    await stage.apply("two", 2, run={})

    async def refused() -> bool:
        told = [await stage.condition(name, "Admitted") for name in ("one", "two")]
        return {each.get("reason") for each in told} == {"RepositoryNotAllowed"}

    await stage.until(refused, "both refusals")
    assert await stage.calls("sandbox.create") == []


async def test_throttling_is_named_and_costs_no_attempt(stage: Stage) -> None:
    # R87
    await stage.fault(
        kind="sandbox.create",
        fault="status",
        status=400,
        count=2,
        message="Total CPU limit exceeded. Maximum allowed: 10.",
    )
    await stage.start_operator()
    await stage.apply("one")

    async def named() -> bool:
        return (await stage.status("one")).get("error", {}).get("code") == "QuotaExceeded"

    await stage.until(named, "the quota to be named")
    status = await stage.until_phase("one", "Idle")
    assert status["sandbox"]["attempt"] == 1
