"""The numbers of the webhook adapter, as whoever scrapes them reads them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from issuesandbox.entry.webhook.metrics import DeliveryNumbers

DELIVERIES = "issuesandbox_webhook_deliveries_total"
SECONDS = "issuesandbox_webhook_answer_seconds"


def test_answers_are_counted_by_event_and_status_and_strangers_make_no_labels() -> None:
    registry = CollectorRegistry()
    numbers = DeliveryNumbers(registry)
    for event, status in (("issues", 202), ("issues", 202), ("issues", 503), ("made-up", 200)):
        numbers.count(event, status, 0.002)
    found = {
        (event, status): registry.get_sample_value(DELIVERIES, {"event": event, "status": status})
        for event in ("issues", "other", "made-up")
        for status in ("200", "202", "503")
    }
    assert {key: value for key, value in found.items() if value is not None} == {
        ("issues", "202"): 2,
        ("issues", "503"): 1,
        ("other", "200"): 1,
    }


def test_times_fall_into_buckets_that_hold_all_the_shorter_ones() -> None:
    registry = CollectorRegistry()
    numbers = DeliveryNumbers(registry)
    for seconds in (0.0005, 0.001, 0.03, 60.0):
        numbers.count("issues", 202, seconds)
    within = {
        bound: registry.get_sample_value(f"{SECONDS}_bucket", {"le": bound})
        for bound in ("0.001", "0.0025", "0.05", "1.0", "10.0", "+Inf")
    }
    wanted = {"0.001": 2, "0.0025": 2, "0.05": 3, "1.0": 3, "10.0": 3, "+Inf": 4}
    assert within == wanted
    assert registry.get_sample_value(f"{SECONDS}_count") == 4
    assert registry.get_sample_value(f"{SECONDS}_sum") == 60.0315
