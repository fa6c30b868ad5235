"""What is to be done to the resource of an issue: the outcome of judging a hint."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from issuesandbox.domain.webhook.hints import Happening
from issuesandbox.domain.webhook.issue import IssueFacts
from issuesandbox.domain.webhook.stamps import Stamp


class Act(StrEnum):
    """The things that can be done."""

    START = "start"
    STOP = "stop"
    REFRESH = "refresh"
    """Only the text of the issue is brought up to date."""


class StopReason(StrEnum):
    """Why a resource was stopped, kept on it so that the way back is known."""

    CLOSED = "closed"
    GONE = "gone"
    UNLABELED = "unlabeled"
    COMMAND = "command"
    PULL_CLOSED = "pull-request-closed"


class Order(Struct, frozen=True):
    """One thing to do, with its place in time."""

    act: Act
    stamp: Stamp
    issue: IssueFacts | None = None
    """The issue's text where it may be taken over: not every author's edits may."""
    trigger: str | None = None
    """Starts this run; None: the one that the issue's text stands for."""
    prompt: str | None = None
    keeps_prompt: bool = False
    reason: StopReason | None = None
    happening: Happening | None = None
    """What the order came from, where an entry of the issue's history may be its trigger."""
    subject: str = ""
    """The label or the assignee that it is about."""
    creates: bool = True
    """Makes a resource where there is none."""
    said: str | None = None
    """The trigger of the issue's text at that moment, where that is known."""
    now: IssueFacts | None = None
    """The issue as GitHub showed it after the resource was read: nothing newer was known then."""
    is_pinned: bool = False
    """Only the text at hand was approved; a newer one may be a stranger's."""
    is_late: bool = False
    """Heard long after it was given: its resource may have been there, and be gone."""
    was_done: bool | None = None
    """It was carried out on a resource that is gone; None: nobody looked."""


class Refusal(Struct, frozen=True):
    """A command that is not obeyed, and what is said about it."""

    text: str
    is_stranger: bool = False
