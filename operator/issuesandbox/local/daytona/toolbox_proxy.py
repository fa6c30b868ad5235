"""The way to a sandbox's toolbox: `/toolbox/{id}/...`, and how it fails.

Toolbox calls count as activity and keep a sandbox from being stopped; nothing else does.
"""

from __future__ import annotations

from issuesandbox.local.daytona.errors import PROXY, EmptyAnswer, ToolboxError
from issuesandbox.local.daytona.faults import Name
from issuesandbox.local.daytona.gate import Call
from issuesandbox.local.daytona.machine import Machine
from issuesandbox.local.daytona.model import DISKLESS, Sandbox, SandboxId, State
from issuesandbox.local.daytona.simulation import Simulation

_SKIP_ACTIVITY = "X-Daytona-Skip-Last-Activity-Update"
# The service notes activity at most this often.
_ACTIVITY_SECONDS = 5.0
_ASSIGNING = (State.PENDING_BUILD, State.BUILDING_SNAPSHOT)


class ToolboxProxy:
    """Lets calls through to running sandboxes."""

    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation

    async def admit(self, call: Call) -> dict[str, str]:
        """Check the key and the sandbox; a missing sandbox looks like a bad key here."""
        call.key = self._sim.key(call.request.headers.get("Authorization", ""))
        sandbox = self._sim.store.get(SandboxId(call.reference))
        if (
            call.key is None
            or sandbox is None
            or sandbox.hidden
            or sandbox.organization != call.key.organization
        ):
            raise ToolboxError(401, "authentication failed: Bearer token is invalid", source=PROXY)
        call.concerns(sandbox)
        self._check_reachable(sandbox)
        self.renew(call)
        return {}

    def renew(self, call: Call) -> None:
        """Count a call as activity, unless it asks not to."""
        assert call.sandbox is not None
        sandbox, now = call.sandbox, self._sim.timeline.now()
        skip = call.request.headers.get(_SKIP_ACTIVITY, "").lower() == "true"
        if not skip and now - sandbox.last_activity_at >= _ACTIVITY_SECONDS:
            sandbox.last_activity_at = now
            self._sim.store.save(sandbox)

    async def machine(self, call: Call) -> Machine:
        """Return the machine behind a call that was let in."""
        assert call.sandbox is not None
        machine = self._sim.machines.of(call.sandbox)
        if call.take(Name.DAEMON_RESTART):
            await machine.forget_sessions()
            raise EmptyAnswer(502)
        return machine

    @staticmethod
    def _check_reachable(sandbox: Sandbox) -> None:
        if sandbox.container_gone:
            raise ToolboxError(404, f"sandbox container not found: {sandbox.id}", source=PROXY)
        if sandbox.state in DISKLESS or sandbox.state in _ASSIGNING:
            raise ToolboxError(
                400, "failed to get runner info: sandbox has no runner", source=PROXY
            )
        reachable = sandbox.shown_state in (State.STARTED, State.STOPPING)
        if not (reachable or sandbox.container_lives):
            raise ToolboxError(400, "no IP address found. Is the Sandbox started?", source=PROXY)
