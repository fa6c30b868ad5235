"""The calls about the key itself, its organisation, snapshots and the service: `/api/...`."""

from __future__ import annotations

import math

from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.quota import usage_of
from issuesandbox.local.daytona.rate_limit import Bucket
from issuesandbox.local.daytona.simulation import Simulation


class AccountCalls:
    """Handlers of everything that is not a sandbox."""

    def __init__(self, simulation: Simulation, gate: Gate) -> None:
        self._sim = simulation
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        wrap, bucket = self._gate.wrap, Bucket.AUTHENTICATED
        organization = "/api/organizations/{organization}"
        return [
            web.get("/api/api-keys/current", wrap("api_key.current", self._key, bucket)),
            web.get("/api/organizations", wrap("organization.list", self._organizations, bucket)),
            web.get(organization, wrap("organization.get", self._organization, bucket)),
            web.get(f"{organization}/usage", wrap("organization.usage", self._usage, bucket)),
            web.get("/api/snapshots", wrap("snapshot.list", self._snapshots, bucket)),
            web.get("/api/snapshots/{snapshot}", wrap("snapshot.get", self._snapshot, bucket)),
        ]

    async def _key(self, call: Call) -> web.Response:
        assert call.key is not None
        return answer(views.key_view(call.key))

    async def _organizations(self, call: Call) -> web.Response:
        return answer([self._organization_view(call.organization)])

    async def _organization(self, call: Call) -> web.Response:
        self._check_own(call)
        return answer(self._organization_view(call.organization))

    async def _usage(self, call: Call) -> web.Response:
        self._check_own(call)
        quota = self._sim.quota_of(call.organization)
        usage = usage_of(self._sim.store.of(call.organization))
        return answer(views.usage_view(self._sim.config.regions[0], quota, usage))

    async def _snapshots(self, call: Call) -> web.Response:
        query = call.request.query
        page, limit = _positive(query.get("page"), 1), _positive(query.get("limit"), 100)
        prefix = query.get("name") or ""
        found = [item for item in self._sim.config.snapshots if prefix in item.name]
        chosen = found[(page - 1) * limit : page * limit]
        return answer(
            {
                "items": [views.snapshot_view(item) for item in chosen],
                "total": len(found),
                "page": page,
                "totalPages": math.ceil(len(found) / limit),
            }
        )

    async def _snapshot(self, call: Call) -> web.Response:
        wanted = call.request.match_info["snapshot"]
        for snapshot in self._sim.config.snapshots:
            if snapshot.name == wanted:
                return answer(views.snapshot_view(snapshot))
        raise ApiError(404, f"Snapshot with ID or name {wanted} not found")

    def _organization_view(self, name: str) -> dict[str, object]:
        quota = self._sim.quota_of(name)
        return views.organization_view(name, quota, self._sim.limiter.limits)

    @staticmethod
    def _check_own(call: Call) -> None:
        wanted = call.request.match_info["organization"]
        if wanted != call.organization:
            raise ApiError(404, f"Organization with ID {wanted} not found")


def _positive(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ApiError(400, "page and limit must be positive integers")
    return int(text)
