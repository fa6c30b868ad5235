"""Watches every resource for as long as a test runs, in a thread of its own.

Writes down what the API server told, when, and how far the journals were by then. Judges nothing.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from issuesandbox.api.names import GROUP, PLURAL, VERSION
from issuesandbox.clock import Clock, SystemClock
from issuesandbox.local.checker.evidence import Moment, Observation

Positions = Callable[[], tuple[int | None, int | None]]

_RETRY_SECONDS = 0.1
_POLL_SECONDS = 0.02


def _nowhere() -> tuple[int | None, int | None]:
    return None, None


class Recorder:
    """The history of all resources of one cluster."""

    def __init__(
        self, kubeconfig: Path, positions: Positions = _nowhere, clock: Clock | None = None
    ) -> None:
        from kubernetes import client, config

        self._client = config.new_client_from_config(config_file=str(kubeconfig))
        self._api = client.CustomObjectsApi(self._client)
        self._positions = positions
        self._clock = clock or SystemClock()
        self._seen: list[Observation] = []
        self._present: dict[str, Mapping[str, Any]] = {}
        self._looked = threading.Event()
        self._stopping = threading.Event()
        self._response: Any = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._looked.wait()  # what is made from now on is seen
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        while self._thread.is_alive():
            # The watch may be between two answers, with nothing to interrupt yet.
            response = self._response
            if response is not None:
                with suppress(ValueError, RuntimeError, OSError):
                    response.shutdown()
            self._thread.join(_POLL_SECONDS)
        self._client.close()

    @property
    def told(self) -> int:
        """Return how many changes the watch has told so far; it may be a moment behind."""
        return len(self._seen)

    def history(self, within: float = 10.0) -> tuple[Observation, ...]:
        """Return everything up to now; waits until the watch has told what a list shows."""
        deadline = time.monotonic() + within
        while self._told() != self._listed():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the watch of {PLURAL} is more than {within:g} s behind")
            time.sleep(_POLL_SECONDS)
        return tuple(self._seen)

    def _told(self) -> dict[str, str]:
        # A copy: the watch goes on while we look.
        return {uid: _version(each) for uid, each in dict(self._present).items()}

    def _listed(self) -> dict[str, str]:
        from kubernetes.client import ApiException

        try:
            return {_uid(each): _version(each) for each in self._list()["items"]}
        except ApiException as error:
            if error.status != 404:
                raise
            return {}  # a cluster without the resource type has no resources

    def _list(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self._api.list_cluster_custom_object(GROUP, VERSION, PLURAL))

    def _run(self) -> None:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        while not self._stopping.is_set():
            try:
                version = self._catch_up()
                self._looked.set()
                while not self._stopping.is_set():
                    version = self._follow(version)
            except (ApiException, HTTPError, _ExpiredError):
                # Away, not installed yet, or too far behind: begin again with a list.
                self._looked.set()
                self._stopping.wait(_RETRY_SECONDS)
            except ValueError:
                # A shutdown takes the decryption away first: what comes after it is noise.
                if not self._stopping.is_set():
                    raise

    def _catch_up(self) -> str:
        """Note what a list shows and the watch did not tell; return where to watch from."""
        listed = self._list()
        there = {_uid(each): each for each in listed["items"]}
        for uid, each in there.items():
            before = self._present.get(uid)
            if before is None or _version(before) != _version(each):
                self._note("ADDED" if before is None else "MODIFIED", each)
        for uid in self._present.keys() - there.keys():
            self._note("DELETED", self._present[uid])
        return str(listed["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> str:
        """Watch until the API server ends the answer; return where to go on."""
        self._response = self._api.list_cluster_custom_object(
            GROUP, VERSION, PLURAL, watch=True, resource_version=version, _preload_content=False
        )
        try:
            for event in _events(self._response):
                if event["type"] == "ERROR":
                    raise _ExpiredError
                self._note(event["type"], event["object"])
                version = _version(event["object"])
        finally:
            response, self._response = self._response, None
            response.close()
        return version

    def _note(self, kind: str, resource: Mapping[str, Any]) -> None:
        moment = Moment(self._clock.now().timestamp(), *self._positions())
        self._seen.append(Observation(moment, kind, resource))
        if kind == "DELETED":
            self._present.pop(_uid(resource), None)
        else:
            self._present[_uid(resource)] = resource


class _ExpiredError(Exception):
    """The API server no longer knows the version we want to watch from."""


def _events(response: Any) -> Iterator[dict[str, Any]]:
    rest = b""
    for chunk in response.stream(amt=None, decode_content=False):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (json.loads(line) for line in lines if line.strip())


def _uid(resource: Mapping[str, Any]) -> str:
    return str(resource["metadata"]["uid"])


def _version(resource: Mapping[str, Any]) -> str:
    return str(resource["metadata"]["resourceVersion"])
