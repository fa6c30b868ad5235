"""What a resource used up, added up over its life."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from cleanup_values import END, HOUR
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.api.status import Status, Usage
from issuesandbox.api.status_run import TokenUsage
from issuesandbox.domain.usage import MAX_STATES, booked, sized, with_run

SECOND = timedelta(seconds=1)


def status_of(state: str | None = "started", **changes: Any) -> Status:
    sandbox = {"id": "sb-1", "state": state, "stateSince": END} | changes
    return Status.model_validate({"sandbox": sandbox})


def seconds(status: Status) -> dict[str, int]:
    states = status.usage.states if status.usage else None
    return {each.state: each.seconds for each in states or ()}


def moved(status: Status, state: str | None) -> Status:
    assert status.sandbox is not None
    sandbox = status.sandbox.model_copy(update={"state": state})
    return status.model_copy(update={"sandbox": sandbox})


def test_the_time_in_each_state_is_added_up() -> None:
    # R101
    status = booked(status_of("creating"), END + 20 * SECOND)
    status = booked(moved(status, "started"), END + 320 * SECOND)
    status = booked(moved(status, "stopped"), END + HOUR)
    status = booked(moved(status, "started"), END + HOUR + 5 * SECOND)
    assert seconds(status) == {"creating": 20, "started": 305, "stopped": 3280}


def test_booking_twice_counts_once() -> None:
    # R101: before a deletion the open state is booked, and once more when it ends.
    once = booked(status_of(), END + 10 * SECOND)
    assert booked(once, END + 10 * SECOND) == once
    assert seconds(booked(once, END + 15 * SECOND)) == {"started": 15}


def test_parts_of_a_second_are_not_lost_and_not_invented() -> None:
    status, now = status_of(), END
    for _ in range(20):
        now += timedelta(milliseconds=350)
        status = booked(status, now)
    assert seconds(status) == {"started": 7}


def test_the_sum_outlives_the_sandbox() -> None:
    # R101
    spent = booked(status_of(), END + HOUR)
    after = spent.model_copy(update={"sandbox": None})
    assert booked(after, END + 2 * HOUR) == after
    assert seconds(after) == {"started": 3600}


@pytest.mark.parametrize(
    "status", [Status(), status_of(id=None), status_of(stateSince=None)], ids=str
)
def test_without_a_sandbox_or_a_time_there_is_nothing_to_book(status: Status) -> None:
    assert booked(status, END + HOUR) == status


def test_a_clock_that_went_back_books_nothing() -> None:
    assert booked(status_of(), END - HOUR) == status_of()


def test_a_sandbox_without_a_state_is_booked_as_unknown() -> None:
    assert seconds(booked(status_of(None), END + SECOND)) == {"unknown": 1}


def test_states_beyond_the_schema_are_booked_as_unknown() -> None:
    status = status_of("s0")
    for number in range(40):
        status = booked(moved(status, f"s{number}"), END + (number + 1) * SECOND)
    assert len(seconds(status)) == MAX_STATES
    assert seconds(status)["unknown"] == 40 - (MAX_STATES - 1)
    assert Status.model_validate(status.to_json()) == status


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 90)), max_size=80))
def test_every_second_is_booked_and_the_schema_always_takes_it(
    life: list[tuple[int, int]],
) -> None:
    status, now = status_of("s0"), END
    for number, length in life:
        now += length * SECOND
        status = moved(booked(status, now), f"s{number}")
    status = booked(status, now)
    assert sum(seconds(status).values()) == (now - END) // SECOND
    assert len(seconds(status)) <= MAX_STATES
    assert Status.model_validate(status.to_json()) == status


def test_the_size_of_the_sandbox_is_kept_as_far_as_it_is_known() -> None:
    # R101
    usage = sized(None, cpu=2, memory=4, disk=8)
    assert usage.to_json() == {"cpu": 2, "memory": 4, "disk": 8}
    assert sized(usage, cpu=1, gpu=0).to_json() == {"cpu": 1, "memory": 4, "disk": 8, "gpu": 0}
    assert sized(usage) == usage


def test_tokens_and_cost_of_all_runs_are_added_up() -> None:
    # R101
    run = TokenUsage(input_tokens=100, output_tokens=7, cost_usd="0.1")
    usage = with_run(with_run(None, run), TokenUsage(input_tokens=1, cost_usd="0.20000001"))
    assert usage.to_json() == {"inputTokens": 101, "outputTokens": 7, "costUSD": "0.3"}


def test_a_run_that_says_nothing_changes_nothing() -> None:
    usage = Usage(input_tokens=5, cost_usd="1.5")
    assert with_run(usage, TokenUsage()) == usage
    most = TokenUsage(input_tokens=10**15)
    assert with_run(with_run(None, most), most).input_tokens == 10**15
    assert with_run(None, TokenUsage()) == Usage()


amounts = st.one_of(
    st.decimals(0, 99_999, places=4, allow_nan=False).map(lambda cost: f"{cost:f}"),
    st.integers(0, 10**16 - 1).map(str),
)


@given(st.lists(amounts, max_size=6))
def test_no_sum_of_costs_is_too_long_for_the_schema(costs: list[str]) -> None:
    usage = Usage()
    for cost in costs:
        usage = with_run(usage, TokenUsage(cost_usd=cost))
    assert Usage.model_validate(usage.to_json()) == usage
