"""How often Daytona is called, how that ends and how long it takes: told, not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from issuesandbox.domain.numbers import OK
from issuesandbox.ports.errors import CallError

Meter = Callable[[str, str, float], None]
"""Told of every call: its kind, `ok` or the kind of failure, and the seconds it took."""


def unmetered(_call: str, _result: str, _seconds: float) -> None:
    """Take no note."""


@contextmanager
def metered(meter: Meter, call: str) -> Iterator[None]:
    """Tell the meter of the call made in this context, unless it was given up midway."""
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        yield
    except CallError as error:
        meter(call, type(error).__name__, clock() - began)
        raise
    meter(call, OK, clock() - began)
