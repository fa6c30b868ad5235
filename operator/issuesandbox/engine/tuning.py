"""The settings in force, read again every few seconds: nothing needs a restart to be switched.

What is stored is taken as a whole or not at all: while it is wrong, the last good settings stay.
The freeze is stored apart from them, so that a mistake in a setting never stands in its way.
A poll, not a watch: it bounds the delay also when a connection died without a sign. Knows no
single setting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from issuesandbox.clock import Clock
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.configuration import Configuration, Opinion
from issuesandbox.ports.errors import CallError, IssueSandboxError, NotFound
from issuesandbox.ports.resources import EventNote

logger = logging.getLogger(__name__)

Value = TypeVar("Value")


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

    def __init__(
        self,
        configuration: Configuration,
        parse: Callable[[Mapping[str, str]], Value],
        timings: Timings,
        clock: Clock,
        listeners: Listeners[Value] | None = None,
    ) -> None:
        self._configuration = configuration
        self._parse = parse
        self._tick = timings.settings_tick.total_seconds()
        self._clock = clock
        self._listeners = listeners or Listeners()
        self._accepted: Mapping[str, str] = {}
        self._problem: str | None = None
        self._reported: tuple[str | None, Mapping[str, str], str] | None = None
        self._frozen: str | None = None
        self.current: Value = parse({})

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
        self._frozen = stored.frozen
        self._take(stored.settings)
        if self._problem is not None:
            before = await self._configuration.accepted()
            try:
                self.current, self._accepted = self._parse(before), before
            except IssueSandboxError as error:
                logger.warning("no good settings to go back to", extra={"error": str(error)})
        return self.current

    async def run(self) -> None:
        """Keep the settings up to date until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._tick)

    async def refresh(self) -> None:
        """Read once and tell everybody of changes; what cannot be read changes nothing."""
        try:
            stored = await self._configuration.read()
        except CallError as error:
            logger.warning("settings cannot be read", extra={"error": str(error)})
            return
        if stored.frozen != self._frozen:
            await self._freeze(stored.frozen)
        before = self.current
        self._take(stored.settings)
        if self.current != before:
            logger.info("settings changed")
            self._listeners.changed(self.current)
        await self._report()

    def _take(self, settings: Mapping[str, str]) -> None:
        try:
            # Also without a new text: a secret's file may have changed.
            self.current = self._parse(settings)
        except IssueSandboxError as error:
            if str(error) != self._problem:
                logger.error("settings refused", extra={"error": str(error)})
            self._problem = str(error)
        else:
            self._accepted, self._problem = settings, None

    async def _freeze(self, why: str | None) -> None:
        self._frozen = why
        logger.warning("frozen" if why is not None else "no longer frozen", extra={"why": why})
        self._listeners.frozen(why is not None)
        if self._listeners.reports():
            text = f"Nothing but stops and kills happens: {why}" if why is not None else "Goes on."
            reason = "Frozen" if why is not None else "Unfrozen"
            await self._note(EventNote(reason, text, warning=why is not None))

    async def _report(self) -> None:
        valid = self._problem is None
        advice = "; ".join(self._listeners.advice(self.current)) if valid else ""
        seen = (self._problem, self._accepted, advice)
        if seen == self._reported or not self._listeners.reports():
            return
        first, self._reported = self._reported is None, seen
        message = self._problem or advice or "All settings are in force."
        reason = (
            "InvalidSettings" if not valid else "AcceptedWithWarnings" if advice else "Accepted"
        )
        since = self._clock.now().isoformat(timespec="seconds").replace("+00:00", "Z")
        try:
            await self._configuration.report(Opinion(valid, reason, message, since, self._accepted))
        except NotFound:
            logger.warning("nowhere to report; apply the manifests to get issuesandbox-status")
        except CallError as error:
            logger.warning("settings cannot be reported", extra={"error": str(error)})
            self._reported = None
        if not first or reason != "Accepted":
            text = message if valid else f"The last good settings stay in force: {message}"
            await self._note(EventNote(reason, text, warning=reason != "Accepted"))

    async def _note(self, event: EventNote) -> None:
        try:
            await self._configuration.note(event)
        except CallError as error:
            logger.warning("event not posted", extra={"error": str(error)})
