"""A short soak, what `make soak` does for five minutes; and what was exported meanwhile."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.ops.promql_names import MONITORING, rules, uses


def exported(text: str) -> dict[str, set[str]]:
    """Return every series that was exported, with its labels."""
    found: dict[str, set[str]] = {}
    for part in re.split(r"(?=# HELP python_gc_objects_collected_total)", text):
        for family in text_string_to_metric_families(part):
            for sample in family.samples:
                found.setdefault(sample.name, {"job", "pod"}).update(sample.labels)
    return found


def expressions() -> list[str]:
    boards = [json.loads(path.read_text()) for path in (MONITORING / "dashboards").glob("*.json")]
    shown = [
        target["expr"]
        for board in boards
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    return [*shown, *(rule["expr"] for rule in rules())]


@pytest.mark.timeout(400)
def test_killed_replicas_break_no_promise_and_every_number_named_is_exported(
    programs: object, tmp_path: Path
) -> None:  # R111
    kept = tmp_path / "metrics.txt"
    command = [sys.executable, "-P", "-m", "issuesandbox", "local", "soak"]
    options = ["--replicas", "3", "--seconds", "20", "--every", "5", "--metrics", str(kept)]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=380
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "no promise was broken" in said
    counts = re.search(r"(\d+) issues opened, \d+ stops, (\d+) kills", said)
    assert counts is not None, said
    assert min(map(int, counts.groups())) >= 3, said

    found, recorded = exported(kept.read_text()), {each.get("record") for each in rules()}
    for expression in expressions():
        for use in uses(expression):
            if use.metric not in recorded:
                assert use.metric in found, f"nobody exported {use.metric}: {expression}"
                missing = use.labels - found[use.metric]
                assert not missing, f"{use.metric} has no label {missing}: {expression}"
