"""The five flags: the whole matrix, canaries that nest, and the resource's own word."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any

import pytest
from tests.fakes.world import World

from issuesandbox.api.resource import IssueSandbox
from issuesandbox.api.status import Status
from issuesandbox.domain.flags import NEEDS, Flag, Flags, FlagSet, parse_share, place_of, unmet
from issuesandbox.engine.notes import notes

MATRIX = list(itertools.product((0, 100), repeat=len(Flag)))


def resource(repository: str = "octo/hello", number: int = 1, **own: bool) -> IssueSandbox:
    spec: dict[str, Any] = {"issue": {"repository": repository, "number": number}}
    if own:
        spec["flags"] = own
    return IssueSandbox.model_validate({"metadata": {"name": "one"}, "spec": spec})


def test_everything_is_on_unless_said_otherwise() -> None:  # R105
    assert all(asdict(Flags().of(resource())).values())


@pytest.mark.parametrize("values", MATRIX)
def test_each_of_the_32_combinations_is_what_was_asked_for(values: tuple[int, ...]) -> None:
    flags = Flags(dict(zip(Flag, values, strict=True)))
    on = asdict(flags.of(resource()))
    assert [on[flag.name.lower()] for flag in Flag] == [value == 100 for value in values]
    broken = {
        (flag, needed)
        for flag, needs in NEEDS.items()
        for needed in needs
        if flags.percent[flag] and not flags.percent[needed]
    }
    warned = flags.warnings()
    assert len(warned) == len(broken)
    for flag, needed in broken:
        assert any(line.startswith(flag) and needed in line for line in warned)


@pytest.mark.parametrize("values", MATRIX)
def test_a_resource_is_told_which_of_its_own_flags_lack_what_they_build_on(
    values: tuple[int, ...],
) -> None:
    names = [flag.name.lower() for flag in Flag]
    wanted = FlagSet(**dict(zip(names, map(bool, values), strict=True)))
    lines = unmet(wanted)
    on = dict(zip(Flag, values, strict=True))
    lacking = [
        (flag, needed)
        for flag, needs in NEEDS.items()
        for needed in needs
        if on[flag] and not on[needed]
    ]
    assert len(lines) == len(lacking)
    for line, (flag, needed) in zip(lines, lacking, strict=True):
        assert line.startswith(f"{flag} ")
        assert f" {needed}," in line


def test_own_flags_that_do_not_fit_are_told_in_the_status_and_once_in_an_event() -> None:
    world = World()
    issue, flags = {"repository": "octo/hello", "number": 7}, {"cancellationChecks": False}
    world.kube.create("team", "one", {"issue": issue, "flags": flags})
    world.live(60)
    body = world.kube.find("team", "one")
    assert body is not None
    (synced,) = (each for each in body["status"]["conditions"] if each["type"] == "Synced")
    assert (synced["status"], synced["reason"]) == ("True", "FlagWithoutItsBase")
    assert "ENABLE_INACTIVITY_TIMEOUT is on for this resource" in synced["message"]
    after = Status.model_validate(body["status"])
    told = [(each.reason, each.warning) for each in notes(Status(), after)]
    assert told == [("FlagWithoutItsBase", True)]
    assert not list(notes(after, after))


def test_the_dependencies_are_the_documented_ones() -> None:  # R106
    first, second, third, fourth, fifth = Flag
    assert {second: (first,), third: (first,), fourth: (second,), fifth: (first, second)} == NEEDS


def test_a_canary_takes_its_share_and_a_larger_one_contains_it() -> None:  # R107
    issues = [(f"octo/repo-{each % 7}", each) for each in range(1, 2001)]

    def taken(percent: int) -> set[tuple[str, int]]:
        flags = Flags({Flag.HEALTH_PROBE: percent})
        return {each for each in issues if flags.of(resource(*each)).health_probe}

    ten, fifty = taken(10), taken(50)
    assert 140 < len(ten) < 260
    assert 900 < len(fifty) < 1100
    assert ten < fifty
    assert taken(0) == set()
    assert taken(100) == set(issues)


def test_the_place_of_an_issue_never_changes_nor_depends_on_case() -> None:
    assert place_of("octo/hello", 12) == place_of("Octo/Hello", 12) == 35
    assert place_of("octo/hello", 13) != place_of("octo/hello", 12)


def test_what_a_flag_builds_on_is_on_wherever_a_smaller_canary_is() -> None:
    flags = Flags({Flag.DB_BACKED_STOP: 50, Flag.CANCELLATION_CHECKS: 10})
    for number in range(500):
        on = flags.of(resource(number=number + 1))
        assert on.db_backed_stop or not on.cancellation_checks


def test_the_resource_has_the_last_word() -> None:
    off = Flags(dict.fromkeys(Flag, 0))
    assert off.of(resource(healthProbe=True)).health_probe
    assert not Flags().of(resource(healthProbe=False)).health_probe
    assert Flags().of(resource(healthProbe=False)).db_backed_stop


@pytest.mark.parametrize(("text", "percent"), [("true", 100), ("False", 0), (" 10% ", 10)])
def test_a_share_is_a_word_or_a_percentage(text: str, percent: int) -> None:
    assert parse_share(text) == percent


@pytest.mark.parametrize("text", ["", "yes", "101%", "-1%", "10", "1e1%"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="true, false or a percentage"):
        parse_share(text)
