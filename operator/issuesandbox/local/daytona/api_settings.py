"""The calls that change what is written on a sandbox: labels, intervals, last activity."""

from __future__ import annotations

from functools import partial

from aiohttp import web

from issuesandbox.local.daytona import views
from issuesandbox.local.daytona.config import WRITE
from issuesandbox.local.daytona.errors import ApiError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.model import Sandbox
from issuesandbox.local.daytona.new_sandbox import string_map_complaints
from issuesandbox.local.daytona.rate_limit import Bucket
from issuesandbox.local.daytona.simulation import Simulation

# The field of the row and the least value, by the word in the path.
_INTERVALS = {
    "autostop": ("auto_stop", 0),
    "autopause": ("auto_pause", 0),
    "autoarchive": ("auto_archive", 0),
    "autodelete": ("auto_delete", -1),
}


class SettingCalls:
    """Handlers of the calls that change a sandbox's settings."""

    def __init__(self, simulation: Simulation, gate: Gate) -> None:
        self._sim = simulation
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        wrap, bucket = self._gate.wrap, Bucket.AUTHENTICATED
        one = "/api/sandbox/{reference}"
        intervals = [
            web.post(
                f"{one}/{word}/{{value}}",
                wrap(f"sandbox.{word}", partial(self._interval, word), bucket),
            )
            for word in _INTERVALS
        ]
        return [
            web.put(f"{one}/labels", wrap("sandbox.labels", self._labels, bucket)),
            web.post(f"{one}/ttl/{{value}}", wrap("sandbox.ttl", self._ttl, bucket)),
            web.post(f"{one}/public/{{value}}", wrap("sandbox.public", self._public, bucket)),
            web.post(f"{one}/last-activity", wrap("sandbox.last_activity", self._activity, bucket)),
            *intervals,
        ]

    async def _labels(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        body = await call.json()
        labels = body.get("labels") if isinstance(body, dict) else None
        complaints = string_map_complaints("labels", labels)
        if complaints:
            raise ApiError(400, ", ".join(complaints))
        sandbox.labels = dict(labels or {})
        call.effect = "labelled"
        self._sim.lifecycle.touch(sandbox)
        return answer({"labels": sandbox.labels})

    async def _interval(self, word: str, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        field, least = _INTERVALS[word]
        minutes = _whole_number(call)
        if minutes < least:
            raise ApiError(400, f"{word} interval must not be less than {least}")
        if word == "autopause" and minutes and sandbox.sandbox_class == "container":
            raise ApiError(400, "Auto-pause is not supported for sandboxes of class container")
        setattr(sandbox, field, minutes)
        return self._configured(call, sandbox)

    async def _ttl(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        minutes = _whole_number(call)
        if minutes < 0:
            raise ApiError(400, "ttl must not be less than 0")
        # Counted from now, not from the creation; 0 switches it off.
        end = self._sim.timeline.now() + minutes * 60
        sandbox.auto_destroy_at = end if minutes else None
        return self._configured(call, sandbox)

    async def _public(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        sandbox.public = call.request.match_info["value"] == "true"
        return self._configured(call, sandbox)

    async def _activity(self, call: Call) -> web.Response:
        sandbox = call.find(WRITE)
        sandbox.last_activity_at = self._sim.timeline.now()
        self._sim.store.save(sandbox)
        call.effect = "touched"
        return web.Response(status=201)

    def _configured(self, call: Call, sandbox: Sandbox) -> web.Response:
        call.effect = "configured"
        self._sim.lifecycle.touch(sandbox)
        return answer(views.sandbox_view(sandbox, self._sim.toolbox_url))


def _whole_number(call: Call) -> int:
    try:
        return int(call.request.match_info["value"])
    except ValueError as error:
        raise ApiError(400, "Validation failed (numeric string is expected)") from error
