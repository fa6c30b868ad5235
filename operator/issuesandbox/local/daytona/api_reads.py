"""The calls that only look at sandboxes: list, get, build logs, the toolbox's address.

The list may lie on request (faults); GET is the truth, but for its cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.faults import Fault, Name
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.list_query import read_list_query
from issuesandbox.local.daytona.model import Sandbox, State
from issuesandbox.local.daytona.rate_limit import Bucket
from issuesandbox.local.daytona.simulation import Simulation

# What changed less than this ago may flap; seen at the hosted service after a delete.
_FLAP_SECONDS = 3.0
_DISGUISES = (Name.UNKNOWN_STATE, Name.STATE_UNKNOWN, Name.STATE_MISSING)


class ReadCalls:
    """Handlers of the calls that change nothing."""

    def __init__(self, simulation: Simulation, gate: Gate) -> None:
        self._sim = simulation
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        wrap, bucket = self._gate.wrap, Bucket.AUTHENTICATED
        one = "/api/sandbox/{reference}"
        return [
            web.get("/api/sandbox", wrap("sandbox.list", self._list, bucket)),
            web.get(one, wrap("sandbox.get", self._get, bucket)),
            web.get(
                f"{one}/toolbox-proxy-url", wrap("sandbox.toolbox_url", self._toolbox_url, bucket)
            ),
            web.get(
                f"{one}/build-logs-url", wrap("sandbox.build_logs_url", self._logs_url, bucket)
            ),
            web.get(f"{one}/build-logs", wrap("sandbox.build_logs", self._build_logs, bucket)),
        ]

    async def _get(self, call: Call) -> web.Response:
        sandbox = call.concerns(self._sim.lookup.find(call.organization, call.reference))
        view = views.sandbox_view(sandbox, self._sim.toolbox_url)
        self._disguise(call, view, sandbox)
        return answer(view)

    async def _list(self, call: Call) -> web.Response:
        query = read_list_query(
            {name: call.request.query.getall(name) for name in call.request.query}
        )
        self._fail_page(call, query.page)
        stale = call.take(Name.STALE_LIST, Name.FLAPPING_LIST)
        listing, organization = self._sim.listing, call.organization
        truth = listing.truth(organization)
        page = listing.page(self._untrue(stale, organization) if stale else truth, query)
        items = [views.list_item(row, self._sim.toolbox_url) for row in page.rows]
        for item, row in zip(items, page.rows, strict=True):
            self._disguise(call, item, row)
        self._poison(call, items)
        return answer({"items": items, "nextCursor": page.next_cursor})

    async def _toolbox_url(self, call: Call) -> web.Response:
        self._find(call)
        return answer({"url": self._sim.toolbox_url})

    async def _logs_url(self, call: Call) -> web.Response:
        sandbox = self._find(call)
        return answer({"url": f"{self._sim.base_url}/api/sandbox/{sandbox.id}/build-logs"})

    async def _build_logs(self, call: Call) -> web.Response:
        sandbox = self._find(call)
        if call.request.query.get("follow") == "true":
            await self._sim.lifecycle.settled(sandbox)
        build = (sandbox.extra or {}).get("buildInfo")
        if build is None:
            raise ApiError(404, f"Sandbox {sandbox.id} has no build")
        steps = build["dockerfileContent"].splitlines()
        return web.Response(text="".join(f"Step {n}: {line}\n" for n, line in enumerate(steps, 1)))

    def _find(self, call: Call) -> Sandbox:
        return call.concerns(self._sim.store.find(call.organization, call.reference))

    def _fail_page(self, call: Call, page: int) -> None:
        fault = call.take(Name.FAILING_PAGE, page=page)
        if fault is not None:
            text = fault.spec.message or "An unexpected error occurred."
            raise ApiError(fault.spec.status or 500, text)

    def _untrue(self, fault: Fault, organization: str) -> Iterable[Sandbox]:
        listing, seconds, now = self._sim.listing, fault.spec.delay, self._sim.timeline.now()
        if fault.spec.fault is Name.FLAPPING_LIST:
            return listing.flapping(
                organization, now - (_FLAP_SECONDS if seconds is None else seconds)
            )
        return listing.lagging(organization, fault.since if seconds is None else now - seconds)

    def _poison(self, call: Call, items: list[dict[str, Any]]) -> None:
        poison = call.take(Name.POISON_ITEM) if items else None
        if poison is None:
            return
        if poison.spec.how == "language":
            # The SDK gives up on the whole list for one language it does not know.
            items[0]["labels"] = {**items[0]["labels"], "code-toolbox-language": "cobol"}
        else:
            items[0]["cpu"] = 1.5

    def _disguise(self, call: Call, view: dict[str, Any], row: Sandbox) -> None:
        if not self._sim.faults.has(_DISGUISES):
            return
        about = replace(call, sandbox=row)
        fault = about.take(*_DISGUISES)
        if fault is not None:
            call.fault, call.held = about.fault, about.held
            view["state"] = {
                Name.UNKNOWN_STATE: fault.spec.state or "hibernating",
                Name.STATE_UNKNOWN: State.UNKNOWN,
                Name.STATE_MISSING: None,
            }[fault.spec.fault]
