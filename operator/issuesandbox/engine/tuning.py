"""The settings in force: nothing needs a restart to be switched.

What is stored is taken as a whole or not at all: while it is wrong, the last good settings stay.
The freeze is stored apart from them, so that a mistake in a setting never stands in its way. Both
are told by the cluster when they change; only what lies in files is looked at every few seconds.
Knows no single setting.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from issuesandbox.clock import Clock
from issuesandbox.ports.configuration import Configuration, Opinion
from issuesandbox.ports.errors import CallError, IssueSandboxError, NotFound
from issuesandbox.ports.resources import EventNote

logger = logging.getLogger(__name__)

Value = TypeVar("Value")

# What is wrong, what is in force, what is unwise.
_Said = tuple[str | None, Mapping[str, str], str]
# A report that nobody takes is not repeated with every look at the files.
_REPORT_AGAIN = 30.0


@dataclass(frozen=True)
class Listeners(Generic[Value]):
    """Who is told of what."""

    changed: Callable[[Value], None] = lambda _: None
    """Called with the new settings whenever they differ from before."""
    frozen: Callable[[bool], None] = lambda _: None
    """Called when everything is frozen, and when it is not any more."""
    reports: Callable[[], bool] = lambda: True
    """Asked whether this replica is the one to report."""
    advice: Callable[[Value], Sequence[str]] = lambda _: ()
    """Asked what is allowed but unwise about the settings."""


class Tuning(Generic[Value]):
    """Holds the settings in force; `parse` makes them and raises what is wrong in one line."""

    current: Value
    """The settings in force, from `start` on."""

    def __init__(
        self,
        configuration: Configuration,
        parse: Callable[[Mapping[str, str]], Value],
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._parse = parse
        self._clock = clock
        self._listeners: Listeners[Value] = Listeners()
        self._stored: Mapping[str, str] = {}
        self._accepted: Mapping[str, str] = {}
        self._problem: str | None = None
        self._reported: _Said | None = None
        self._noted: _Said | None = None
        self._unheard: tuple[_Said, float] | None = None
        self._frozen: str | None = None
        self._news: deque[EventNote] = deque()
        self._told = asyncio.Event()

    @property
    def frozen(self) -> str | None:
        """Return why nothing but stops and kills may happen, or None."""
        return self._frozen

    @property
    def problem(self) -> str | None:
        """Return what is wrong with the stored settings, or None."""
        return self._problem

    async def start(self) -> Value:
        """Read the settings once; where they are wrong, those last found good are taken."""
        stored = await self._configuration.read()
        self._frozen, self._stored = stored.frozen, stored.settings
        try:
            self.current, self._accepted = self._parse(stored.settings), stored.settings
        except IssueSandboxError as error:
            before = await self._configuration.accepted()
            self.current, self._accepted = self._last_good(before, error)
            self._refuse(error)
        return self.current

    def listen(self, listeners: Listeners[Value]) -> None:
        """Tell these of every change from now on."""
        self._listeners = listeners

    async def run(self, tick: timedelta) -> None:
        """Keep the settings up to date until cancelled; what lies in files is read every tick."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._configuration.follow(self.take, self.freeze))
            while True:
                self._told.clear()
                await self.refresh()
                with suppress(TimeoutError):
                    async with asyncio.timeout(tick.total_seconds()):
                        await self._told.wait()

    def take(self, stored: Mapping[str, str]) -> None:
        """Go by these settings from now on, if they are good."""
        self._stored = stored
        self._apply()
        self._told.set()

    def freeze(self, why: str | None) -> None:
        """Freeze everything, or nothing any more: in force when this returns."""
        if why == self._frozen:
            return
        self._frozen = why
        logger.warning("frozen" if why is not None else "no longer frozen", extra={"why": why})
        self._listeners.frozen(why is not None)
        text = f"Nothing but stops and kills happens: {why}" if why is not None else "Goes on."
        reason = "Frozen" if why is not None else "Unfrozen"
        self._news.append(EventNote(reason, text, warning=why is not None))
        self._told.set()

    async def refresh(self) -> None:
        """Take up what changed in files, and tell the cluster what is new."""
        self._apply()
        while self._news:
            event = self._news.popleft()
            if self._listeners.reports():
                await self._note(event)
        await self._report()

    def _apply(self) -> None:
        before = self.current
        try:
            # Also without a new text: a secret's file may have changed.
            self.current = self._parse(self._stored)
        except IssueSandboxError as error:
            self._refuse(error)
            return
        self._accepted, self._problem = self._stored, None
        if self.current != before:
            logger.info("settings changed")
            self._listeners.changed(self.current)

    def _refuse(self, error: IssueSandboxError) -> None:
        if str(error) != self._problem:
            logger.error("settings refused", extra={"error": str(error)})
        self._problem = str(error)

    def _last_good(
        self, accepted: Mapping[str, str], error: IssueSandboxError
    ) -> tuple[Value, Mapping[str, str]]:
        for each in (accepted, {}):
            with suppress(IssueSandboxError):
                return self._parse(each), each
        raise error

    async def _report(self) -> None:
        valid = self._problem is None
        advice = "; ".join(self._listeners.advice(self.current)) if valid else ""
        said: _Said = (self._problem, self._accepted, advice)
        if said == self._reported or not self._listeners.reports() or self._must_wait(said):
            return
        message = self._problem or advice or "All settings are in force."
        reason = (
            "InvalidSettings" if not valid else "AcceptedWithWarnings" if advice else "Accepted"
        )
        since = self._clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        try:
            await self._configuration.report(Opinion(valid, reason, message, since, self._accepted))
        except CallError as error:
            hint = "apply the manifests to get issuesandbox-status; "
            text = f"{hint if isinstance(error, NotFound) else ''}{error}"
            logger.warning("settings cannot be reported", extra={"error": text})
            self._unheard = said, self._clock.monotonic() + _REPORT_AGAIN
        else:
            self._reported = said
        first, news, self._noted = self._noted is None, said != self._noted, said
        if news and not (first and reason == "Accepted"):
            text = message if valid else f"The last good settings stay in force: {message}"
            await self._note(EventNote(reason, text, warning=reason != "Accepted"))

    def _must_wait(self, said: _Said) -> bool:
        return (
            self._unheard is not None
            and self._unheard[0] == said
            and self._clock.monotonic() < self._unheard[1]
        )

    async def _note(self, event: EventNote) -> None:
        try:
            await self._configuration.note(event)
        except CallError as error:
            logger.warning("event not posted", extra={"error": str(error)})
