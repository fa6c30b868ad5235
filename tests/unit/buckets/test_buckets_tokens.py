"""What is left of a bucket: single rules, then laws under a server that counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from issuesandbox.domain.buckets import (
    WINDOW,
    Allowance,
    Bucket,
    NoLimit,
    Priority,
    Refusal,
    Tokens,
)


def told(bucket: Bucket = Bucket.GENERAL, limit: int = 10, remaining: int = 10) -> Tokens:
    return Tokens.assumed(bucket).learn(Allowance(limit, remaining, 30), 0, 1)


def test_before_the_first_answer_the_lowest_documented_tier_is_assumed() -> None:
    tokens = Tokens.assumed(Bucket.CREATE)
    for _ in range(300):
        assert tokens.opens(Priority.CREATE, 0, 1) == 0
        tokens = tokens.take(0, 1)
    assert tokens.opens(Priority.CREATE, 0, 1) == WINDOW
    assert not tokens.known


def test_a_server_that_tells_nothing_limits_nothing() -> None:
    tokens = Tokens.assumed(Bucket.CREATE).learn(NoLimit(), 0, 1)
    for _ in range(10_000):
        tokens = tokens.take(0, 1)
    assert tokens.opens(Priority.CREATE, 0, 1) == 0


@pytest.mark.parametrize("priority", [Priority.READ, Priority.CREATE])
def test_the_last_fifth_is_for_kills_and_stops(priority: Priority) -> None:
    tokens = told(limit=10, remaining=3)
    assert tokens.opens(priority, 1, 1) == 1
    tokens = tokens.take(1, 1)
    assert tokens.opens(priority, 1, 1) == 30
    for _ in range(2):
        assert tokens.opens(Priority.STOP, 1, 1) == tokens.opens(Priority.KILL, 1, 1) == 1
        tokens = tokens.take(1, 1)
    assert tokens.opens(Priority.KILL, 1, 1) == 30


def test_nothing_is_reserved_where_nothing_is_killed() -> None:
    assert told(Bucket.CREATE, remaining=1).opens(Priority.CREATE, 1, 1) == 1


def test_what_remains_is_divided_among_the_live_replicas() -> None:
    tokens = Tokens.assumed(Bucket.CREATE).learn(Allowance(12, 9, 30), 0, 3)
    for _ in range(3):
        assert tokens.opens(Priority.CREATE, 1, 3) == 1
        tokens = tokens.take(1, 3)
    assert tokens.opens(Priority.CREATE, 1, 3) == 30


def test_a_refusal_closes_the_bucket_for_everybody_until_it_says() -> None:
    tokens = told().learn(Refusal(45), 5, 1)
    for priority in Priority:
        assert tokens.opens(priority, 6, 1) == 50
        assert tokens.opens(priority, 50, 1) == 50


def test_a_late_answer_does_not_open_what_a_refusal_closed() -> None:
    tokens = told().learn(Refusal(45), 5, 1).learn(Allowance(10, 9, 20), 6, 1)
    assert tokens.opens(Priority.KILL, 7, 1) == 50
    assert tokens.learn(Refusal(1), 8, 1).opens(Priority.KILL, 9, 1) == 50


def test_a_new_window_brings_new_tokens() -> None:
    tokens = told(remaining=0)
    assert tokens.opens(Priority.KILL, 29, 1) == 30
    assert tokens.opens(Priority.READ, 30, 1) == 30


def test_calls_on_their_way_are_not_forgotten_by_an_answer_that_does_not_count_them() -> None:
    tokens = told(Bucket.CREATE, limit=10, remaining=10)
    for _ in range(8):
        tokens = tokens.take(1, 1)
    tokens = tokens.learn(Allowance(10, 9, 28), 2, 1)
    assert tokens.left == 2


def test_what_others_used_is_believed_at_once() -> None:
    assert told(Bucket.CREATE, 10, 10).learn(Allowance(10, 1, 28), 2, 1).left == 1


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("priority", list(Priority))
def test_even_the_smallest_limit_lets_everybody_through_in_the_end(
    limit: int, priority: Priority
) -> None:
    assert told(limit=limit, remaining=limit).opens(priority, 1, 1) == 1
    assert told(limit=limit, remaining=0).opens(priority, 40, 5) == 40


@dataclass
class Server:
    """Counts as Daytona does: a window begins with its first call."""

    limit: int
    ends: float = -math.inf
    used: int = 0
    refused: int = 0

    def call(self, now: float) -> Allowance | Refusal:
        if now >= self.ends:
            self.ends, self.used = now + WINDOW, 0
        self.used += 1
        if self.used > self.limit:
            self.refused += 1
            return Refusal(math.ceil(WINDOW))
        return Allowance(self.limit, self.limit - self.used, math.ceil(self.ends - now))


# One number per call holds who, how urgent and how much later: quick to draw, easy to shrink.
calls = st.lists(st.integers(0, 3 * 4 * 6 - 1), min_size=30, max_size=150)
PAUSES = (0.0, 0.0, 0.0, 0.1, 1.0, 20.0)


# A limit below the number of replicas cannot be shared out: each may try once per window.
@settings(deadline=None, max_examples=300)
@given(st.integers(3, 12), st.integers(1, 3), calls)
def test_replicas_that_wait_for_their_tokens_are_never_refused(
    limit: int, replicas: int, sent: list[int]
) -> None:
    server, now = Server(limit), 0.0
    tokens = [
        Tokens.assumed(Bucket.LIFECYCLE).learn(Allowance(limit, limit, 0), now, replicas)
        for _ in range(replicas)
    ]
    for each in sent:
        who, priority = each % 3 % replicas, Priority(each // 3 % 4)
        now += PAUSES[each // 12]
        if tokens[who].opens(priority, now, replicas) <= now:
            tokens[who] = tokens[who].take(now, replicas).learn(server.call(now), now, replicas)
    assert server.refused == 0


@settings(deadline=None)
@given(st.integers(5, 50), st.integers(1, 4), st.integers(0, 200))
def test_however_many_reads_there_were_a_kill_still_goes(
    limit: int, replicas: int, reads: int
) -> None:
    tokens = Tokens.assumed(Bucket.GENERAL).learn(Allowance(limit, limit, 30), 0, replicas)
    for _ in range(reads):
        if tokens.opens(Priority.READ, 1, replicas) == 1:
            tokens = tokens.take(1, replicas)
    if limit / replicas >= 5:
        assert tokens.opens(Priority.KILL, 1, replicas) == 1
