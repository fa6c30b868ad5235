"""What a pass does to Daytona: one call per action, one log line per call.

Whether it may be done, and what comes of it, is the pass's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from issuesandbox.domain.model import Action, ActionKind, Holder, Observed, Plan
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.sandbox import Present, SandboxView
from issuesandbox.domain.states import Sight, sight_of
from issuesandbox.engine.action_log import Deed, log_action, seen_as
from issuesandbox.engine.environment import variables
from issuesandbox.engine.findings import Findings
from issuesandbox.engine.orders import order_for
from issuesandbox.engine.reading import Reading
from issuesandbox.engine.retirement import Followed
from issuesandbox.ports.errors import Busy, CallError, Conflict, Invalid, NotFound, Unavailable
from issuesandbox.ports.ledgers import Ledgers
from issuesandbox.ports.resources import ResourceKey
from issuesandbox.ports.sandboxes import Sandboxes, SandboxOrder


@dataclass(frozen=True, slots=True)
class Ordered:
    """The order for a new sandbox, and who hides the Secrets that are in it."""

    order: SandboxOrder
    redactor: Redactor


class Actor:
    """Carries actions out."""

    def __init__(self, sandboxes: Sandboxes, ledgers: Ledgers | None) -> None:
        self._sandboxes = sandboxes
        self._ledgers = ledgers

    async def order(self, reading: Reading, plan: Plan) -> Ordered | None:
        """Return the order for what the plan creates, with the Secrets it needs.

        Read before anything is announced: from then on the call has only so much time to land.
        """
        create = next((each for each in plan.actions if each.kind is ActionKind.CREATE), None)
        if create is None:
            return None
        secrets = await self._secrets(reading)
        return Ordered(order_for(reading, create, secrets), Redactor(secrets.values()))

    async def send(self, action: Action, ordered: Ordered | None) -> SandboxView | None:
        """Make the one call that an action is; return what a create made."""
        sandboxes = self._sandboxes
        if action.kind is ActionKind.CREATE:
            assert ordered is not None, "what is created was ordered before"
            return await self._looked_at(await self._create(ordered))
        assert action.sandbox_id is not None, "only a create has no sandbox yet"
        if action.kind in (ActionKind.ADOPT, ActionKind.DISOWN):
            await sandboxes.relabel(action.sandbox_id, action.labels)
            return None
        call = {
            ActionKind.START: sandboxes.start,
            ActionKind.STOP: sandboxes.stop,
            ActionKind.RECOVER: sandboxes.recover,
            ActionKind.DELETE: sandboxes.delete,
            ActionKind.ARCHIVE: sandboxes.archive,
            ActionKind.RENEW: sandboxes.renew,
        }[action.kind]
        await call(action.sandbox_id)
        return None

    async def _create(self, ordered: Ordered) -> SandboxView:
        try:
            return await self._sandboxes.create(ordered.order)
        except CallError as error:
            # A refusal may quote what it refuses.
            text = ordered.redactor.redact(str(error))
            raise type(error)(text, code=error.code, retry_after=error.retry_after) from None

    async def _looked_at(self, made: SandboxView) -> SandboxView:
        """Return a new sandbox as it is now.

        Daytona answers with what it was at first, however long it held the answer until it ran.
        """
        if sight_of(made) is Sight.RUNNING:
            return made
        try:
            return await self._sandboxes.get(made.id)
        except CallError:
            return made

    async def _secrets(self, reading: Reading) -> dict[str, str]:
        wanted = reading.resource.spec.sandbox
        if wanted is None or not wanted.env_from or self._ledgers is None:
            return {}
        namespace = reading.desired.identity.namespace
        try:
            return await variables(self._ledgers, namespace, wanted.env_from)
        except NotFound as error:
            raise Invalid(f"{error} for spec.sandbox.envFrom", code="SecretNotFound") from error
        except CallError as error:
            # Whatever it is, it is not Daytona's answer to the create.
            raise Unavailable(str(error)) from error

    @staticmethod
    def log(
        key: ResourceKey, reading: Reading, observed: Observed, action: Action, plan: Plan
    ) -> None:
        """Say what is about to be done, for whom and why."""
        sandbox, seen = action.sandbox_id or action.name, seen_as(observed.sandbox)
        deed = Deed(action.kind.value, seen, plan.reason, sandbox, action.attempt)
        log_action(key, reading, deed)


@dataclass(frozen=True, slots=True)
class Did:
    """What a pass did and what came of it."""

    done: tuple[ActionKind, ...]
    created: SandboxView | None
    failure: CallError | None
    failed: ActionKind | None = None
    followed: Followed = field(default_factory=Followed)

    @property
    def arrived(self) -> bool:
        """Tell whether what was sent last came to Daytona, or may have come."""
        answered = isinstance(self.failure, Busy | Conflict | Invalid | Unavailable)
        return self.failure is None or answered


def findings_of(observed: Observed, plan: Plan, did: Did) -> Findings:
    """Return what the status gets to know of a pass."""
    seen = observed.sandbox
    ours = isinstance(seen, Present) and observed.holder is Holder.OURS
    sent = (*did.done, did.failed)
    creates = (each.intent for each in plan.actions if each.kind is ActionKind.CREATE)
    return Findings(
        granted=next(creates, None) if ActionKind.CREATE in sent else None,
        sandbox=did.created or (seen.sandbox if isinstance(seen, Present) and ours else None),
        gone=plan.row.startswith("GONE/") and not plan.actions,
        done=did.done,
        failure=str(did.failure) if did.failure is not None else None,
        refused=isinstance(did.failure, Busy | Conflict | Invalid | Unavailable),
        not_found=isinstance(did.failure, NotFound),
        name_taken=did.failed is ActionKind.CREATE and isinstance(did.failure, Conflict),
        start_refused=did.failed is ActionKind.START and isinstance(did.failure, Invalid),
        start_put_off=did.failed is ActionKind.START and isinstance(did.failure, Busy),
        recovery_refused=(
            did.failed is ActionKind.RECOVER and isinstance(did.failure, Busy | Invalid)
        ),
        replaced=plan.reason == "Replacing" and ActionKind.DELETE in did.done,
        retired_gone=did.followed.gone,
        duplicate=did.followed.duplicate,
    )
