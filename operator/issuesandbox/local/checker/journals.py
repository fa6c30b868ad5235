"""The journals of the two simulators, read into what the rules ask about.

Knows their formats. Only what the operator did is kept apart from what others did; what it should
have done is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Entry = Mapping[str, Any]

ZERO_COMMIT = "0" * 40


@dataclass(frozen=True)
class StateChange:
    """A sandbox entered a state; `before` is None at its birth."""

    seq: int
    at: float
    sandbox: str
    name: str
    organization: str
    labels: Mapping[str, str]
    before: str | None
    after: str
    cause: str


@dataclass(frozen=True)
class Call:
    """A call that the operator made at Daytona."""

    seq: int
    at: float
    kind: str
    sandbox: str | None
    name: str | None
    effect: str | None
    # None where the connection broke instead of an answer.
    status: int | None = None


@dataclass(frozen=True)
class DaytonaJournal:
    """What happened at Daytona, in order."""

    states: tuple[StateChange, ...] = ()
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Push:
    """A ref that the operator moved."""

    seq: int
    at: float
    repository: str
    ref: str
    old: str
    new: str


@dataclass(frozen=True)
class Act:
    """Something else that the operator changed on GitHub."""

    seq: int
    at: float
    what: str
    repository: str
    number: int | None
    id: int | None


@dataclass(frozen=True)
class GitHubJournal:
    """What the operator did on GitHub, in order."""

    pushes: tuple[Push, ...] = ()
    acts: tuple[Act, ...] = ()


def read_daytona(
    entries: Iterable[Entry], identities: Collection[str] | None = None
) -> DaytonaJournal:
    """Read Daytona's journal; calls of other identities than the operator's are left out."""
    states, calls = [], []
    for entry in entries:
        if entry["type"] == "state":
            states.append(
                StateChange(
                    seq=entry["seq"],
                    at=entry["at"],
                    sandbox=entry["sandbox"],
                    name=entry["name"],
                    organization=entry["organization"],
                    labels=entry["labels"] or {},
                    before=entry["from"],
                    after=entry["to"],
                    cause=entry["cause"],
                )
            )
        elif entry["type"] == "request" and _is_operators(entry["identity"], identities):
            calls.append(
                Call(
                    seq=entry["seq"],
                    at=entry["at"],
                    kind=entry["kind"],
                    sandbox=entry["sandbox"],
                    name=entry["name"],
                    effect=entry["effect"],
                    status=entry["status"],
                )
            )
    return DaytonaJournal(tuple(states), tuple(calls))


def read_github(entries: Iterable[Entry], logins: Collection[str] | None = None) -> GitHubJournal:
    """Read GitHub's journal; without logins, everything done by an app is the operator's."""
    pushes, acts = [], []
    for entry in entries:
        identity = entry.get("identity") or {}
        if entry["type"] not in ("push", "request") or not _is_app(identity, logins):
            continue
        seq, at = entry["seq"], _seconds(entry["at"])
        if entry["type"] == "push":
            repository, ref = entry["repo"].lower(), entry["ref"]
            pushes.append(Push(seq, at, repository, ref, entry["old"], entry["new"]))
        else:
            acts += [_act(seq, at, effect) for effect in entry["effect"] or ()]
    return GitHubJournal(tuple(pushes), tuple(acts))


def _act(seq: int, at: float, effect: Entry) -> Act:
    repository = str(effect.get("repository") or "").lower()
    return Act(seq, at, effect["what"], repository, effect.get("number"), effect.get("id"))


def _is_operators(identity: str | None, identities: Collection[str] | None) -> bool:
    return identity is not None and (identities is None or identity in identities)


def _is_app(identity: Entry, logins: Collection[str] | None) -> bool:
    if logins is None:
        return identity.get("kind") in ("installation", "app")
    return identity.get("login") in logins


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
