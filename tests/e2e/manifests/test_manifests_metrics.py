"""What a running operator exports is what docs/metrics.md lists, name by name."""

from __future__ import annotations

import re
from pathlib import Path

from operator_stage import Stage
from prometheus_client.parser import text_string_to_metric_families

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
_ROW = re.compile(r"^\| `(issuesandbox_\w+)` \| (\w+) \| ([^|]*)\|", re.M)


def listed(part: str) -> dict[str, tuple[str, set[str]]]:
    return {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in _ROW.findall(part)
    }


EXPORTED = listed(PAGE.split("The webhook adapter exports")[0])


async def test_every_exported_metric_is_listed_with_its_type_and_labels(stage: Stage) -> None:
    await stage.start_operator()
    await stage.apply("one")
    await stage.until_phase("one", "Idle")
    async with stage.http.get(f"{stage.probe_urls[0]}/metrics") as answer:
        text = await answer.text()
    shown = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("issuesandbox_"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            shown[name] = (family.type, labels)
    # A family without a sample yet shows no labels.
    assert {name: kind for name, (kind, _) in shown.items()} == {
        name: kind for name, (kind, _) in EXPORTED.items()
    }, "docs/metrics.md and /metrics differ"
    for name, (_, labels) in shown.items():
        assert labels <= EXPORTED[name][1], f"{name} has a label that is not listed"
