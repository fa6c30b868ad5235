"""The recorder misses nothing, whatever the API server does to its watch."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from checker_api_server import ApiServer

from issuesandbox.local.checker.evidence import Observation
from issuesandbox.local.checker.recorder import Recorder


def eventually(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def told(history: tuple[Observation, ...]) -> list[tuple[str, str, Any]]:
    return [
        (seen.kind, seen.object["metadata"]["name"], seen.object["spec"].get("n"))
        for seen in history
    ]


def test_every_version_is_noted_with_its_time_and_place(api: ApiServer, kubeconfig: Path) -> None:
    api.write("a", "ADDED", told=False, n=1)
    with Recorder(kubeconfig, positions=lambda: (7, 9)) as recorder:
        eventually(lambda: api.watched_from)
        for n in (2, 3):
            api.write("a", "MODIFIED", n=n)
        api.write("b", "ADDED", n=1)
        api.write("a", "DELETED", n=3)
        history = recorder.history()
    assert told(history) == [
        ("ADDED", "a", 1),
        ("MODIFIED", "a", 2),
        ("MODIFIED", "a", 3),
        ("ADDED", "b", 1),
        ("DELETED", "a", 3),
    ]
    assert {(seen.moment.daytona, seen.moment.github) for seen in history} == {(7, 9)}
    times = [seen.moment.at for seen in history]
    assert times == sorted(times)


def test_a_watch_that_ends_is_taken_up_where_it_was(api: ApiServer, kubeconfig: Path) -> None:
    with Recorder(kubeconfig) as recorder:
        eventually(lambda: api.watched_from)
        api.write("a", "ADDED", n=1)
        api.events.put(None)
        eventually(lambda: len(api.watched_from) == 2)
        api.write("a", "MODIFIED", n=2)
        history = recorder.history()
    assert api.watched_from == ["1", "2"]
    assert told(history) == [("ADDED", "a", 1), ("MODIFIED", "a", 2)]


def test_what_a_watch_missed_is_found_by_a_list(api: ApiServer, kubeconfig: Path) -> None:
    api.write("a", "ADDED", told=False, n=1)
    api.write("b", "ADDED", told=False, n=1)
    with Recorder(kubeconfig) as recorder:
        eventually(lambda: api.watched_from)
        api.write("a", "DELETED", told=False, n=1)
        api.write("b", "MODIFIED", told=False, n=2)
        api.write("c", "ADDED", told=False, n=1)
        expired = {"type": "ERROR", "object": {"code": 410}}
        api.events.put(expired)
        api.events.put(None)
        history = recorder.history()
    assert sorted(told(history)[2:]) == [
        ("ADDED", "c", 1),
        ("DELETED", "a", 1),
        ("MODIFIED", "b", 2),
    ]


def test_a_resource_type_that_comes_later_is_waited_for(api: ApiServer, kubeconfig: Path) -> None:
    api.installed = False
    with Recorder(kubeconfig) as recorder:
        api.installed = True
        eventually(lambda: api.watched_from)
        api.write("a", "ADDED", n=1)
        assert told(recorder.history()) == [("ADDED", "a", 1)]


def test_a_cluster_without_the_resource_type_has_no_history(
    api: ApiServer, kubeconfig: Path
) -> None:
    api.installed = False
    with Recorder(kubeconfig) as recorder:
        assert recorder.history() == ()


def test_a_watch_that_lags_is_not_taken_for_the_truth(api: ApiServer, kubeconfig: Path) -> None:
    with Recorder(kubeconfig) as recorder:
        eventually(lambda: api.watched_from)
        api.write("a", "ADDED", told=False, n=1)
        with pytest.raises(TimeoutError, match="behind"):
            recorder.history(within=0.1)
