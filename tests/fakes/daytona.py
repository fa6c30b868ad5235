"""Daytona's control plane in memory: its states, its refusals and its odd habits.

Modelled on what the service is known to do: a unique name per organisation, a rename on
delete, 409 while a change is under way, errored sandboxes that vanish from sight when deleted,
404 for whatever belongs to another organisation. Knows nothing of operators.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec
from tests.fakes.clock import FakeTime

from issuesandbox.domain.sandbox import SandboxId, SandboxView
from issuesandbox.ports.errors import (
    Busy,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
)
from issuesandbox.ports.sandboxes import SandboxOrder

HOME = "org-home"
ELSEWHERE = "org-elsewhere"

# Daytona answers a repeated GET from a cache for so many seconds, also if it found nothing.
GET_CACHED = 10.0
# For how many seconds a GET does not know what was just created, where Daytona's replicas lag.
SHY_FOR = 5.0
# How many seconds each change takes, and how long a hung one lasts until Daytona gives it up.
_TAKES = {
    "creating": 3.0,
    "starting": 2.0,
    "restoring": 4.0,
    "stopping": 2.0,
    "archiving": 3.0,
    "destroying": 2.0,
}
_GIVEN_UP_AFTER = 240.0
_TRANSITIONAL = frozenset({*_TAKES, "unknown", "pulling_snapshot", "building_snapshot"})


class Outage(Enum):
    """What is wrong with Daytona as a whole."""

    NONE = "nothing"
    DOWN = "every call answers 503"
    SILENT = "no call is answered; those that change something still do"
    UNAUTHORIZED = "the key was revoked: every call answers 401"
    THROTTLED = "every call answers 429"
    OTHER_ORGANIZATION = "the key opens another organisation: every read answers 404"
    LIST_EMPTY = "the list shows nothing"
    LIST_BROKEN = "a page of the list fails"

    @property
    def blinds(self) -> bool:
        """Tell whether no answer proves anything about a sandbox."""
        return self not in (Outage.NONE, Outage.LIST_EMPTY, Outage.LIST_BROKEN)


class Starts(Enum):
    """What becomes of starts."""

    WORK = "they work"
    IDLE = "they are accepted and have no effect"
    REFUSED = "they are refused"


class Tells(Enum):
    """What its answers tell of states."""

    TRUTH = "the truth"
    NOTHING = "nothing: there is no such field"
    RIDDLES = "words that nobody knows"


@dataclass(slots=True)
class Row:
    """One sandbox, with all that it ever looked like."""

    versions: list[tuple[float, SandboxView]]
    foreign: bool = False
    """Whether somebody else made it."""
    ends_at: float | None = None
    ends_in: dict[str, Any] = field(default_factory=dict)

    @property
    def view(self) -> SandboxView:
        """Return what it looks like now."""
        return self.versions[-1][1]

    @property
    def since(self) -> float:
        """Return when it last changed."""
        return self.versions[-1][0]

    @property
    def visible(self) -> bool:
        """Tell whether Daytona admits that it exists."""
        return _is_visible(self.view)

    @property
    def live(self) -> bool:
        """Tell whether it uses or may come to use resources."""
        return self.visible and self.view.desired_state != "destroyed"

    def at(self, seconds: float) -> SandboxView | None:
        """Return what it looked like then, if it was there."""
        past = [view for changed, view in self.versions if changed <= seconds]
        return past[-1] if past and _is_visible(past[-1]) else None


def _is_visible(view: SandboxView) -> bool:
    errored_and_deleted = view.state == "error" and view.desired_state == "destroyed"
    return view.state != "destroyed" and not errored_and_deleted


class FakeDaytona:
    """All sandboxes of all organisations."""

    def __init__(self, time: FakeTime) -> None:
        self._time = time
        self._numbers = itertools.count(1)
        self.rows: dict[str, Row] = {}
        self.outage = Outage.NONE
        self.caches_gets = False
        """Whether a GET may be answered as the same GET was a few seconds ago."""
        self._answers: dict[tuple[str, str], tuple[float, SandboxView | None]] = {}
        self.shy = False
        """Whether a GET does not know a sandbox yet in its first seconds."""
        self._caller: str | None = None
        self.list_lag = 0.0
        """How old a list is; one that jumps makes sandboxes flap."""
        self.quota: int | None = None
        self.cursed = False
        """Whether every new sandbox breaks while it boots."""
        self.keeps_names = False
        """Whether a deletion that was accepted does not free the name."""
        self.starts = Starts.WORK
        self.tells = Tells.TRUTH
        self.witness: Callable[[str, Row], None] = lambda verb, row: None
        """Told of every change that a call made, right after it."""

    @property
    def organization(self) -> str:
        """Return the organisation that the operator's key opens, or that of the present call."""
        if self._caller is not None:
            return self._caller
        return ELSEWHERE if self.outage is Outage.OTHER_ORGANIZATION else HOME

    @contextmanager
    def called_from(self, organization: str) -> Iterator[None]:
        """Serve a call with the key that it was sent with, however late it arrives."""
        self._caller = organization
        try:
            yield
        finally:
            self._caller = None

    # What the service does.

    def read_organization(self) -> str:
        """Return the organisation that the caller's key opens."""
        self._admit()
        return self.organization

    def read(self, id_or_name: str) -> SandboxView:
        """Return a sandbox by id, else by name, maybe as it was when last asked for."""
        self._admit()
        self._silence()
        now, asked = self._time.seconds, (self.organization, id_or_name)
        answered_at, view = self._answers.get(asked, (now, None))
        if not self.caches_gets or asked not in self._answers or now - answered_at >= GET_CACHED:
            view = self._find(id_or_name)
            self._answers[asked] = (now, view)
        if view is None:
            raise NotFound(f"Sandbox with ID or name {id_or_name} not found")
        return self._told(view)

    def _told(self, view: SandboxView) -> SandboxView:
        if self.tells is Tells.TRUTH:
            return view
        shown = None if self.tells is Tells.NOTHING else f"{view.state}_anew"
        return msgspec.structs.replace(view, state=shown)

    def _find(self, id_or_name: str) -> SandboxView | None:
        youngest = self._time.seconds - (SHY_FOR if self.shy else 0.0)
        ours = [
            row.view
            for row in self.rows.values()
            if row.visible
            and row.view.organization_id == self.organization
            and row.versions[0][0] <= youngest
        ]
        by_id = [view for view in ours if view.id == id_or_name]
        by_name = [view for view in ours if view.name == id_or_name]
        return next(iter([*by_id, *by_name]), None)

    def enumerate(self, labels: Mapping[str, str]) -> Sequence[SandboxView]:
        """Return the sandboxes with these labels as the search index remembers them."""
        self._admit()
        self._silence()
        if self.outage is Outage.LIST_BROKEN:
            raise Unavailable("page 2 of the list failed")
        if self.outage is Outage.LIST_EMPTY:
            return ()
        seen = [row.at(self._time.seconds - self.list_lag) for row in self.rows.values()]
        return tuple(
            self._told(view)
            for view in seen
            if view
            and view.organization_id == self.organization
            and labels.items() <= view.labels.items()
        )

    def create(self, order: SandboxOrder, *, broken: bool = False) -> SandboxView:
        """Make a sandbox; `broken` makes the answer 400 though the row exists."""
        self._admit()
        if any(self._holds(row, order.name) for row in self.rows.values()):
            raise Conflict(f"Sandbox with name {order.name} already exists")
        if self.quota is not None and len(self.live()) >= self.quota:
            raise Throttled("Total CPU limit exceeded. Maximum allowed: 0.")
        view = SandboxView(
            id=SandboxId(f"sandbox-{next(self._numbers)}"),
            name=order.name,
            organization_id=self.organization,
            state="creating",
            desired_state="started",
            labels=dict(order.labels),
            auto_stop_interval=order.auto_stop_minutes,
            last_activity_at=self._time.now(),
        )
        row = self.rows[view.id] = Row([(self._time.seconds, view)])
        broken_state = {"state": "error", "error_reason": "the container exited"}
        if broken:
            self._change(row, **broken_state)
        else:
            self._begin(row, "creating", **(broken_state if self.cursed else {"state": "started"}))
        self.witness("create", row)
        self._silence()
        if broken:
            raise Invalid("Sandbox failed to start: the container exited")
        return view

    def start(self, sandbox_id: str) -> None:
        """Begin to start a sandbox at rest."""
        row = self._own(sandbox_id)
        self._refuse_while_changing(row)
        if row.view.state == "started":
            return
        if row.view.state not in ("stopped", "archived"):
            raise Invalid("Sandbox is in an errored state")
        if self.starts is Starts.REFUSED:
            raise Invalid("Sandbox failed to start: no runner has its disk")
        if self.starts is Starts.IDLE:
            return
        passing = "restoring" if row.view.state == "archived" else "starting"
        self._begin(row, passing, state="started", desired_state="started")
        self.witness("start", row)
        self._silence()

    def stop(self, sandbox_id: str) -> None:
        """Begin to stop a running sandbox."""
        row = self._own(sandbox_id)
        self._refuse_while_changing(row)
        if row.view.state != "started":
            raise Invalid("Sandbox is not in a stoppable state")
        self._begin(row, "stopping", state="stopped", desired_state="stopped")
        self.witness("stop", row)
        self._silence()

    def archive(self, sandbox_id: str) -> None:
        """Begin to archive a stopped sandbox."""
        row = self._own(sandbox_id)
        self._refuse_while_changing(row)
        if row.view.state != "stopped":
            raise Invalid("Sandbox is not stopped")
        self._begin(row, "archiving", state="archived", desired_state="archived")
        self.witness("archive", row)
        self._silence()

    def recover(self, sandbox_id: str) -> None:
        """Begin to repair a sandbox that says it can be."""
        row = self._own(sandbox_id)
        if not row.view.recoverable:
            raise Invalid("Sandbox is not in a recoverable state")
        self._change(row, error_reason=None, recoverable=None)
        self._begin(row, "starting", state="started", desired_state="started")
        self.witness("recover", row)
        self._silence()

    def delete(self, sandbox_id: str) -> None:
        """Begin to destroy a sandbox; its name is free at once."""
        row = self._own(sandbox_id)
        self._refuse_while_changing(row)
        self.witness("delete", row)
        name = row.view.name if self.keeps_names else self._freed_name(row)
        self._change(row, name=name, desired_state="destroyed")
        if row.view.state != "error":
            self._begin(row, "destroying", state="destroyed")
        self._silence()

    def relabel(self, sandbox_id: str, labels: Mapping[str, str]) -> None:
        """Replace all labels."""
        row = self._own(sandbox_id)
        self.witness("relabel", row)
        self._change(row, labels=dict(labels))
        self.witness("relabelled", row)
        self._silence()

    def renew(self, sandbox_id: str) -> None:
        """Note that a sandbox is in use."""
        row = self._own(sandbox_id)
        self.witness("renew", row)
        self._change(row, last_activity_at=self._time.now())
        self._silence()

    # What happens without a call of ours.

    def plant(self, name: str, labels: Mapping[str, str], organization: str = HOME) -> None:
        """Put somebody else's running sandbox there, if the name is free."""
        with self.called_from(organization):
            if any(self._holds(row, name) for row in self.rows.values()):
                return
        view = SandboxView(
            id=SandboxId(f"sandbox-{next(self._numbers)}"),
            name=name,
            organization_id=organization,
            state="started",
            desired_state="started",
            labels=dict(labels),
        )
        self.rows[view.id] = Row([(self._time.seconds, view)], foreign=True)

    def free_names(self) -> None:
        """Free the names that deleted sandboxes kept."""
        self.keeps_names = False
        for row in self.rows.values():
            if row.view.desired_state == "destroyed" and not row.view.name.startswith("DESTROYED_"):
                self._change(row, name=self._freed_name(row))

    def vanish(self, row: Row) -> None:
        """Lose a sandbox for good, from one moment to the next."""
        row.ends_at = None
        self._change(row, name=self._freed_name(row), state="destroyed", desired_state="destroyed")

    def break_down(self, row: Row, *, recoverable: bool) -> None:
        """Let a sandbox fail."""
        row.ends_at = None
        self._change(
            row, state="error", error_reason="timeout while starting", recoverable=recoverable
        )

    def rest(self, row: Row, state: str) -> None:
        """Stop or archive a running sandbox behind everybody's back."""
        row.ends_at = None
        self._change(row, state=state, desired_state="stopped")

    def hang(self, row: Row) -> None:
        """Leave a sandbox in a transition that ends only when Daytona gives it up."""
        self._begin(row, "starting", state="error", error_reason="timeout while starting")
        row.ends_at = self._time.seconds + _GIVEN_UP_AFTER

    def next_change(self) -> float | None:
        """Return when the next transition ends."""
        return min((row.ends_at for row in self.rows.values() if row.ends_at), default=None)

    def pass_time(self) -> None:
        """End the transitions whose time has come."""
        for row in self.rows.values():
            if row.ends_at is not None and row.ends_at <= self._time.seconds:
                row.ends_at = None
                self._change(row, **row.ends_in)

    # What a test wants to know.

    def live(self, **labels: str) -> list[Row]:
        """Return the live sandboxes, of every organisation, with these short labels."""
        wanted = {f"issuesandbox.dev/{name}": value for name, value in labels.items()}
        return [
            row
            for row in self.rows.values()
            if row.live and wanted.items() <= row.view.labels.items()
        ]

    def _holds(self, row: Row, name: str) -> bool:
        view = row.view
        held = view.name == name and view.state != "destroyed"
        return held and view.organization_id == self.organization

    def _freed_name(self, row: Row) -> str:
        # Daytona renames what it deletes, so that the name can be used again at once.
        return f"DESTROYED_{row.view.name}_{int(self._time.seconds * 1000)}"

    def _own(self, sandbox_id: str) -> Row:
        self._admit()
        row = self.rows.get(sandbox_id)
        if row is None or not row.visible or row.view.organization_id != self.organization:
            raise NotFound(f"Sandbox with ID or name {sandbox_id} not found")
        return row

    def _admit(self) -> None:
        if self.outage is Outage.DOWN:
            raise Unavailable("503")
        if self.outage is Outage.UNAUTHORIZED:
            raise Denied("Invalid credentials")
        if self.outage is Outage.THROTTLED:
            raise Throttled("ThrottlerException: Too Many Requests", retry_after=20.0)

    def _silence(self) -> None:
        if self.outage is Outage.SILENT:
            raise Unavailable("no answer")

    @staticmethod
    def _refuse_while_changing(row: Row) -> None:
        if row.view.state in _TRANSITIONAL:
            raise Busy("Sandbox state change in progress")

    def _begin(self, row: Row, passing: str, **ends_in: Any) -> None:
        self._change(row, state=passing)
        row.ends_at = self._time.seconds + _TAKES[passing]
        row.ends_in = ends_in

    def _change(self, row: Row, **fields: Any) -> None:
        row.versions.append((self._time.seconds, msgspec.structs.replace(row.view, **fields)))


def names(rows: Sequence[Row]) -> Iterator[str]:
    """Return the names of sandboxes."""
    return (row.view.name for row in rows)
