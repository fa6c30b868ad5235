"""What the checker judges: journals, the resource's history and every text that was written.

Values only. Nothing here knows a rule, and nothing here was asked of the operator itself: it is
judged by what others saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from issuesandbox.domain.flags import Flags
from issuesandbox.local.checker.journals import DaytonaJournal, GitHubJournal

Object = Mapping[str, Any]


class Moment(NamedTuple):
    """A point in time, and how far each journal was by then.

    The numbers are exact where clocks are not: the simulated Daytona's time can be pushed forward.
    """

    at: float
    daytona: int | None = None
    github: int | None = None


class Span(NamedTuple):
    """A stretch of time; without an end it lasts."""

    start: Moment
    end: Moment | None = None


@dataclass(frozen=True)
class Observation:
    """One event of a watch: what a resource was from a moment on."""

    moment: Moment
    kind: str
    object: Object


@dataclass(frozen=True)
class Comment:
    """A comment that stands on GitHub at the end."""

    repository: str
    number: int
    id: int
    body: str


@dataclass(frozen=True)
class Row:
    """A sandbox that stands in Daytona at the end."""

    id: str
    name: str
    state: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """Everything that is known of one test or one night."""

    installation: str
    observations: tuple[Observation, ...] = ()
    daytona: DaytonaJournal = field(default_factory=DaytonaJournal)
    rows: tuple[Row, ...] = ()
    # None where no GitHub took part: then nobody could push or comment.
    github: GitHubJournal | None = None
    comments: tuple[Comment, ...] = ()
    # Every text that must not hold a secret, by the name to show for it.
    texts: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    frozen: tuple[Span, ...] = ()
    # The feature flags that were in force, all that ever were.
    flags: tuple[Flags, ...] = (Flags(),)
    # How long a call that was decided before a stop or pause may still be on its way, in seconds.
    in_flight: float = 2.0


@dataclass(frozen=True)
class Violation:
    """One broken promise."""

    rule: str
    at: float
    subject: str
    text: str

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return f"{self.rule}: {self.subject}: {self.text} ({moment})"
