"""Alerts, service levels and dashboards name only what is in the catalogue, in valid PromQL."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from promql_names import MONITORING, ROOT, catalogue, groups, rules, uses

from issuesandbox.engine.tally import Tally
from issuesandbox.entry.metrics_tally import TallyCollector

ALERTS = [each for each in rules() if "alert" in each]
RECORDS = [each for each in rules() if "record" in each]
DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))
LIMITS = ("poll", "inactivity", "agent", "probe", "boot", "sweep", "idle", "start", "deletion")
LIMITS += ("retention",)
PROMTOOL_TESTS = Path(__file__).parent / "promtool_alerts.yaml"


def check(expression: str) -> None:
    known = catalogue()
    recorded = {str(each["record"]) for each in RECORDS}
    asked = uses(expression)
    assert asked, f"asks for nothing: {expression}"
    for each in asked:
        assert each.metric in known or each.metric in recorded, f"nobody exports {each.metric}"
        missing = each.labels - known.get(each.metric, set())
        assert not missing, f"{each.metric} has no label {missing}"


@pytest.mark.parametrize("rule", list(rules()), ids=lambda it: it.get("alert") or it["record"])
def test_every_rule_asks_for_metrics_that_are_in_the_catalogue(rule: dict[str, Any]) -> None:
    check(rule["expr"])


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_asks_for_metrics_that_are_in_the_catalogue(path: Path) -> None:  # R111
    board = json.loads(path.read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) >= 10
    for expression in expressions:
        check(expression)


def test_a_missing_metric_or_label_is_found() -> None:
    with pytest.raises(AssertionError, match="nobody exports issuesandbox_nothing"):
        check("sum(issuesandbox_nothing)")
    with pytest.raises(AssertionError, match="no label"):
        check('sum(issuesandbox_sandboxes{colour="red"})')
    with pytest.raises(AssertionError, match="issuesandbox_sandboxes has no label"):
        # The label of one metric is not one of its neighbour.
        check(
            'sum(issuesandbox_sandboxes{bucket="x"}) / sum(issuesandbox_daytona_tokens{bucket="x"})'
        )
    with pytest.raises(ValueError, match="unclosed"):
        check("sum(issuesandbox_sandboxes")


@pytest.mark.parametrize("alert", ALERTS, ids=lambda it: it["alert"])
def test_every_alert_has_a_severity_a_patience_and_a_section_in_the_runbook(
    alert: dict[str, Any],
) -> None:  # R110
    assert alert["labels"]["severity"] in ("warning", "critical")
    assert re.fullmatch(r"\d+[mh]", alert["for"])
    assert alert["annotations"]["summary"]
    assert alert["annotations"]["description"]
    page, _, section = alert["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
    assert section in {
        re.sub(r"[^a-z0-9-]", "", each.lower().replace(" ", "-")) for each in headings
    }


def test_every_section_on_an_alert_has_its_alert() -> None:
    headings = re.findall(r"^### (IssueSandbox\w+)$", (ROOT / "docs/runbook.md").read_text(), re.M)
    assert sorted(headings) == sorted(each["alert"] for each in ALERTS)


def test_every_target_has_a_record_that_says_whether_it_is_met() -> None:  # R114
    met = {str(each["record"]).split(":")[2] for each in RECORDS if ":slo_met:" in each["record"]}
    assert met == {
        "stop_success",
        "stop_confirm_seconds",
        "stop_response_seconds",
        "push_after_stop",
        "push_after_timeout",
        "stop_not_asked",
        "recreate_success",
        "session_resume",
        "cli_install_loops",
        "inactivity",
        "stall_detection_seconds",
        "timeout_cleanup_success",
        "late_results_taken",
        "orphans",
        "cross_process_stop",
        "inactivity_doubts",
        "timeout_cleanup_seconds",
        "sandbox_deletion_seconds",
        *(f"limit_{name}" for name in LIMITS),
    }
    listed = (ROOT / "docs" / "metrics.md").read_text().split("## Targets")[1]
    assert set(re.findall(r"`(\w+)`", listed.split("## The auditor")[0])) >= met
    for each in RECORDS:
        if ":slo_met:" in each["record"]:
            assert " bool " in str(each["expr"]), f"{each['record']} vanishes when it is missed"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_has_the_shape_that_grafana_reads(path: Path) -> None:
    board = json.loads(path.read_text())
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= set(board)
    assert board["uid"] == f"issuesandbox-{path.stem}"
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["description"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"


def test_the_kustomization_ships_every_dashboard() -> None:
    body = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())
    shipped = {Path(each).name for each in body["configMapGenerator"][0]["files"]}
    assert shipped == {path.name for path in DASHBOARDS}


def test_every_alert_has_a_test_in_promtools_format() -> None:
    tested = {
        case["alertname"]
        for group in yaml.safe_load(PROMTOOL_TESTS.read_text())["tests"]
        for case in group["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert tested == {each["alert"] for each in ALERTS}


def promtool(folder: Path, tests: str) -> None:
    """Let promtool judge the rules by its own unit tests."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not on PATH: the alerts were parsed, but never evaluated")
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    (folder / "tests.yaml").write_text(tests)
    command = [program, "test", "rules", folder / "tests.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_agrees(tmp_path: Path) -> None:
    promtool(tmp_path, PROMTOOL_TESTS.read_text())


def test_an_idle_installation_fires_nothing_and_misses_no_target(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    registry.register(TallyCollector(Tally()))
    text = generate_latest(registry).decode()
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    series = [_series(each.name, each.labels, "0x160") for each in samples]
    steady = yaml.safe_load(PROMTOOL_TESTS.read_text())["tests"][-1]["input_series"]
    alike = {each["series"] for each in series}
    gauges = [each for each in steady if each["series"] not in alike and "_total" not in str(each)]
    # Steps are ten times as long here, so what grows with the time does.
    series += [each | {"values": each["values"].replace("0+60x", "0+600x")} for each in gauges]
    series += [_series("issuesandbox_limit_seconds", {"limit": name}, "1x160") for name in LIMITS]
    case = {
        "interval": "10m",
        "input_series": series,
        "alert_rule_test": [
            {"eval_time": "1500m", "alertname": each["alert"], "exp_alerts": []} for each in ALERTS
        ],
        "promql_expr_test": [
            {
                "expr": 'count({__name__=~"issuesandbox:slo_met:.+"} == 0)',
                "eval_time": "1500m",
                "exp_samples": [],
            }
        ],
    }
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "10m", "tests": [case]}
    promtool(tmp_path, yaml.safe_dump(tests))


def _series(name: str, labels: dict[str, str], values: str) -> dict[str, str]:
    inside = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}
