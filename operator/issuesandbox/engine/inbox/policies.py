"""The policy in force: read whenever it may have changed, and kept when it cannot be used."""

from __future__ import annotations

import asyncio
import logging

from issuesandbox.api.names import POLICY_KEY
from issuesandbox.domain.webhook.policy import Policy, PolicyError, read_policy
from issuesandbox.ports.errors import CallError
from issuesandbox.ports.inbox import Record, Records
from issuesandbox.ports.resources import EventNote

# A watch tells of changes; this is for those that it missed.
_TICK = 60.0
_RETRY = 3.0

logger = logging.getLogger(__name__)


class PolicyKeeper:
    """Holds the last good policy; where there never was a ConfigMap, the defaults are in force."""

    def __init__(self, records: Records, name: str, tick: float = _TICK) -> None:
        self._records = records
        self._name = name
        self._tick = tick
        self._changed = asyncio.Event()
        self._seen: tuple[str, str] | None = None
        self._was_there = False
        self.policy: Policy | None = None
        """None until the first good one: then nothing can be judged."""
        self.problem = ""
        """Why the present text cannot be used."""

    def changed(self) -> None:
        """Hear that the policy may be another one now."""
        self._changed.set()

    async def run(self) -> None:
        """Read the policy until cancelled."""
        while True:
            rest = self._tick
            # Before it is read: what changes meanwhile is read again.
            self._changed.clear()
            try:
                await self.read()
            except CallError as error:
                rest = min(self._tick, _RETRY)
                logger.warning("policy out of reach", extra={"error": str(error)})
            try:
                async with asyncio.timeout(rest):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def read(self) -> None:
        """Read the policy once."""
        record = await self._records.read(self._name)
        text, slip = record.data.get(POLICY_KEY, ""), self._slip(record)
        self._was_there = self._was_there or bool(record.version)
        seen = (text, slip)
        if seen == self._seen:
            return
        try:
            if slip:
                raise PolicyError(slip)
            self.policy, self.problem = read_policy(text), ""
            logger.info("policy in force", extra={"configmap": self._name})
        except PolicyError as error:
            self.problem = str(error)
            await self._complain()
        self._seen = seen

    def _slip(self, record: Record) -> str:
        """Say why there is no text: the defaults would serve repositories that nobody meant."""
        if record.version and POLICY_KEY not in record.data:
            return f"the ConfigMap has no key `{POLICY_KEY}`"
        if not record.version and self._was_there:
            return "the ConfigMap is gone"
        return ""

    async def _complain(self) -> None:
        kept = "the last good one stays in force" if self.policy else "nothing is accepted"
        message = f"The policy cannot be used and {kept}: {self.problem}"
        logger.error("policy refused", extra={"configmap": self._name, "error": self.problem})
        try:
            note = EventNote("PolicyInvalid", message, warning=True)
            await self._records.note(self._name, note)
        except CallError as error:
            logger.warning("event not posted", extra={"error": str(error)})
