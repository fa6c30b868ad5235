"""Durations as people write them."""

from __future__ import annotations

import copy
import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.api.durations import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("24h", 86_400), ("1h30m", 5_400), ("0s", 0), ("1h5s", 3_605)],
)
def test_a_duration_is_read_as_its_author_means_it(text: str, seconds: int) -> None:
    assert Duration(text) == timedelta(seconds=seconds)
    assert str(Duration(text)) == text


def test_milliseconds_are_not_taken_for_minutes() -> None:
    assert Duration("1500ms") == timedelta(milliseconds=1500)


@pytest.mark.parametrize(
    "text", ["", "5", "-5m", "5 m", "1.5h", "5d", "5M", "30m1h", "5m\n", "٣m", "1234567h", "PT5M"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="90s, 5m, 24h or 1h30m"):
        Duration(text)


@given(st.integers(0, 10**9))
def test_a_time_span_is_written_in_its_shortest_form(milliseconds: int) -> None:
    span = timedelta(milliseconds=milliseconds)
    assert Duration.of(span) == span


def test_the_shortest_form_has_no_empty_parts() -> None:
    assert str(Duration.of(timedelta(hours=1, seconds=5))) == "1h5s"
    assert str(Duration.of(timedelta(0))) == "0s"


def test_a_negative_time_span_is_refused() -> None:
    with pytest.raises(ValueError, match="never negative"):
        Duration.of(timedelta(seconds=-1))


def test_a_copy_keeps_the_text() -> None:
    original = Duration("90m")
    assert str(copy.deepcopy(original)) == "90m"
    assert str(pickle.loads(pickle.dumps(original))) == "90m"
    assert repr(original) == "Duration('90m')"


def test_arithmetic_gives_plain_time_spans() -> None:
    assert Duration("90s") + Duration("30s") == timedelta(minutes=2)
    assert Duration("90s") < Duration("5m")
