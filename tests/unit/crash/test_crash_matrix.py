"""Disturbed at any call, a story ends as if nothing had happened.

The matrix is made from the calls that the undisturbed story makes, so a new call is in it by
itself. That there is never more than one live sandbox and that no resource is let go too early,
the oracle of the world watches all the time.
"""

from __future__ import annotations

from functools import cache

import pytest
from tests.fakes.wire import Call, Fate
from tests.fakes.world import World
from tests.unit.crash.crash_stories import STORIES, Chapter, tell


@cache
def undisturbed(story: str) -> tuple[list[Chapter], list[Call]]:
    world = World()
    chapters = tell(world, story)
    return chapters, world.network.journal


def disturb_each_call(story: str, fate: Fate, operators: int = 1) -> dict[str, str]:
    """Give each call of a story in turn this fate; return what went wrong, by call."""
    expected, calls = undisturbed(story)
    wrong: dict[str, str] = {}
    for place, call in enumerate(calls):
        if call.verb == "list" == calls[place - 1].verb:
            continue  # nothing happened since the last list
        world = World(operators)
        world.network.doomed[place] = fate
        try:
            chapters = tell(world, story)
        except AssertionError as error:
            wrong[f"{place}: {call}"] = str(error)
            continue
        odd = [each for each, usual in zip(chapters, expected, strict=True) if each != usual]
        if odd:
            wrong[f"{place}: {call}"] = f"{odd[0]}"
    return wrong


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("fate", [Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.DIES_AND_LANDS])
def test_killed_at_any_call_it_goes_on_as_if_nothing_had_happened(story: str, fate: Fate) -> None:
    # R11
    assert disturb_each_call(story, fate) == {}


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.ANSWER_LOST, Fate.LANDS_LATE])
def test_a_call_that_gets_lost_changes_nothing_in_the_end(story: str, fate: Fate) -> None:
    assert disturb_each_call(story, fate) == {}


@pytest.mark.parametrize("story", STORIES)
def test_the_other_of_two_operators_takes_over_at_any_call(story: str) -> None:
    assert disturb_each_call(story, Fate.DIES_AFTER, operators=2) == {}


@pytest.mark.parametrize("story", STORIES)
def test_the_stories_have_calls_to_disturb(story: str) -> None:
    verbs = {call.verb for call in undisturbed(story)[1]}
    assert {"create", "delete", "patch", "patch_status", "get", "list"} <= verbs
