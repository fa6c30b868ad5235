"""The operator as a process: settings, probes, metrics, signals."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from operator_stage import Stage


@pytest.fixture(autouse=True)
def shipped(stage: Stage) -> None:
    """Start the very command that users start."""
    stage.shipped = True


async def test_probes_and_metrics_answer(stage: Stage) -> None:
    # R113
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    url = stage.probe_urls[0]
    for path in ("healthz", "readyz"):
        async with stage.http.get(f"{url}/{path}") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
    async with stage.http.get(f"{url}/metrics") as answer:
        text = await answer.text()
    assert "issuesandbox_resources 1.0" in text
    assert 'issuesandbox_actions_total{action="create"} 1.0' in text


async def test_an_outage_of_daytona_makes_the_leader_unready_and_nobody_restart(
    stage: Stage,
) -> None:
    # R113
    operator = await stage.start_operator(ISSUESANDBOX_TIMINGS=stage.timings(fleet_stale="1s"))
    await stage.apply("one")
    await stage.until_phase("one", "Idle")

    async def asked(path: str) -> tuple[int, str]:
        async with stage.http.get(f"{stage.probe_urls[0]}/{path}") as answer:
            return answer.status, await answer.text()

    async def unready() -> bool:
        return await asked("readyz") == (
            503,
            "not ready: there is no fresh list of Daytona's sandboxes\n",
        )

    async def ready() -> bool:
        return await asked("readyz") == (200, "ok\n")

    await stage.fault(kind="*", fault="status", status=503)
    await stage.until(unready, "the leader to say that it is not ready")
    assert await asked("healthz") == (200, "ok\n"), "nobody restarts it for that"
    status, state = await asked("debug/state")
    assert status == 200
    assert '"failures": 0' not in state
    assert "local-key" not in state
    await stage.clear_faults()
    await stage.until(ready, "the leader to be ready again")
    assert operator.returncode is None


async def test_one_log_line_per_action_and_no_key_in_it(stage: Stage) -> None:
    # R112
    operator = await stage.start_operator()
    await stage.apply("one")
    status = await stage.until_phase("one", "Idle")
    lines = [line for line in operator.log.read_text().splitlines() if '"action":"create"' in line]
    assert len(lines) == 1
    uid = (await stage.get("one"))["metadata"]["uid"]
    told = json.loads(lines[0])
    named = ("uid", "issue", "attempt", "observed", "action", "reason")
    assert [told[name] for name in named] == [
        *(uid, "octo/hello#1", 1, "absent", "create", "Creating"),
    ]
    assert "local-key" not in operator.log.read_text()
    assert status["sandbox"]["id"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"DAYTONA_API_KEY": ""}, "DAYTONA_API_KEY is not set"),
        ({"DAYTONA_API_KEY": "wrong-key"}, "DAYTONA_API_KEY is not a valid key"),
        ({"ISSUESANDBOX_HTTP_PORT": "99999"}, "ISSUESANDBOX_HTTP_PORT"),
        ({"ISSUESANDBOX_TIMINGS": '{"tick": "1s"}'}, "unknown timing tick"),
        ({"ISSUESANDBOX_TIMINGS": '{"fleet_tick": "fast"}'}, "must be a duration"),
        ({"DAYTONA_API_KEY_FILE": "/nowhere/key", "DAYTONA_API_KEY": ""}, "DAYTONA_API_KEY_FILE"),
        ({"KUBECONFIG": "/nowhere/config"}, "KUBECONFIG"),
    ],
)
async def test_a_bad_setting_ends_the_start_with_one_line(
    stage: Stage, settings: dict[str, str], expected: str
) -> None:
    # R103
    operator = stage.spawn_operator(**settings)
    assert await operator.wait() == 1
    stage.operators.remove(operator)
    (line,) = operator.log.read_text().splitlines()
    assert line.startswith("Error: ")
    assert expected in line


async def test_a_taken_port_ends_the_start_with_one_line(stage: Stage) -> None:
    await stage.start_operator()
    port = stage.probe_urls[0].rsplit(":", 1)[1]
    second = stage.spawn_operator(ISSUESANDBOX_HTTP_PORT=port)
    assert await second.wait() == 1
    stage.operators.remove(second)
    (line,) = second.log.read_text().splitlines()
    assert f":{port}" in line
    assert "ISSUESANDBOX_HTTP_PORT" in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
async def test_a_signal_ends_it_cleanly(stage: Stage, number: signal.Signals) -> None:
    operator = await stage.start_operator()
    operator.process.send_signal(number)
    assert await operator.wait() == 0
    assert "Traceback" not in operator.log.read_text()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text("local-key\n")
    return path


async def test_the_key_may_come_from_a_file(stage: Stage, key_file: Path) -> None:
    await stage.start_operator(DAYTONA_API_KEY="", DAYTONA_API_KEY_FILE=str(key_file))
    await stage.apply("one")
    await stage.until_phase("one", "Idle")


async def test_what_keeps_it_from_harm_is_counted(stage: Stage) -> None:
    labels = {"installation": stage.namespace, "namespace": stage.namespace}
    labels |= {"resource": "gone", "uid": "uid-gone"}
    ours = {f"issuesandbox.dev/{name}": value for name, value in labels.items()}
    await stage.plant(name="leftover", labels=ours, age=3600)
    stage.guard.lapse("no-orphan")
    timings = stage.timings(reap_tick="100ms", orphan_age="1s", orphan_gap="60s")
    await stage.start_operator(ISSUESANDBOX_TIMINGS=timings)

    async def counted() -> str:
        async with stage.http.get(f"{stage.probe_urls[0]}/metrics") as answer:
            text = await answer.text()
        return text if "issuesandbox_orphans 1.0" in text else ""

    text = await stage.until(counted, "the orphan to be counted")
    for line in (
        'issuesandbox_lease_held{lease="leader"} 1.0',
        'issuesandbox_lease_held{lease="singleton"} 1.0',
        'issuesandbox_breaker_open{breaker="orphans"} 0.0',
        'issuesandbox_breaker_open{breaker="broken"} 0.0',
        "issuesandbox_fleet_age_seconds ",
        "issuesandbox_state_events_total ",
    ):
        assert line in text
