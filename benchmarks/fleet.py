"""Resources of about 8 KB, and ten thousand of them in seconds.

One resource lives through the operator for real; the others are its copies with names, numbers,
texts and ids of their own, written straight into etcd, their sandboxes planted at Daytona. Made
through the API they would take minutes that say nothing about the operator.
"""

from __future__ import annotations

import asyncio
import base64
import random
import uuid
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any

import aiohttp
import msgspec

from issuesandbox.api.names import ANNOTATION_ANNOUNCED, FINALIZER
from issuesandbox.domain.naming import sandbox_name

NAMESPACE = "bench"
_REPOSITORIES = 100
_KEYS = f"/registry/issuesandbox.dev/issuesandboxes/{NAMESPACE}/"
_EVENTS = f"/registry/events/{NAMESPACE}/"
_AT_ONCE = 32
# With the rest of the spec, the status and the API server's own records: 8 KB.
_TEXT_BYTES = 4800
# Renewals come once per half of the auto-stop interval; a fleet that lives has them spread out.
_HALF_INTERVAL = 1800.0

_random = random.Random(7)
_WORDS = [
    "".join(_random.choices("abcdefghijklmnopqrstuvwxyz", k=_random.randint(2, 10)))
    for _ in range(2000)
]


def resource_name(number: int, kind: str = "issue") -> str:
    """Return the name of a resource; what comes and goes in a round is of another kind."""
    return f"{kind}-{number:07}"


def body_of(
    number: int, kind: str = "issue", namespace: str = NAMESPACE, *, announced: bool = False
) -> dict[str, Any]:
    """Return a resource without a run, as a user would apply it, or as the adapter would."""
    repository = f"octo/hello-{number % _REPOSITORIES}"
    metadata: dict[str, Any] = {"name": resource_name(number, kind), "namespace": namespace}
    if announced:
        metadata["finalizers"] = [FINALIZER]
        metadata["annotations"] = {ANNOTATION_ANNOUNCED: sandbox_name(number)}
    return {
        "apiVersion": "issuesandbox.dev/v1alpha1",
        "kind": "IssueSandbox",
        "metadata": metadata,
        "spec": {
            "issue": {
                "repository": repository,
                "number": number,
                "title": _text(number, 60),
                "body": _text(number, _TEXT_BYTES),
                "labels": ["bug", "agent"],
                "author": "octocat",
                "url": f"https://github.com/{repository}/issues/{number}",
            }
        },
    }


class Etcd:
    """Direct access to what the API server stores."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def read(self, number: int) -> dict[str, Any]:
        """Return a resource as it is stored."""
        answer = await self._call("range", {"key": _coded(_KEYS + resource_name(number))})
        stored: dict[str, Any] = msgspec.json.decode(base64.b64decode(answer["kvs"][0]["value"]))
        return stored

    async def write(self, resource: Mapping[str, Any]) -> None:
        """Store a resource as it is."""
        # One at a time: the API server believes that no two objects have the same version, and
        # all that one transaction writes has.
        value = base64.b64encode(msgspec.json.encode(resource)).decode()
        await self._call(
            "put", {"key": _coded(_KEYS + resource["metadata"]["name"]), "value": value}
        )

    async def forget(self, kind: str) -> None:
        """Remove all resources of one kind, and all Events."""
        for prefix in (f"{_KEYS}{kind}-", _EVENTS):
            end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
            wanted = {"key": _coded(prefix), "range_end": _coded(end), "keys_only": True}
            found = await self._call("range", wanted)
            await side_by_side(
                self._call("deleterange", {"key": each["key"]}) for each in found.get("kvs", ())
            )

    async def _call(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        url = f"{self._address}/v3/kv/{name}"
        async with self._session.post(url, json=body) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = await answer.json()
            return found


async def grow(etcd: Etcd, session: aiohttp.ClientSession, daytona: str, sizes: range) -> None:
    """Add the copies with these numbers to the resources and their sandboxes to Daytona."""
    template = await etcd.read(1)
    copies = [_copy(template, number) for number in sizes]
    sandboxes = list(map(_sandbox, copies))
    async with session.post(f"{daytona}/_bench/plant", json=sandboxes) as answer:
        answer.raise_for_status()
    await side_by_side(etcd.write(each) for each in copies)


async def side_by_side(works: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Do many small things, some of them at a time."""
    waiting = iter(works)

    async def take_turns() -> None:
        for work in waiting:
            await work

    await asyncio.gather(*(take_turns() for _ in range(_AT_ONCE)))


def _copy(template: Mapping[str, Any], number: int) -> dict[str, Any]:
    body = body_of(number)
    sandbox_name = f"claude-issue-{number}"
    metadata = {
        **template["metadata"],
        "name": body["metadata"]["name"],
        "uid": str(uuid.uuid4()),
    }
    notes = metadata.get("annotations", {})
    metadata["annotations"] = {
        name: text.replace("claude-issue-1", sandbox_name) for name, text in notes.items()
    }
    issue = body["spec"]["issue"]
    status = {**template["status"], "issue": f"{issue['repository']}#{number}"}
    status["sandbox"] = {**status["sandbox"], "id": str(uuid.uuid4()), "name": sandbox_name}
    spec = {**template["spec"], "issue": {**template["spec"]["issue"], **issue}}
    return {**template, "metadata": metadata, "spec": spec, "status": status}


def _sandbox(resource: Mapping[str, Any]) -> dict[str, Any]:
    issue, metadata = resource["spec"]["issue"], resource["metadata"]
    sandbox = resource["status"]["sandbox"]
    labels = {
        "installation": "bench",
        "namespace": NAMESPACE,
        "resource": metadata["name"],
        "uid": metadata["uid"],
        "repository": issue["repository"],
        "number": str(issue["number"]),
        "name": sandbox["name"],
        "attempt": "1",
    }
    return {
        "id": sandbox["id"],
        "name": sandbox["name"],
        "labels": {f"issuesandbox.dev/{name}": value for name, value in labels.items()},
        "autoStopInterval": 60,
        "autoArchiveInterval": 1440,
        "autoDeleteInterval": 4320,
        "ttlMinutes": 10080,
        "idle": _random.uniform(0, _HALF_INTERVAL),
    }


def _text(seed: int, length: int) -> str:
    return " ".join(_words(random.Random(seed), length))[:length]


def _words(source: random.Random, length: int) -> Iterator[str]:
    while length > 0:
        word = source.choice(_WORDS)
        length -= len(word) + 1
        yield word


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
