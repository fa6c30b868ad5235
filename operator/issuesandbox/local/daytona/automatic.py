"""What the service does on its own: auto-stop, auto-pause, auto-archive, auto-delete, time to live.

Knows intervals and last activity; the transitions themselves are the lifecycle's.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial

from issuesandbox.local.daytona.lifecycle import Change, Lifecycle
from issuesandbox.local.daytona.model import Desired, Sandbox, SandboxId, State
from issuesandbox.local.daytona.store import Store
from issuesandbox.local.daytona.timeline import Appointment, Timeline

# An auto-archive interval of 0 means the longest one.
_LONGEST_ARCHIVE_MINUTES = 43_200


class Move(StrEnum):
    """What falls due."""

    STOP = "stop"
    PAUSE = "pause"
    ARCHIVE = "archive"
    DELETE = "delete"


def next_move(sandbox: Sandbox) -> tuple[float, Move] | None:
    """Return what the service will do next to an undisturbed sandbox, and when."""
    moves = []
    if sandbox.auto_destroy_at is not None and sandbox.desired is not Desired.DESTROYED:
        moves.append((sandbox.auto_destroy_at, Move.DELETE))
    if sandbox.plan is None:
        idle_since = sandbox.last_activity_at
        if sandbox.state is State.STARTED:
            if sandbox.auto_stop > 0:
                moves.append((idle_since + sandbox.auto_stop * 60, Move.STOP))
            if sandbox.auto_pause > 0:
                moves.append((idle_since + sandbox.auto_pause * 60, Move.PAUSE))
        if sandbox.state is State.STOPPED:
            minutes = sandbox.auto_archive or _LONGEST_ARCHIVE_MINUTES
            moves.append((idle_since + minutes * 60, Move.ARCHIVE))
            if sandbox.auto_delete >= 0:
                moves.append((idle_since + sandbox.auto_delete * 60, Move.DELETE))
    return min(moves, default=None)


class Automatic:
    """One appointment per sandbox for its next automatic move."""

    def __init__(self, store: Store, timeline: Timeline, lifecycle: Lifecycle) -> None:
        self._store = store
        self._timeline = timeline
        self._lifecycle = lifecycle
        self._appointments: dict[SandboxId, Appointment] = {}

    def resume(self) -> None:
        """Watch every sandbox that a restart brought back."""
        for sandbox in self._store:
            self._watch(sandbox)

    def observe(self, change: Change) -> None:
        """Look again at a sandbox that changed."""
        self._watch(change.sandbox)

    def _watch(self, sandbox: Sandbox) -> None:
        earlier = self._appointments.pop(sandbox.id, None)
        if earlier is not None:
            earlier.cancel()
        move = next_move(sandbox)
        if move is not None and sandbox.state is not State.DESTROYED:
            action = partial(self._act, sandbox)
            self._appointments[sandbox.id] = self._timeline.call_at(move[0], action)

    async def _act(self, sandbox: Sandbox) -> None:
        self._appointments.pop(sandbox.id, None)
        if self._store.get(sandbox.id) is not sandbox:
            return
        due = next_move(sandbox)
        if due is None or due[0] > self._timeline.now():
            # Activity since then has moved the moment.
            self._watch(sandbox)
            return
        match due[1]:
            case Move.STOP:
                self._lifecycle.stop(sandbox, cause="time")
            case Move.PAUSE:
                self._lifecycle.pause(sandbox, cause="time")
            case Move.ARCHIVE:
                self._lifecycle.archive(sandbox, cause="time")
            case Move.DELETE:
                self._lifecycle.delete(sandbox, cause="time")
