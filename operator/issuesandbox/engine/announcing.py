"""What a pass writes down before it acts: the finalizer, the step that comes, and its release.

Each is one write, guarded by the version that it was decided on. What is decided, and what is done
after it, is the pass's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from issuesandbox.api.names import ANNOTATION_FIRST_CREATE, FINALIZER
from issuesandbox.clock import Clock
from issuesandbox.domain.cleanup import CLEANUP
from issuesandbox.domain.model import Action, ActionKind, Observed, Plan
from issuesandbox.engine.acting import Did, findings_of
from issuesandbox.engine.action_log import Deed, log_action, seen_as
from issuesandbox.engine.lodging import with_intent
from issuesandbox.engine.reading import Reading
from issuesandbox.engine.record import next_status
from issuesandbox.engine.writing import Writer
from issuesandbox.ports.resources import ResourceKey


class Announcer:
    """Writes for all resources; returns the resource as it is then, None where it stays."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock

    async def protect(
        self, key: ResourceKey, reading: Reading, plan: Plan
    ) -> Mapping[str, Any] | None:
        """Put the finalizer back before anything is done that it must outlive."""
        first = any(each.kind is ActionKind.ANNOUNCE_FIRST_CREATE for each in plan.actions)
        desired = reading.desired
        if desired.has_finalizer or desired.deleting or first or not plan.needs_evidence:
            return None
        finalizers = [*reading.resource.metadata.finalizers, FINALIZER]
        return await self._writer.patch(key, reading, {"finalizers": finalizers})

    async def announce(
        self, key: ResourceKey, reading: Reading, action: Action, observed: Observed, plan: Plan
    ) -> Mapping[str, Any] | None:
        """Write down a step that must not be repeated blindly."""
        assert action.intent is not None, "an announcement carries its intent"
        if action.kind is ActionKind.ANNOUNCE_FIRST_CREATE:
            note = action.intent.model_dump_json(by_alias=True, exclude_none=True)
            metadata = {
                "finalizers": [*reading.resource.metadata.finalizers, FINALIZER],
                "annotations": {ANNOTATION_FIRST_CREATE: note},
            }
            return await self._writer.patch(key, reading, metadata)
        status = with_intent(reading.resource.status, action.intent)
        if plan.reason == CLEANUP:
            # The call changes nothing of what is told of it, so all is told at once.
            findings = findings_of(observed, plan, Did((ActionKind.DELETE,), None, None))
            status = next_status(reading, plan, findings, self._clock.now(), status)
        return await self._writer.write_status(key, reading, status)

    async def release(
        self, key: ResourceKey, reading: Reading, observed: Observed, plan: Plan
    ) -> None:
        """Let go of a resource: nothing of it is left to look after."""
        kept = [each for each in reading.resource.metadata.finalizers if each != FINALIZER]
        deed = Deed(ActionKind.RELEASE.value, seen_as(observed.sandbox), plan.reason)
        log_action(key, reading, deed)
        await self._writer.patch(key, reading, {"finalizers": kept})
