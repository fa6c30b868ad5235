"""The desk answers as a ranking of everybody would, at once and without ranking everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from test_admission_rank import all_limits, candidate, candidates

from issuesandbox.api.conditions import Reason
from issuesandbox.domain.admission import Candidate, Limits, rank
from issuesandbox.domain.timings import Timings
from issuesandbox.engine.admission import AdmissionDesk, candidate_of
from issuesandbox.ports.resources import ResourceKey


class HandClock:
    """Time that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 7, 1, 12, 0, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


ALWAYS_ANEW = Timings(rank_refresh=timedelta(0))


@settings(deadline=None)
@given(candidates, all_limits, st.sets(st.integers(0, 7)))
def test_the_desk_says_what_a_full_ranking_says(
    everybody: list[Candidate], limits: Limits, leaving: set[int]
) -> None:
    clock = HandClock()
    gone = [everybody[place] for place in leaving]
    left = [each for each in everybody if each not in gone]
    expected = rank(left, limits, clock.now())
    for asks in left[:10]:
        desk = AdmissionDesk(limits, ALWAYS_ANEW, clock)
        for each in everybody:
            # Whatever was known before, and whoever has gone since, must leave no trace.
            desk.put(replace(each, live=not each.live, wants=not each.wants))
            desk.put(each)
        for each in gone:
            desk.drop(each.uid)
        assert desk.live == sum(each.live for each in left)
        assert desk.asking == sum(each.wants for each in left)
        assert desk.ask(asks.uid) == expected.get(asks.uid)


@settings(deadline=None)
@given(candidates, all_limits, st.sampled_from([0.0, 1.0]))
def test_all_who_ask_one_after_the_other_get_no_more_than_there_is(
    everybody: list[Candidate], limits: Limits, refresh: float
) -> None:
    desk = AdmissionDesk(limits, Timings(rank_refresh=timedelta(seconds=refresh)), HandClock())
    for each in everybody:
        desk.put(each)
    asking = [each for each in everybody if each.wants and not each.live]
    new = [each for each in asking if (answer := desk.ask(each.uid)) and answer.admitted]
    live = [each for each in everybody if each.live]
    assert len(new) <= max(0, limits.installation - len(live))
    held = Counter(each.repository for each in live)
    for repository, count in Counter(each.repository for each in new).items():
        assert held[repository] + count <= limits.repository


def test_room_for_one_goes_to_the_oldest_whoever_asks_first() -> None:
    for limits in (Limits(installation=1), Limits(repository=1), Limits(new_runs=1)):
        desk = AdmissionDesk(limits, Timings(), HandClock())
        desk.put(candidate("young", number=1, created="2026-07-01T11:00:00Z"))
        desk.put(candidate("old", number=2, created="2026-07-01T10:00:00Z"))
        answers = {uid: desk.ask(uid) for uid in ("young", "old")}
        assert {uid: answer and answer.admitted for uid, answer in answers.items()} == {
            "young": False,
            "old": True,
        }


def test_a_slot_is_given_once_even_before_its_holder_is_seen_to_have_it() -> None:
    desk = AdmissionDesk(Limits(installation=1), Timings(), HandClock())
    desk.put(candidate("first", number=1))
    answer = desk.ask("first")
    assert answer is not None
    assert answer.admitted
    desk.put(candidate("second", number=2, created="2026-07-01T09:00:00Z"))
    waits = desk.ask("second")
    assert waits is not None
    assert waits.reason is Reason.QUEUED
    assert desk.ask("first") == answer


def test_a_slot_that_somebody_else_took_meanwhile_is_not_given_again() -> None:
    desk = AdmissionDesk(Limits(installation=1), Timings(), HandClock())
    for number in (1, 2):
        desk.put(candidate(f"{number}", number=number, created=f"2026-07-01T10:00:0{number}Z"))
    desk.ask("2")
    # Another replica admitted one of its own: the ranking at hand does not know.
    desk.put(candidate("3", number=3, live=True, wants=False))
    answer = desk.ask("1")
    assert answer is not None
    assert answer.reason is Reason.QUEUED


def test_who_fails_to_use_its_slot_gives_it_back() -> None:
    desk = AdmissionDesk(Limits(installation=1), Timings(), HandClock())
    desk.put(candidate("first", number=1))
    desk.ask("first")
    desk.put(candidate("first", number=1))
    assert (desk.live, desk.asking) == (0, 1)


def test_a_newcomer_to_a_ranked_queue_is_told_to_ask_again_soon() -> None:
    clock = HandClock()
    desk = AdmissionDesk(Limits(installation=1), Timings(), clock)
    for number in (1, 2):
        desk.put(candidate(f"{number}", number=number))
        desk.ask(f"{number}")
    desk.put(candidate("new", number=3))
    early = desk.ask("new")
    assert early is not None
    assert (early.reason, early.position, early.retry) == (
        Reason.QUEUED,
        None,
        Timings().rank_refresh,
    )
    clock.seconds += 0.25
    later = desk.ask("new")
    assert later is not None
    assert later.position == 2


def test_who_asks_for_nothing_gets_no_verdict() -> None:
    desk = AdmissionDesk(Limits(), Timings(), HandClock())
    desk.put(candidate("idle", wants=False))
    assert desk.ask("idle") is None
    assert desk.ask("never seen") is None


async def test_who_waits_is_woken_when_its_turn_comes() -> None:
    desk = AdmissionDesk(Limits(installation=1), Timings(rank_refresh=timedelta(0)), HandClock())
    desk.put(candidate("holder", number=1, live=True, wants=False))
    desk.put(candidate("next", number=2))
    assert not desk.ask("next").admitted
    woken: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(desk.run(woken.put_nowait))
    try:
        await asyncio.sleep(0.01)
        assert woken.empty()
        desk.drop("holder")
        async with asyncio.timeout(5):
            assert await woken.get() == "next"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_who_is_rationed_is_woken_by_time_alone() -> None:
    clock = HandClock()
    timings = Timings(
        rank_refresh=timedelta(milliseconds=1), run_rate_window=timedelta(milliseconds=50)
    )
    desk = AdmissionDesk(Limits(new_runs=1), timings, clock)
    desk.put(candidate("first", number=1, live=True, wants=False, starts=(clock.now(),)))
    desk.put(candidate("next", number=2))
    assert not desk.ask("next").admitted
    woken: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(desk.run(woken.put_nowait))
    try:
        await asyncio.sleep(0)
        clock.seconds += 0.05
        async with asyncio.timeout(5):
            assert await woken.get() == "next"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_a_candidate_is_read_from_a_resource_and_ignores_case_like_github() -> None:
    body = {
        "metadata": {
            "uid": "u",
            "namespace": "team-a",
            "name": "one",
            "creationTimestamp": "2026-07-01T11:00:00Z",
        },
        "spec": {"issue": {"repository": "Octo/Hello", "number": 7, "author": "Ann"}},
    }
    key = ResourceKey("team-a", "one", "u")
    read = candidate_of(key, body, wants=True, live=False)
    assert read.issue == ("octo/hello", 7)
    assert read.by == ("octo/hello", "ann")
    assert (read.created, read.wants, read.live) == ("2026-07-01T11:00:00Z", True, False)


def test_nothing_is_kept_of_who_has_gone_or_of_starts_that_are_long_ago() -> None:
    clock = HandClock()
    desk = AdmissionDesk(Limits(), Timings(), clock)
    empty = {name: len(kept) for name, kept in vars(desk).items() if hasattr(kept, "__len__")}
    for number in range(50):
        asks = candidate(f"u{number}", number=number, repository=f"octo/{number}", wants=True)
        desk.put(replace(asks, author=f"author-{number}"))
        desk.ask(asks.uid)
    clock.seconds += 7 * 86400
    for number in range(50):
        desk.drop(f"u{number}")
    kept = {name: len(kept) for name, kept in vars(desk).items() if hasattr(kept, "__len__")}
    assert kept | {"_ranking": 0} == empty | {"_ranking": 0}
