"""What must hold at every moment, whatever happens; watches every effect as it happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.daytona import FakeDaytona, Row
from tests.fakes.kube import Body, FakeKube
from tests.fakes.operator_process import INSTALLATION
from tests.fakes.wire import Call, Network, Service

from issuesandbox.api.names import (
    FINALIZER,
    LABEL_NAMESPACE,
    LABEL_NUMBER,
    LABEL_REPOSITORY,
    LABEL_RESOURCE,
    LABEL_UID,
)
from issuesandbox.ports.resources import ResourceKey

# A sandbox that ran undisturbed for so many seconds is healthy by any standard.
_HEALTHY_AFTER = 60.0


class Violation(AssertionError):
    """Something happened that must never happen."""


class Oracle:
    """Remembers the first violation, in case somebody swallows the exception."""

    def __init__(self, daytona: FakeDaytona, kube: FakeKube, network: Network) -> None:
        self._daytona = daytona
        self._kube = kube
        self._network = network
        self.violation: Violation | None = None
        self.orphaned: set[str] = set()
        """Resources that asked for their sandbox to be left behind."""
        self.acting_for: Callable[[], ResourceKey | None] = lambda: None
        self.blind: Callable[[], bool] = lambda: False
        daytona.witness = self.daytona_changed
        kube.witness = self.resource_changed

    def fail(self, text: str) -> None:
        """Report that something happened that must never happen."""
        self.violation = self.violation or Violation(text)
        raise self.violation

    def before_sending(self, call: Call) -> None:
        """Judge a call before it goes out."""
        # A renewal only tells Daytona that the sandbox is in use.
        harmless = call.reads or call.verb == "renew"
        # Stops are counted apart from the questions that Daytona takes no more of.
        harmless = harmless or (call.verb == "stop" and call.target in self._network.unasked)
        if call.service is Service.DAYTONA and not harmless and self.blind():
            self.fail(f"while Daytona cannot be asked: {call}")

    def daytona_changed(self, verb: str, row: Row) -> None:
        """Judge a change at Daytona."""
        if row.foreign:
            self.fail(f"{verb} of somebody else's sandbox {row.view.name}")
        if LABEL_UID not in row.view.labels:
            return  # people took it off; whose it is shows when it is back
        uid = row.view.labels[LABEL_UID]
        self._judge_actor(verb, row)
        if verb in ("create", "relabelled"):
            self._judge_number(row)
            self._judge_place(row)
            if uid not in self.orphaned and self._kube.with_uid(uid) is None:
                self.fail(f"{row.view.name} came to life for {uid}, which is gone")
        if verb == "delete" and self._is_healthy_and_wanted(row):
            self.fail(f"{row.view.id} was deleted though it is healthy and wanted")

    def resource_changed(self, before: Body, after: Body) -> None:
        """Judge a change of a resource by an operator."""
        self._judge_outcome(before, after)
        kept = FINALIZER in after["metadata"].get("finalizers", ())
        if kept or FINALIZER not in before["metadata"].get("finalizers", ()):
            return
        uid = before["metadata"]["uid"]
        if "deletionTimestamp" not in before["metadata"]:
            self.fail(f"{uid} lost its finalizer though nobody deletes it")
        if before["spec"].get("deletionPolicy") == "Orphan":
            self.orphaned.add(uid)
            return
        self._judge_release(uid)

    def check_leftovers(self) -> None:
        """Judge what is left when all is quiet: nothing lives without its resource."""
        for row in self._daytona.live(installation=INSTALLATION):
            uid = row.view.labels[LABEL_UID]
            kept = uid in self.orphaned or row.foreign
            if not kept and self._kube.with_uid(uid) is None:
                self.fail(f"{row.view.name} ({row.view.state}) outlived {uid}")

    def _judge_outcome(self, before: Body, after: Body) -> None:
        ended, run = finished_run(before), after.get("status", {}).get("run")
        if ended is None:
            return
        # Until its last word is said, a run still learns what became of its work.
        told = ended["phase"] == "Finished"
        same = run == ended if told else run is not None and run["outcome"] == ended["outcome"]
        if not same:
            self.fail(f"the outcome of {ended['id']} was changed: {ended} to {run}")

    def _judge_release(self, uid: str) -> None:
        live = [row.view.id for row in self._daytona.live(uid=uid)]
        if live:
            self.fail(f"{uid} was let go while {live} live")
        on_the_way = [each for each in self._network.late if _creates_for(each.call, uid)]
        if on_the_way:
            self.fail(f"{uid} was let go with a create on its way")

    def _judge_number(self, row: Row) -> None:
        labels = row.view.labels
        of_uid = self._daytona.live(uid=labels[LABEL_UID])
        of_issue = self._daytona.live(
            installation=INSTALLATION,
            repository=labels[LABEL_REPOSITORY],
            number=labels[LABEL_NUMBER],
        )
        for rows in (of_uid, of_issue):
            if len(rows) > 1:
                shown = [(each.view.id, each.view.name, each.view.state) for each in rows]
                self.fail(f"more than one live sandbox: {shown}")

    def _judge_place(self, row: Row) -> None:
        lodged = [body.get("status", {}).get("sandbox", {}) for body in self._kube.bodies()]
        homes = {each.get("organizationId") for each in lodged if each.get("id")}
        if homes and row.view.organization_id not in homes:
            self.fail(f"{row.view.name} came to life in {row.view.organization_id}, not at home")

    def _judge_actor(self, verb: str, row: Row) -> None:
        actor = self.acting_for()
        if actor is None or row.view.labels[LABEL_UID] == actor.uid:
            return
        if verb != "relabel":
            self.fail(f"{verb} of {row.view.id}, which is not {actor.uid}'s")
        owner = self._kube.with_uid(row.view.labels[LABEL_UID])
        if owner is not None:
            self.fail(f"{actor.uid} took {row.view.id} from a living resource")

    def _is_healthy_and_wanted(self, row: Row) -> bool:
        body = self._kube.with_uid(row.view.labels[LABEL_UID])
        if body is None or "deletionTimestamp" in body["metadata"] or finished_run(body):
            return False
        retired = body.get("status", {}).get("retired", ())
        if row.view.id in [each["id"] for each in retired]:
            return False
        undisturbed = self._network.time.seconds - row.since
        return row.view.state == "started" and undisturbed >= _HEALTHY_AFTER


def _creates_for(call: Call, uid: str) -> bool:
    return call.verb == "create" and call.uid == uid


def finished_run(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the run of a resource if it has ended."""
    run: Mapping[str, Any] | None = body.get("status", {}).get("run")
    return run if run is not None and "outcome" in run else None


def issue_of(body: Mapping[str, Any]) -> tuple[str, int]:
    """Return the issue that a resource stands for."""
    issue = body["spec"]["issue"]
    return issue["repository"].lower(), issue["number"]


def resource_of(row: Row) -> tuple[str, str]:
    """Return the place of the resource that a sandbox is labelled with."""
    return row.view.labels[LABEL_NAMESPACE], row.view.labels[LABEL_RESOURCE]
