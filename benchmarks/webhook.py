"""Measures the webhook adapter against a bare aiohttp handler; prints one JSON object.

Both get the same signed deliveries over the same connections; the bare handler only answers 202.
`--needed` of ten deliveries are issue events that are known already, as redeliveries and repeated
events are; the others are of kinds that nobody needs, as an App gets many. Rates are per second of
the server's own CPU time, so that a busy machine does not count. Kubernetes and GitHub are stubs:
what they cost is theirs.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import yaml
from aiohttp import ClientSession, web

sys.path.insert(0, str(Path(__file__).parent))

from issuesandbox.domain.webhook.issue import text_trigger
from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.domain.webhook.signature import sign
from meters import cpu_seconds, memory, percentile

SECRET = "the secret of the benchmark"
CONNECTIONS = 16
ISSUES = 100
# With it a delivery has some ten thousand bytes, as GitHub's have; nobody reads most of them.
FILLER = {"urls": [f"https://api.github.com/repos/octo/app/{n}" for n in range(100)]}
BARE = """
import sys, uvloop
from aiohttp import web
async def answer(request):
    return web.Response(status=202)
app = web.Application(client_max_size=2**25)
app.router.add_post("/webhook", answer)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None,
            loop=uvloop.new_event_loop())
"""


def delivery(number: int, needed: int) -> tuple[str, dict[str, Any]]:
    """Return the event and the payload of one delivery."""
    sender = {"login": "octocat", "type": "User"}
    common = {"repository": {"full_name": "octo/app", **FILLER}, "sender": sender}
    if number % 10 >= needed:
        return "check_run", {"action": "completed", "check_run": FILLER, **common}
    issue = number % ISSUES + 1
    return "issues", {
        "action": "opened",
        "issue": {
            "id": 10_000 + issue,
            "number": issue,
            "title": f"Issue {issue}",
            "body": "It breaks. " * 100,
            "state": "open",
            "updated_at": "2026-01-01T00:00:00Z",
            "user": sender,
            "author_association": "OWNER",
            **FILLER,
        },
        **common,
    }


def request_bytes(number: int, needed: int) -> bytes:
    """Return one signed delivery as it goes over the wire."""
    event, payload = delivery(number, needed)
    body = json.dumps(payload).encode()
    head = (
        "POST /webhook HTTP/1.1",
        "Host: bench",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"X-GitHub-Event: {event}",
        f"X-GitHub-Delivery: {number}",
        f"X-Hub-Signature-256: {sign(SECRET.encode(), body)}",
    )
    return "\r\n".join((*head, "", "")).encode() + body


def resource(number: int) -> dict[str, Any]:
    """Return the resource of an issue, as the adapter left it."""
    title, body = f"Issue {number}", "It breaks. " * 100
    time_of_issue = "2026-01-01T00:00:00Z"
    return {
        "metadata": {
            "namespace": "bench",
            "name": resource_name("octo/app", number),
            "uid": str(number),
            "resourceVersion": "7",
            "creationTimestamp": time_of_issue,
            "annotations": {
                "issuesandbox.dev/issue-time": time_of_issue,
                "issuesandbox.dev/issue-text": text_trigger(title, body),
                "issuesandbox.dev/order": time_of_issue,
            },
        },
        "spec": {
            "issue": {"repository": "octo/app", "number": number, "title": title, "body": body},
            "run": {"trigger": text_trigger(title, body)},
        },
    }


class Sender(asyncio.Protocol):
    """One connection that sends the next delivery when the last one was answered."""

    def __init__(self, requests: list[bytes], count: int) -> None:
        self._requests = requests
        self._left = count
        self._turn = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.statuses: set[bytes] = set()
        self.seconds: list[float] = []
        self._sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        """Take an answer, which fits into one packet."""
        self.seconds.append(time.perf_counter() - self._sent)
        self.statuses.add(data[9:12])
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        """Say that it ended, too early or not."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("closed too early"))

    def _next(self) -> None:
        if self._left == 0:
            self.done.set_result(None)
            self._transport.close()
            return
        self._left -= 1
        self._turn += 1
        self._sent = time.perf_counter()
        self._transport.write(self._requests[self._turn % len(self._requests)])


async def fire(port: int, requests: list[bytes], count: int) -> list[float]:
    """Send so many deliveries over all connections; return how long each answer took."""
    loop = asyncio.get_running_loop()
    senders = [
        (
            await loop.create_connection(
                lambda: Sender(requests, count // CONNECTIONS), "127.0.0.1", port
            )
        )[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(each.done for each in senders))
    statuses = {status for each in senders for status in each.statuses}
    assert statuses <= {b"200", b"202"}, statuses
    return [each for sender in senders for each in sender.seconds]


async def measure(count: int, rounds: int, needed: int) -> dict[str, float]:
    """Run both servers and fire at them in turn."""
    requests = [request_bytes(number, needed) for number in range(ISSUES)]
    with tempfile.TemporaryDirectory() as folder:
        stubs = await _stubs()
        servers = {"bare": await _bare(), "adapter": await _adapter(Path(folder), stubs)}
        try:
            for _, port in servers.values():
                await _until_up(port)
            return await _fire_in_turn(servers, requests, count, rounds)
        finally:
            for process, _ in servers.values():
                process.terminate()
                await process.wait()
            await stubs.cleanup()


async def _fire_in_turn(
    servers: dict[str, tuple[asyncio.subprocess.Process, int]],
    requests: list[bytes],
    count: int,
    rounds: int,
) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in servers}
    walls: list[float] = []
    answers: list[float] = []
    adapter = servers["adapter"][0].pid
    await fire(servers["adapter"][1], requests, count)
    rss = memory(adapter).now
    for _ in range(rounds):
        for name, (process, port) in servers.items():
            began, used = time.monotonic(), cpu_seconds(process.pid)
            seconds = await fire(port, requests, count)
            rates[name].append(count / (cpu_seconds(process.pid) - used))
            if name == "adapter":
                walls.append(count / (time.monotonic() - began))
                answers += seconds
    mine, bare = (statistics.median(rates[name]) for name in ("adapter", "bare"))
    return {
        "deliveries": count * rounds,
        "body_bytes": round(statistics.mean(len(each) for each in requests)),
        "deliveries_per_core_second": round(mine),
        "bare_per_core_second": round(bare),
        "ratio": round(
            statistics.median(
                ours / theirs for ours, theirs in zip(rates["adapter"], rates["bare"], strict=True)
            ),
            2,
        ),
        "deliveries_per_second": round(statistics.median(walls)),
        "answer_p99_ms": round(1000 * percentile(answers, 99), 1),
        "rss_mib": round(memory(adapter).now, 1),
        "rss_growth_mib": round(memory(adapter).now - rss, 1),
    }


async def _bare() -> tuple[asyncio.subprocess.Process, int]:
    port = _free_port()
    command = (sys.executable, "-c", BARE, str(port))
    return await asyncio.create_subprocess_exec(*command), port


async def _adapter(folder: Path, stubs: web.AppRunner) -> tuple[asyncio.subprocess.Process, int]:
    port, stub = _free_port(), f"http://127.0.0.1:{stubs.addresses[0][1]}"
    user = {"name": "bench", "user": {"token": "bench"}}
    context = {"cluster": "bench", "user": "bench", "namespace": "bench"}
    kubeconfig = {
        "clusters": [{"name": "bench", "cluster": {"server": stub}}],
        "users": [user],
        "contexts": [{"name": "bench", "context": context}],
        "current-context": "bench",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    environment = {
        "KUBECONFIG": str(path),
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "GITHUB_TOKEN": "bench",
        "GITHUB_API_URL": stub,
        "ISSUESANDBOX_HTTP_HOST": "127.0.0.1",
        "ISSUESANDBOX_HTTP_PORT": str(port),
        "ISSUESANDBOX_WEBHOOK_DRAIN": "0s",
        "ISSUESANDBOX_LOG_LEVEL": "WARNING",
    }
    command = (sys.executable, "-P", "-m", "issuesandbox", "webhook")
    return await asyncio.create_subprocess_exec(*command, env=environment), port


async def _stubs() -> web.AppRunner:
    """Serve as much of Kubernetes and GitHub as the adapter asks for before deliveries come."""
    listed = {
        "metadata": {"resourceVersion": "7"},
        "items": [resource(n + 1) for n in range(ISSUES)],
    }

    async def resources(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response(listed)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await asyncio.sleep(300)
        return answer

    async def login(_: web.Request) -> web.Response:
        return web.json_response({"login": "bench-bot"})

    async def nothing(_: web.Request) -> web.Response:
        return web.json_response({"message": "not here"}, status=404)

    app = web.Application()
    app.router.add_get("/api/v1/namespaces/bench/configmaps", resources)
    app.router.add_get("/apis/issuesandbox.dev/v1alpha1/issuesandboxes", resources)
    app.router.add_get("/user", login)
    app.router.add_route("*", "/{tail:.*}", nothing)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner


def _free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


async def _until_up(port: int) -> None:
    async with asyncio.timeout(30), ClientSession() as session:
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status in (200, 404):
                        return
            except OSError:
                pass
            await asyncio.sleep(0.1)


@click.command()
@click.option("--count", default=8000, show_default=True, help="Deliveries per round.")
@click.option("--rounds", default=3, show_default=True)
@click.option("--needed", default=3, show_default=True, help="Issue events among ten deliveries.")
def main(count: int, rounds: int, needed: int) -> None:
    """Print the figures; `goals_runs.py` judges them."""
    figures = asyncio.run(measure(count, rounds, needed))
    print(json.dumps({"needed_of_ten": needed, **figures}))


if __name__ == "__main__":
    main()
