"""A Daytona that does nothing but answer at once: what the load scenarios run against.

The simulator starts real processes, keeps a journal and walks through transitions, and would be
the bottleneck of a burst on two shared cores. This one knows create, get, list, renew and delete,
answers in the simulator's own shapes, calls every sandbox started, and remembers when each create
arrived. What happens inside sandboxes is in `toolbox_stub.py`. Uses CLOCK_MONOTONIC, which all
processes of one machine share.
"""

from __future__ import annotations

import asyncio
import sys
import time
import urllib.parse
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, cast

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from issuesandbox.clock import SystemClock
from issuesandbox.local.daytona.config import SimulatorConfig
from issuesandbox.local.daytona.model import Desired, Sandbox, State
from issuesandbox.local.daytona.new_sandbox import read_new_sandbox
from issuesandbox.local.daytona.views import list_item, sandbox_view
from toolbox_stub import Toolboxes

_ORGANIZATION = "bench"
_CONFIG = SimulatorConfig()
_CLOCK = SystemClock()
_TOOLBOX = f"http://127.0.0.1:{sys.argv[1]}/toolbox"
_encode = msgspec.json.Encoder().encode

Answer = tuple[int, bytes]


class Sandboxes:
    """All sandboxes, and what was asked about them."""

    def __init__(self) -> None:
        self._rows: dict[str, Sandbox] = {}
        self._ids: dict[str, str] = {}
        self._items: dict[str, bytes] = {}
        self.creates: list[tuple[str, float]] = []
        self.lists: list[tuple[float, bool]] = []
        self.calls: Counter[str] = Counter()
        self.toolboxes = Toolboxes()

    def create(self, body: Any) -> Answer:
        """Create a sandbox that is started at once, or refuse a name that is taken."""
        self.creates.append((body["name"], time.monotonic()))
        if body["name"] in self._ids:
            return 409, _encode({"message": f"Sandbox with name {body['name']} already exists"})
        row = self.add(body)
        return 200, _encode(sandbox_view(row, _TOOLBOX))

    def add(self, body: Any) -> Sandbox:
        """Remember a sandbox; a planted one brings its id and how long it has been idle."""
        now = _CLOCK.now().timestamp()
        row = read_new_sandbox(body, _ORGANIZATION, _CONFIG, now).sandbox
        row.id = body.get("id", row.id)
        row.state, row.desired = State.STARTED, Desired.STARTED
        row.last_activity_at = now - body.get("idle", 0)
        self._rows[row.id] = row
        self._ids[row.name] = row.id
        self._show(row)
        return row

    def get(self, reference: str) -> Answer:
        """Return one sandbox by id or name."""
        row = self._find(reference)
        if row is None:
            return 404, _encode({"message": f"Sandbox with ID or name {reference} not found"})
        return 200, _encode(sandbox_view(row, _TOOLBOX))

    def page(self, query: dict[str, list[str]]) -> Answer:
        """Return one page in the order of creation; the cursor is a position."""
        start, limit = int(query.get("cursor", ["0"])[0]), int(query["limit"][0])
        self.lists.append((time.monotonic(), start == 0))
        end = start + limit
        items = b",".join(islice(self._items.values(), start, end))
        cursor = f'"{end}"' if end < len(self._items) else "null"
        return 200, b'{"items":[%b],"nextCursor":%b}' % (items, cursor.encode())

    def renew(self, reference: str) -> Answer:
        """Count the sandbox as active from now on."""
        row = self._find(reference)
        if row is None:
            return 404, b"{}"
        row.last_activity_at = _CLOCK.now().timestamp()
        self._show(row)
        return 201, b""

    def delete(self, reference: str) -> Answer:
        """Forget a sandbox."""
        row = self._find(reference)
        if row is None:
            return 404, b"{}"
        del self._rows[row.id], self._ids[row.name], self._items[row.id]
        return 200, _encode(sandbox_view(row, _TOOLBOX))

    def keep_first(self, count: int) -> None:
        """Forget all sandboxes but the oldest `count`, and all that was asked."""
        for reference in list(islice(self._rows, count, None)):
            self.delete(reference)
        self.creates.clear()
        self.lists.clear()
        self.calls.clear()

    def _find(self, reference: str) -> Sandbox | None:
        return self._rows.get(self._ids.get(reference, reference))

    def _show(self, row: Sandbox) -> None:
        self._items[row.id] = _encode(list_item(row, _TOOLBOX))


class Connection(asyncio.Protocol):
    """The least of HTTP/1.1 that well-behaved clients need: a length, no chunks."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].decode("latin-1")
            request, *headers = head.split("\r\n")
            length = next((int(h[15:]) for h in headers if h[:15].lower() == "content-length:"), 0)
            total = end + 4 + length
            if len(self._received) < total:
                return
            body, self._received = self._received[end + 4 : total], self._received[total:]
            method, target, _ = request.split(" ")
            if target.startswith("/toolbox/"):
                self._talk(target, body)
            else:
                self._answer(*route(self._sandboxes, method, target, body))

    def _talk(self, target: str, body: bytes) -> None:
        sandbox, _, call = target.removeprefix("/toolbox/").partition("/")
        status, answer, seconds = self._sandboxes.toolboxes.answer(sandbox, call, body)
        asyncio.get_running_loop().call_later(seconds, self._answer, status, answer)

    def _answer(self, status: int, body: bytes) -> None:
        assert self._transport is not None
        if self._transport.is_closing():
            return
        self._transport.write(
            b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (status, len(body), body)
        )


def route(sandboxes: Sandboxes, method: str, target: str, body: bytes) -> Answer:
    """Find the answer to one request."""
    path, _, query = target.partition("?")
    first, *rest = path.strip("/").split("/")
    if first == "_bench":
        return admin(sandboxes, method, rest, body)
    match method, *rest:
        case "POST", "sandbox":
            kind, answer = "create", sandboxes.create(msgspec.json.decode(body))
        case "GET", "sandbox":
            kind, answer = "list", sandboxes.page(urllib.parse.parse_qs(query))
        case "GET", "sandbox", reference:
            kind, answer = "get", sandboxes.get(reference)
        case "POST", "sandbox", reference, "last-activity":
            kind, answer = "renew", sandboxes.renew(reference)
        case "DELETE", "sandbox", reference:
            kind, answer = "delete", sandboxes.delete(reference)
        case "GET", "organizations":
            kind, answer = "organization", (200, _encode([{"id": _ORGANIZATION}]))
        case _:
            kind, answer = "unknown", (404, _encode({"message": f"Cannot {method} {path}"}))
    sandboxes.calls[kind] += 1
    return answer


def admin(sandboxes: Sandboxes, method: str, rest: list[str], body: bytes) -> Answer:
    """Answer the benchmark itself: what was asked, and what shall be there."""
    match method, *rest:
        case "GET", "log":
            seen = {
                "creates": sandboxes.creates,
                "lists": sandboxes.lists,
                "calls": sandboxes.calls,
            }
            return 200, _encode(seen)
        case "POST", "plant":
            for each in msgspec.json.decode(body):
                sandboxes.add(each)
            return 200, b"{}"
        case "GET", "talk":
            talk = sandboxes.toolboxes
            seen = {"running": talk.running, "calls": talk.calls, "lags": talk.lags}
            return 200, _encode(seen)
        case "DELETE", "talk":
            sandboxes.toolboxes.forget_calls()
            return 200, b"{}"
        case "DELETE", "after", count:
            sandboxes.keep_first(int(count))
            return 200, b"{}"
    return 404, b"{}"


async def serve(port: int) -> None:
    """Serve until killed."""
    sandboxes = Sandboxes()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(sandboxes), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
