"""The server's clock: small differences are noise, large ones are followed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from issuesandbox.adapters.kube.server_clock import ServerClock

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Still:
    """Clocks that stand until they are moved: the wall clock may be set, the other only goes."""

    def __init__(self) -> None:
        self.wall, self.uptime = NOW, 5.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.uptime


def header(offset: timedelta) -> str:
    return format_datetime(NOW + offset, usegmt=True)


@pytest.mark.parametrize("seconds", [-3600, -10, 10, 3600])
def test_a_clock_that_is_off_is_corrected(seconds: int) -> None:
    clock = ServerClock(Still())
    clock.learn(header(timedelta(seconds=seconds)))
    assert clock.now() == NOW + timedelta(seconds=seconds)
    assert clock.monotonic() == 5.0


def test_small_differences_do_not_make_it_jitter() -> None:
    clock = ServerClock(Still())
    for seconds in (1, -1, 2, 0):
        clock.learn(header(timedelta(seconds=seconds)))
        assert clock.now() == NOW


def test_a_corrected_clock_comes_back() -> None:
    clock = ServerClock(Still())
    clock.learn(header(timedelta(hours=1)))
    clock.learn(header(timedelta(0)))
    assert clock.offset == timedelta(0)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wall_clock_that_is_set_between_two_answers_is_not_believed(hours: int) -> None:
    local = Still()
    clock = ServerClock(local)
    clock.learn(header(timedelta(seconds=1)))
    local.uptime += 3
    local.wall += timedelta(hours=hours, seconds=3)
    assert clock.now() == NOW + timedelta(seconds=3)
    clock.learn(header(timedelta(seconds=3)))
    assert clock.now() == NOW + timedelta(seconds=3)


def test_nonsense_is_passed_over() -> None:
    clock = ServerClock(Still())
    for text in ("", "soon", "Tue, 99 Foo 2030"):
        clock.learn(text)
    assert clock.now() == NOW
