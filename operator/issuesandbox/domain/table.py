"""The decision table: what to do for each thing seen and each thing wanted.

One row per `Sight`, one column per `Want`. Read it, then `decide.py` for what each step means
in detail. `issuesandbox table` renders it into the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from issuesandbox.domain.model import Revival, Want
from issuesandbox.domain.states import Sight


class Step(StrEnum):
    """What a cell of the table asks for."""

    HOLD = "change nothing, ask again"
    CREATE = "create"
    LOOK = "create again under the same name"
    RECHECK = "look again before believing it"
    REPLACE = "delete, then create the next attempt"
    RENEW = "retire it, create the next attempt"
    SIDESTEP = "take the suffixed name"
    ADOPT = "adopt"
    YIELD = "leave it to the other resource"
    SUBSIDE = "wait until it can no longer land"
    START = "start"
    STOP = "stop"
    STOP_UNSEEN = "stop the one whose id is known, else change nothing"
    STOP_UNTOLD = "stop, ever more seldom, until it tells what became of it"
    RECOVER = "recover once"
    ARCHIVE = "archive where asked, else nothing to do"
    DELETE = "delete"
    WAIT = "wait"
    USE = "use it"
    REST = "nothing to do"
    RELEASE = "let the resource go"
    OUTLAST = "wait until it can no longer land, then let the resource go"
    AWAIT_NAME = "wait until the name is free"
    ABANDON = "retire it, take the next generation of the name"


# Steps that bring back or make what is not there.
REVIVING = frozenset(
    {
        Step.CREATE,
        Step.LOOK,
        Step.RENEW,
        Step.REPLACE,
        Step.SIDESTEP,
        Step.ADOPT,
        Step.START,
        Step.RECOVER,
        Step.ABANDON,
    }
)

# Those that are taken, by what is to be brought back.
REVIVALS = {
    Revival.NONE: frozenset[Step](),
    Revival.SAME: frozenset({Step.START, Step.RECOVER}),
    Revival.ANY: REVIVING,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A step and, for steps that wait, the name of the limit after which `late` is taken."""

    step: Step
    limit: str | None = None
    late: Step = Step.REPLACE


@dataclass(frozen=True, slots=True)
class Row:
    """The four cells of one sight."""

    running: Cell
    stopped: Cell
    gone: Cell
    rest: Cell

    def cell(self, want: Want) -> Cell:
        """Return the cell of a column."""
        return {
            Want.RUNNING: self.running,
            Want.STOPPED: self.stopped,
            Want.GONE: self.gone,
            Want.REST: self.rest,
        }[want]


def _cell(step: Step) -> Cell:
    return Cell(step)


def _wait(limit: str, late: Step = Step.REPLACE) -> Cell:
    return Cell(Step.WAIT, limit, late)


_HOLD, _REST, _DELETE, _STOP = map(_cell, (Step.HOLD, Step.REST, Step.DELETE, Step.STOP))
_SETTLE = _wait("stop_limit", Step.HOLD)

TABLE: dict[Sight, Row] = {
    Sight.UNKNOWN: Row(_HOLD, _HOLD, _HOLD, _HOLD),
    # Stops are counted apart from questions, and none may wait for the answer to one.
    Sight.UNASKED: Row(_HOLD, _cell(Step.STOP_UNSEEN), _cell(Step.STOP_UNSEEN), _HOLD),
    Sight.NEVER: Row(_cell(Step.CREATE), _REST, _cell(Step.RELEASE), _REST),
    Sight.IN_FLIGHT: Row(
        _cell(Step.LOOK), _cell(Step.SUBSIDE), _cell(Step.OUTLAST), _cell(Step.SUBSIDE)
    ),
    Sight.VANISHED: Row(*[_cell(Step.RECHECK)] * 4),
    Sight.GONE: Row(_cell(Step.RENEW), _REST, _cell(Step.OUTLAST), _REST),
    Sight.FOREIGN: Row(_cell(Step.SIDESTEP), _REST, _cell(Step.RELEASE), _REST),
    Sight.LEFTOVER: Row(_cell(Step.ADOPT), _REST, _cell(Step.RELEASE), _REST),
    Sight.TWIN: Row(_cell(Step.YIELD), _cell(Step.YIELD), _cell(Step.RELEASE), _REST),
    Sight.QUEUED: Row(_wait("queue_limit"), _SETTLE, _DELETE, _REST),
    Sight.BUILDING: Row(_wait("build_limit"), _SETTLE, _DELETE, _REST),
    Sight.PULLING: Row(_wait("pull_limit"), _SETTLE, _DELETE, _REST),
    Sight.CREATING: Row(_wait("create_limit"), _SETTLE, _DELETE, _REST),
    # Nothing is proven of it, but a stop destroys nothing, and the sure kill must not wait.
    Sight.STRANGE: Row(_wait("create_limit", Step.HOLD), _cell(Step.STOP_UNTOLD), _DELETE, _REST),
    Sight.STARTING: Row(_wait("start_limit"), _SETTLE, _DELETE, _REST),
    Sight.RESTORING: Row(_wait("restore_limit"), _SETTLE, _DELETE, _REST),
    Sight.RESHAPING: Row(_wait("reshape_limit", Step.HOLD), _SETTLE, _DELETE, _REST),
    Sight.RUNNING: Row(_cell(Step.USE), _STOP, _DELETE, _REST),
    Sight.STOPPING: Row(_wait("stop_limit"), _SETTLE, _DELETE, _REST),
    Sight.STOPPED: Row(Cell(Step.START, "start_limit"), _cell(Step.ARCHIVE), _DELETE, _REST),
    Sight.ARCHIVED: Row(Cell(Step.START, "restore_limit"), _REST, _DELETE, _REST),
    Sight.RECOVERABLE: Row(Cell(Step.RECOVER, "recover_limit"), _REST, _DELETE, _REST),
    Sight.BROKEN: Row(_cell(Step.REPLACE), _REST, _DELETE, _REST),
    Sight.BUILD_FAILED: Row(_cell(Step.REPLACE), _REST, _DELETE, _REST),
    Sight.DESTROYING: Row(_cell(Step.RENEW), _REST, _wait("deletion_stuck", Step.HOLD), _REST),
    Sight.LINGERING: Row(
        Cell(Step.AWAIT_NAME, "deletion_stuck", Step.ABANDON),
        _REST,
        _wait("deletion_stuck", Step.HOLD),
        _REST,
    ),
}
