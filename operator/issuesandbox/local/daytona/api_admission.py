"""Who may call the control plane, and how often."""

from __future__ import annotations

from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.gate import Call
from issuesandbox.local.daytona.rate_limit import Bucket
from issuesandbox.local.daytona.simulation import Simulation


class ApiAdmission:
    """Checks the key, then counts the call."""

    def __init__(self, simulation: Simulation) -> None:
        self._sim = simulation

    async def admit(self, call: Call) -> dict[str, str]:
        """Return the rate-limit headers of the answer, or refuse the call."""
        call.key = self._sim.key(call.request.headers.get("Authorization", ""))
        if call.key is None:
            raise ApiError(401, "Invalid credentials")
        return self._sim.limiter.admit(call.organization, call.bucket or Bucket.AUTHENTICATED)
