"""Resources at the admission desk: what their bodies say about who holds and who waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from issuesandbox.api.conditions import Reason
from issuesandbox.api.names import ANNOTATION_FIRST_CREATE, ANNOTATION_PAUSED
from issuesandbox.domain.admission import Candidate
from issuesandbox.domain.model import ANNOUNCED, HeldBack
from issuesandbox.engine.admission import AdmissionDesk, candidate_of
from issuesandbox.engine.reading import Admission
from issuesandbox.ports.resources import ResourceKey


def register(desk: AdmissionDesk) -> Callable[[ResourceKey, Mapping[str, Any]], None]:
    """Return what keeps the desk up to date with every body the cache takes."""

    def put(key: ResourceKey, body: Mapping[str, Any]) -> None:
        desk.put(registered(key, body))

    return put


def registered(key: ResourceKey, body: Mapping[str, Any]) -> Candidate:
    """Return a resource as a candidate, by nothing but its body: any replica comes to the same."""
    return candidate_of(
        key, body, wants=asks(body), live=holds_slot(body), starts=tuple(_starts(body))
    )


def admission(desk: AdmissionDesk, is_complete: Callable[[], bool]) -> Admission:
    """Return what a pass asks before it makes anything; until all are known, all wait."""

    def ask(uid: str) -> HeldBack | None:
        if not is_complete():
            return HeldBack.undecided("The resources of the cluster are still being read.")
        verdict = desk.ask(uid)
        if verdict is None or verdict.admitted:
            return None
        if verdict.reason is None or (verdict.reason is Reason.QUEUED and not verdict.position):
            return HeldBack.undecided(verdict.message, verdict.retry)
        return HeldBack(verdict.reason, verdict.message, verdict.retry)

    return ask


def holds_slot(body: Mapping[str, Any]) -> bool:
    """Tell whether a resource has a sandbox, or one is on its way."""
    status = body.get("status") or {}
    sandbox, intent = status.get("sandbox"), status.get("intent") or {}
    begun = intent.get("kind") == "Create" and intent.get("reason") != ANNOUNCED
    if (sandbox or {}).get("id") or begun:
        return True
    announced = ANNOTATION_FIRST_CREATE in body["metadata"].get("annotations", {})
    return announced and sandbox is None and not intent


def asks(body: Mapping[str, Any]) -> bool:
    """Tell whether a resource waits for a sandbox or, in the one it has, for another run."""
    metadata, spec = body["metadata"], body["spec"]
    if metadata.get("deletionTimestamp") or spec.get("desiredState") == "Stopped":
        return False
    if metadata.get("annotations", {}).get(ANNOTATION_PAUSED) == "true":
        return False
    asked = spec.get("run")
    run = (body.get("status") or {}).get("run")
    if asked is None or run is None or run.get("outcome") is None:
        return not holds_slot(body)
    return bool(run.get("trigger") != asked.get("trigger"))


_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Announced(msgspec.Struct):
    at: _Moment


def _starts(body: Mapping[str, Any]) -> set[datetime]:
    """Return when the last runs began, or when the sandbox for the first was announced."""
    status = body.get("status") or {}
    run = status.get("run")
    try:
        if run is None:
            announced = body["metadata"].get("annotations", {}).get(ANNOTATION_FIRST_CREATE)
            return {msgspec.json.decode(announced, type=_Announced).at} if announced else set()
        told = (each.get("startedAt") for each in (run, *status.get("history", ())))
        return set(msgspec.convert([each for each in told if each], list[_Moment]))
    except msgspec.MsgspecError:
        return set()  # somebody edited it
