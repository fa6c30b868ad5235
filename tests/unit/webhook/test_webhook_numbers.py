"""The numbers of the webhook adapter, as whoever scrapes them reads them."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import MagicMock

from prometheus_client import CollectorRegistry

from issuesandbox.entry.webhook.metrics import DeliveryNumbers, InboxCollector

DELIVERIES = "issuesandbox_webhook_deliveries_total"
SECONDS = "issuesandbox_webhook_answer_seconds"


def test_answers_are_counted_by_what_became_of_them_and_strangers_make_no_labels() -> None:
    registry = CollectorRegistry()
    numbers = DeliveryNumbers(registry)
    numbers.count("issues", 202, "created", 0.002)
    numbers.count("issues", 202, "created", 0.002)
    numbers.count("issues", 503, "refused", 0.002)
    numbers.count("made-up", 200, "ignored", 0.002)
    found = {
        (each.labels["event"], each.labels["status"], each.labels["result"]): each.value
        for family in registry.collect()
        for each in family.samples
        if each.name == DELIVERIES
    }
    assert found == {
        ("issues", "202", "created"): 2,
        ("issues", "503", "refused"): 1,
        ("other", "200", "ignored"): 1,
    }


def test_the_page_lists_every_number_with_its_type_and_labels() -> None:
    registry, nobody = CollectorRegistry(), MagicMock()
    DeliveryNumbers(registry).count("issues", 202, "created", 0.002)
    nobody.__len__.return_value = nobody.last_success = nobody.found = nobody.failures = 0
    nobody.refused = 0
    registry.register(InboxCollector(nobody, nobody, nobody, nobody))
    shown = {}
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        shown[name] = (family.type, labels)
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(issuesandbox_webhook_\w+)` \| (\w+) \| ([^|]*)\|", page, re.M)
    listed = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    assert shown == listed


def test_times_fall_into_buckets_that_hold_all_the_shorter_ones() -> None:
    registry = CollectorRegistry()
    numbers = DeliveryNumbers(registry)
    for seconds in (0.0005, 0.001, 0.03, 60.0):
        numbers.count("issues", 202, "created", seconds)
    within = {
        bound: registry.get_sample_value(f"{SECONDS}_bucket", {"le": bound})
        for bound in ("0.001", "0.0025", "0.05", "1.0", "10.0", "+Inf")
    }
    wanted = {"0.001": 2, "0.0025": 2, "0.05": 3, "1.0": 3, "10.0": 3, "+Inf": 4}
    assert within == wanted
    assert registry.get_sample_value(f"{SECONDS}_count") == 4
    assert registry.get_sample_value(f"{SECONDS}_sum") == 60.0315
