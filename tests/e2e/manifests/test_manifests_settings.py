"""Settings in the cluster: read under the shipped rights, switched live, judged in public."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest_asyncio
from operator_stage import Stage
from rights_calls import caller
from tests.fakes.kept_logs import kept_logs

from issuesandbox.clock import SystemClock
from issuesandbox.domain.flags import Flag
from issuesandbox.domain.naming import Identity
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.tuning import Listeners, Tuning
from issuesandbox.entry.settings import Settings
from issuesandbox.entry.tuned import attach, begin, build_tuning
from issuesandbox.local.world.layout import SERVICE_ACCOUNT

KEY = {"DAYTONA_API_KEY": "dtn-secret-value"}


@pytest_asyncio.fixture
async def tuning(stage: Stage) -> AsyncIterator[Tuning[Settings]]:
    """Settings as an operator in the namespace of the test would hold them."""
    stage.access.kubectl("-n", stage.namespace, "create", "configmap", "issuesandbox-status")
    with kept_logs():
        async with caller(stage.access, stage.namespace, SERVICE_ACCOUNT) as operator:
            tuning = build_tuning(operator.configuration, SystemClock(), KEY)
            attach(tuning, await begin(tuning), Listeners(), KEY)
            running = asyncio.create_task(tuning.run(Timings().settings_tick))
            yield tuning
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def put(stage: Stage, **settings: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "issuesandbox", "namespace": stage.namespace},
        "data": settings,
    }
    stage.access.kubectl("apply", "-f", "-", stdin=json.dumps(body))


async def test_a_flag_is_switched_within_ten_seconds_and_back(
    stage: Stage, tuning: Tuning[Settings]
) -> None:  # R106
    async def share(percent: int) -> bool:
        return tuning.current.flags.percent[Flag.HEALTH_PROBE] == percent

    assert await share(100)
    put(stage, ENABLE_HEALTH_PROBE="10%")
    await stage.until(lambda: share(10), "the canary", seconds=10)
    stage.access.kubectl("-n", stage.namespace, "delete", "configmap", "issuesandbox")
    await stage.until(lambda: share(100), "the default", seconds=10)


async def test_wrong_settings_are_told_where_people_look_and_change_nothing(
    stage: Stage, tuning: Tuning[Settings]
) -> None:
    put(stage, ISSUESANDBOX_MAX_SANDBOXES="30")

    async def taken() -> bool:
        return tuning.current.max_sandboxes == 30

    await stage.until(taken, "the good settings", seconds=10)
    put(stage, ISSUESANDBOX_MAX_SANDBOXES="many", ENABLE_HEALTH_PROBE="false")

    async def refused() -> bool:
        path = f"/api/v1/namespaces/{stage.namespace}/configmaps/issuesandbox-status"
        data = (await stage.api("GET", path)).get("data", {})
        opinion = json.loads(data.get("settings", "{}"))
        kept = json.loads(data.get("accepted", "{}"))
        return (
            opinion.get("valid") is False
            and "ISSUESANDBOX_MAX_SANDBOXES in the ConfigMap" in opinion["message"]
            and kept == {"ISSUESANDBOX_MAX_SANDBOXES": "30"}
        )

    await stage.until(refused, "the opinion", seconds=10)
    assert tuning.current.max_sandboxes == 30
    assert tuning.current.flags.percent[Flag.HEALTH_PROBE] == 100
    events = await stage.api("GET", f"/apis/events.k8s.io/v1/namespaces/{stage.namespace}/events")
    told = [each for each in events["items"] if each["regarding"]["kind"] == "ConfigMap"]
    warnings = [each["reason"] for each in told if each["type"] == "Warning"]
    assert warnings == ["InvalidSettings"]


async def test_the_level_of_a_module_is_switched_live(
    stage: Stage, tuning: Tuning[Settings]
) -> None:
    fleet = logging.getLogger("issuesandbox.engine.fleet")

    async def level(wanted: int) -> bool:
        return fleet.getEffectiveLevel() == wanted

    put(stage, ISSUESANDBOX_LOG_LEVELS="issuesandbox.engine.fleet=DEBUG")
    await stage.until(lambda: level(logging.DEBUG), "the detail", seconds=10)
    put(stage)
    await stage.until(lambda: level(logging.INFO), "the end of the detail", seconds=10)


async def test_the_freeze_takes_effect_within_ten_seconds(
    stage: Stage, tuning: Tuning[Settings]
) -> None:
    create = ("-n", stage.namespace, "create", "configmap", "issuesandbox-freeze")
    stage.access.kubectl(*create, "--from-literal=reason=quota incident")

    async def frozen() -> bool:
        return tuning.frozen == "quota incident"

    await stage.until(frozen, "the freeze", seconds=10)
    stage.access.kubectl("-n", stage.namespace, "delete", "configmap", "issuesandbox-freeze")

    async def free() -> bool:
        return tuning.frozen is None

    await stage.until(free, "the end of the freeze", seconds=10)


async def test_a_start_goes_by_what_is_stored_and_another_operator_with_our_id_is_told(
    stage: Stage,
) -> None:
    put(
        stage,
        DAYTONA_API_URL=stage.simulator.url,
        ISSUESANDBOX_LOG_FORMAT="console",
    )
    stage.access.kubectl("-n", stage.namespace, "create", "configmap", "issuesandbox-status")
    other = Identity(stage.namespace, stage.namespace, "far", "u9", "octo/far", 9, "another-home")
    await stage.plant(
        name="claude-issue-9", state="started", labels=other.labels("claude-issue-9", 1)
    )
    operator = await stage.start_operator(DAYTONA_API_URL="http://127.0.0.1:1/api")
    said = ""

    async def told() -> bool:
        nonlocal said
        path = f"/api/v1/namespaces/{stage.namespace}/configmaps/issuesandbox-status"
        said = (await stage.api("GET", path)).get("data", {}).get("settings", "")
        return "made by another operator" in said

    await stage.until(told, "the conflict to be told", seconds=15)
    assert "at the next start" not in said
    logged = "\n".join(operator.last_lines(1000))
    assert " INFO " in logged
    assert '"level"' not in logged
    assert [each["state"] for each in await stage.sandboxes()] == ["started"]
    stage.guard.lapse("no-orphan")
