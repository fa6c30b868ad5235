"""Resources that cannot work: said in one condition with the next step, at a bounded price."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from operator_stage import Stage

# Long enough that nothing in these tests is tried again because its time has come.
PATIENT = {"refused_check": "60s", "fleet_tick": "200ms"}

ORDERS: dict[str, tuple[dict[str, Any], str, str]] = {
    "env": ({"env": [{"name": "NODE_ENV", "value": "x"}]}, "Invalid", "Correct spec.sandbox"),
    "snapshot": ({"snapshot": "no-such"}, "SnapshotNotUsable", "spec.sandbox.snapshot"),
    "target": ({"target": "moon"}, "TargetNotUsable", "spec.sandbox.target"),
    "size": (
        {"image": "debian:12", "resources": {"cpu": 32}},
        "SizeRefused",
        "spec.sandbox.resources",
    ),
}
MAY_COST = {"sandbox.create": 3, "sandbox.get": 8}


async def error_of(stage: Stage, name: str) -> dict[str, Any]:
    error: dict[str, Any] = (await stage.status(name)).get("error") or {}
    return error


async def ticks(stage: Stage, count: int) -> None:
    lists = len(await stage.calls("sandbox.list"))

    async def later() -> bool:
        return len(await stage.calls("sandbox.list")) >= lists + count

    await stage.until(later, f"{count} more ticks")


async def test_an_order_that_daytona_refuses_is_named_with_the_next_step_and_does_not_spin(
    stage: Stage,
) -> None:
    # R30
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(**PATIENT))

    async def told(*names: str) -> bool:
        codes = [(await error_of(stage, name)).get("code") for name in names]
        return codes == [ORDERS[name][1] for name in names]

    # The resource's own rules let no such variable through, so Daytona is made to refuse one.
    refusal = {"fault": "status", "status": 400, "message": "each value in env must be a string"}
    await stage.fault(kind="sandbox.create", **refusal)
    await stage.apply("env", 1, sandbox=ORDERS["env"][0])
    await stage.until(lambda: told("env"), "the refusal to be named")
    await ticks(stage, 4)
    await stage.clear_faults()
    for number, (name, (sandbox, _, _)) in enumerate(list(ORDERS.items())[1:], 2):
        await stage.apply(name, number, sandbox=sandbox)
    await stage.until(lambda: told(*ORDERS), "all refusals to be named")
    await ticks(stage, 10)
    for number, (name, (_, code, step)) in enumerate(ORDERS.items(), 1):
        synced = await stage.condition(name, "Synced")
        assert (synced["status"], synced["reason"]) == ("False", code)
        assert step in synced["message"], synced["message"]
        about = [each for each in await stage.journal() if f"issue-{number}" in str(each)]
        spent = Counter(each.get("kind") for each in about if each["type"] == "request")
        assert all(spent[kind] <= most for kind, most in MAY_COST.items()), spent
        assert await stage.guard.writes(name) <= 5
    # A better order is tried at once, not when the refused one would have been.
    await stage.patch("snapshot", {"spec": {"sandbox": {"snapshot": "daytona-small"}}})
    await stage.until_phase("snapshot", "Idle", 15)
    assert (await stage.condition("snapshot", "Synced"))["status"] == "True"


async def test_a_full_quota_is_waited_for_and_costs_no_attempt(stage: Stage) -> None:
    # R87
    await stage.admin("PATCH", "settings", {"quotas": {"local": {"cpu": 0}}})
    await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(unknown_check="1s"))
    await stage.apply("one")

    async def named() -> bool:
        return (await error_of(stage, "one")).get("code") == "QuotaExceeded"

    await stage.until(named, "the quota to be named")
    assert "raise the quota" in (await stage.condition("one", "Synced"))["message"]
    creates = len(await stage.calls("sandbox.create"))
    await ticks(stage, 4)
    assert len(await stage.calls("sandbox.create")) <= creates + 4, "once per check, no more"
    await stage.admin("PATCH", "settings", {"quotas": {"local": {"cpu": 100}}})
    status = await stage.until_phase("one", "Idle")
    assert status["sandbox"]["attempt"] == 1


BAD = {"sandbox": {"image": "debian:no-such-tag"}}
BETTER = {"spec": {"sandbox": {"image": "debian:12"}}}
# One more than may be broken at once before that looks like Daytona's trouble.
MANY = [f"issue-{number}" for number in range(1, 5)]


async def order_badly(stage: Stage, state: str) -> None:
    """Let many ask for an image of which no sandbox comes up."""
    broken = {"fault": "row_exists_400", "state": state, "reason": "no such image"}
    await stage.fault(kind="sandbox.create", **broken)
    await stage.start_operator()
    for number, name in enumerate(MANY, 1):
        await stage.apply(name, number, **BAD)


async def order_better(stage: Stage) -> None:
    await stage.clear_faults()
    for name in MANY:
        await stage.patch(name, BETTER)
    for name in MANY:
        await stage.until_phase(name, "Idle")


async def test_images_that_never_build_are_given_up_after_three_attempts(stage: Stage) -> None:
    # R20, R30
    await order_badly(stage, "build_failed")
    for name in MANY:
        await stage.until_phase(name, "Failed")
    await ticks(stage, 4)
    creates = [each for each in await stage.calls("sandbox.create") if each["effect"] == "created"]
    assert Counter(each["name"] for each in creates) == {f"claude-{name}": 3 for name in MANY}
    for name in MANY:
        ready = await stage.condition(name, "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "AttemptsExhausted")
        assert "no such image" in ready["message"], ready["message"]
        assert "spec.sandbox" in ready["message"], ready["message"]
    # A corrected order has attempts of its own.
    await order_better(stage)


async def test_orders_that_never_come_up_may_be_corrected_however_many_they_are(
    stage: Stage,
) -> None:
    # R20, R30: some are given up, some may be held by the breaker; all say what to do.
    await order_badly(stage, "error")

    async def ended() -> bool:
        reasons = {(await stage.condition(name, "Ready")).get("reason") for name in MANY}
        return reasons <= {"AttemptsExhausted", "BreakerOpen"}

    await stage.until(ended, "all to be given up or held")
    await order_better(stage)


async def test_what_the_spec_asks_of_a_sandbox_arrives_at_daytona(stage: Stage) -> None:
    # R30
    await stage.start_operator()
    asked = {
        "env": [{"name": "MODE", "value": "test"}],
        "envFrom": [{"secretRef": {"name": "extra"}}],
        "network": {"allowCIDRs": ["10.0.0.0/8", "192.168.0.0/16"], "allowDomains": ["a.example"]},
    }
    await stage.apply("open", 1, sandbox=asked)
    await stage.apply("shut", 2, sandbox={"network": {"blockAll": True}})

    async def told(code: str) -> bool:
        return (await error_of(stage, "open")).get("code") == code

    await stage.until(lambda: told("SecretNotFound"), "the missing Secret to be named")
    metadata = (await stage.get("open"))["metadata"]
    assert "finalizers" not in metadata, "nothing is announced that cannot be sent"
    synced = await stage.condition("open", "Synced")
    assert f"{stage.namespace}/extra" in synced["message"]
    assert "spec.sandbox.envFrom" in synced["message"]
    # A refusal that quotes the order tells nobody what was in the Secret.
    echo = {"status": 400, "message": "env.EXTRA must not be e-value"}
    await stage.fault(kind="sandbox.create", fault="status", **echo)
    secret = {"metadata": {"name": "extra"}, "stringData": {"MODE": "secret", "EXTRA": "e-value"}}
    await stage.api("POST", f"/api/v1/namespaces/{stage.namespace}/secrets", secret)
    await stage.until(lambda: told("Invalid"), "the refusal")
    assert "env.EXTRA must not be ***" in (await stage.condition("open", "Synced"))["message"]
    assert "e-value" not in json.dumps(await stage.get("open"))
    await stage.clear_faults()
    await stage.until_phase("open", "Idle")
    shown = await stage.daytona_get("claude-issue-1")
    assert shown["env"] == {"MODE": "test", "EXTRA": "e-value"}, "the spec's own word wins"
    assert shown["networkAllowList"] == "10.0.0.0/8,192.168.0.0/16"
    assert shown["domainAllowList"] == "a.example"
    await stage.until_phase("shut", "Idle")
    assert (await stage.daytona_get("claude-issue-2"))["networkBlockAll"] is True
