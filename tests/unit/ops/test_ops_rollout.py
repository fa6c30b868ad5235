"""The runbook's stages and rollbacks name settings, values and gates that exist."""

from __future__ import annotations

import re

import yaml
from promql_names import ROOT

from issuesandbox.domain.flags import Flag, parse_share

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
RULES = yaml.safe_load((ROOT / "manifests/monitoring/rules.yaml").read_text())


def section(title: str) -> str:
    return RUNBOOK.split(f"\n## {title}\n")[1].split("\n## ")[0]


def recorded() -> set[str]:
    return {
        rule["record"]
        for group in RULES["spec"]["groups"]
        for rule in group["rules"]
        if "record" in rule
    }


def stages() -> list[list[str]]:
    rows = re.findall(r"^\| \d .*\|$", section("Staged rollout"), re.M)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_stages_name_settings_and_gates_that_exist() -> None:  # R134
    found = stages()
    assert [int(row[0]) for row in found] == list(range(1, len(found) + 1))
    for number, values, _, gate in found[:-1]:
        for name, value in re.findall(r"`(ENABLE_\w+): \"([^\"]+)\"`", values):
            assert Flag(name)
            assert 0 <= parse_share(value) <= 100
        names = re.findall(r"`(issuesandbox|…):(\w+)(?::(\w+))?`", gate)
        for head, middle, last in names:
            full = f"{head}:{middle}:{last}" if head != "…" else f"issuesandbox:slo_met:{middle}"
            assert full in recorded(), f"no rule records {full}"
        assert names, f"stage {number} has no gate"


def test_the_first_stage_as_a_command_sets_what_the_table_says() -> None:
    told = dict(re.findall(r"--from-literal=(ENABLE_\w+)=(\S+)", section("Staged rollout")))
    assert set(told) == set(Flag)
    first = dict(re.findall(r"`(ENABLE_\w+): \"([^\"]+)\"`", stages()[0][1]))
    assert first
    for name, value in told.items():
        assert parse_share(value) == parse_share(first.get(name, "false"))


def test_the_rollback_names_every_flag() -> None:  # R135
    rows = re.findall(r"^\| `(ENABLE_\w+)` \|", section("Rollback of one fix"), re.M)
    assert rows == list(Flag)


def test_the_emergency_has_one_command_that_stops_every_run() -> None:
    assert "```sh\nkubectl isb stop --all -A\n```" in section("Emergency")
