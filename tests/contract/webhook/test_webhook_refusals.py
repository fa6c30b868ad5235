"""What must not get in: forged, altered, too large, too slow, not what it says it is."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import resource
from collections.abc import AsyncIterator

import pytest
from webhook_door import SECRETS, Door, Notes, opened

from issuesandbox.domain.webhook.signature import sign
from issuesandbox.ports.errors import Unavailable

GOOD = json.dumps(opened()).encode()
DEEP = b'{"issue":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
# In a field that nobody reads: all the others are as they should be.
BROKEN_TEXT = GOOD[:-1] + b',"other":"\xff\xfe"}'


async def test_a_delivery_signed_with_any_of_our_secrets_gets_in(door: Door, notes: Notes) -> None:
    # R116
    for secret in SECRETS:
        status, said = await door.post(X_Hub_Signature_256=sign(secret, GOOD))
        assert (status, said["resource"]) == (202, "issues/acme-app-1-12345678")


async def test_what_a_delivery_says_of_its_installation_is_heard(door: Door, notes: Notes) -> None:
    # R46
    payload = json.dumps({**opened(), "installation": {"id": 7, "node_id": "x"}}).encode()
    assert (await door.post(payload))[0] == 202
    assert (await door.post())[0] == 202
    assert [getattr(each, "installation", None) for each in notes.hints] == [7, 0]


async def test_secrets_change_without_a_restart(door: Door) -> None:
    door.server.use_secrets((b"newest",))
    assert (await door.post(X_Hub_Signature_256=sign(b"newest", GOOD)))[0] == 202
    assert (await door.post())[0] == 401


FORGED = {
    "missing": None,
    "empty": "",
    "of another secret": sign(b"other", GOOD),
    "of other bytes": sign(SECRETS[0], GOOD + b" "),
    "without its prefix": sign(SECRETS[0], GOOD).removeprefix("sha256="),
    "of the old kind": "sha1=" + "0" * 40,
    "cut": sign(SECRETS[0], GOOD)[:-1],
    "in capitals": sign(SECRETS[0], GOOD).upper(),
    "not in ASCII": "sha256=" + "é" * 64,
}


@pytest.mark.parametrize("signature", FORGED.values(), ids=FORGED.keys())
async def test_a_signature_that_is_not_ours_is_refused(
    door: Door, notes: Notes, signature: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    status, said = await door.post(GOOD, X_Hub_Signature_256=signature)
    assert status == 401
    assert notes.hints == []
    assert "sha256=" not in _only_line(caplog) + str(said)


def _only_line(caplog: pytest.LogCaptureFixture) -> str:
    """Return the one line that a refusal is worth, which holds nothing of the body."""
    (line,) = [each for each in caplog.records if each.levelno >= logging.INFO]
    assert line.name.startswith("issuesandbox")
    text = str(line.__dict__)
    assert "It breaks" not in text
    assert len(text) < 3000
    return text


async def test_a_replayed_body_with_altered_bytes_is_refused(door: Door) -> None:
    altered = GOOD.replace(b"Badly", b"Sadly")
    assert (await door.post(altered, signed=GOOD))[0] == 401


REFUSED = {
    "not JSON": (b"title=x", {}, 400),
    "no object": (b"[]", {}, 400),
    "another event's JSON": (b'{"action":"opened"}', {}, 400),
    "not UTF-8": (BROKEN_TEXT, {}, 400),
    "lone surrogate": (json.dumps(opened(title="\ud800")).encode(), {}, 400),
    "deeply nested": (DEEP, {}, 400),
    "no event": (GOOD, {"X_GitHub_Event": None}, 400),
    "no delivery id": (GOOD, {"X_GitHub_Delivery": None}, 400),
    "a form": (GOOD, {"Content_Type": "application/x-www-form-urlencoded"}, 415),
    "compressed": (gzip.compress(GOOD), {"Content_Encoding": "gzip"}, 415),
    "empty": (b"", {}, 400),
}


@pytest.mark.parametrize(("body", "changes", "wanted"), REFUSED.values(), ids=REFUSED.keys())
async def test_a_signed_body_that_cannot_be_read_gets_the_right_code(
    door: Door,
    notes: Notes,
    caplog: pytest.LogCaptureFixture,
    body: bytes,
    changes: dict[str, str | None],
    wanted: int,
) -> None:
    caplog.set_level(logging.INFO)
    status, said = await door.post(body, **changes)  # type: ignore[arg-type]
    assert status == wanted, said
    assert said["error"]
    assert notes.hints == []
    _only_line(caplog)


@pytest.mark.parametrize("path", ["/", "/webhooks", "/webhook/x"])
async def test_another_path_is_not_found(door: Door, path: str) -> None:
    assert (await door.post(path=path))[0] == 404


async def test_another_method_is_not_allowed(door: Door) -> None:
    async with door.session.get(door.url + "/webhook") as answer:
        assert answer.status == 405


async def test_thirty_megabytes_are_refused_before_they_are_read(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (await door.post(b" " * (30 * 2**20)))[0] == 413

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 2**20

    caplog.set_level(logging.INFO)
    caplog.clear()
    try:
        status, _ = await door.post(endless())
        assert status == 413
    except ConnectionError:
        pass  # the door was shut while we were still sending
    _only_line(caplog)
    # The sender's own 30 MB and one body within the limit.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 * 1024


async def test_a_bomb_is_not_unpacked(door: Door) -> None:
    bomb = gzip.compress(b" " * (100 * 2**20), 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (await door.post(bomb, Content_Encoding="gzip"))[0] == 415
    assert (await door.post(bomb))[0] == 400
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


async def _answer_to(door: Door, *parts: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(door.host, door.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


async def test_slow_senders_are_cut_off(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    head = (
        b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-Hub-Signature-256: sha256=x\r\nContent-Length: 100\r\n\r\n"
    )
    said = await _answer_to(door, head, b"{")
    assert said.startswith(b"HTTP/1.1 408")
    _only_line(caplog)
    assert await _answer_to(door, b"POST /webhook HTTP/1.1\r\nHost:") == b""
    assert await _answer_to(door, b"") == b""


async def test_headers_and_bodies_that_come_drop_by_drop_are_cut_off(door: Door) -> None:
    head = b"POST /webhook HTTP/1.1\r\nHost: x\r\n"
    body = b"Content-Type: application/json\r\nX-Hub-Signature-256: x\r\nContent-Length: 99\r\n\r\n"
    for begin, drop in ((head, b"X: y\r\n"), (head + body, b" ")):
        reader, writer = await asyncio.open_connection(door.host, door.port)
        writer.write(begin)
        ended = asyncio.create_task(reader.read())
        async with asyncio.timeout(3):
            while not ended.done():
                writer.write(drop)
                await asyncio.sleep(0.05)
        # Whoever still sends may be cut off in the middle of the answer.
        said = b"" if isinstance(ended.exception(), ConnectionError) else await ended
        assert not said or said.startswith(b"HTTP/1.1 408")
        writer.close()


async def test_what_is_not_even_http_is_refused_and_not_repeated_in_the_log(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for noise in (b"It breaks\r\n\r\n", b"POST /webhook HTTP/1.1\r\nIt breaks " + b"x" * 9000):
        said = await _answer_to(door, noise + b"\r\n\r\n")
        assert said.startswith(b"HTTP/1.0 400") or said.startswith(b"HTTP/1.1 400")
    assert "is no HTTP" in _only_line(caplog)


async def test_more_than_the_door_can_take_at_once_is_told_to_come_back(
    door: Door, notes: Notes
) -> None:
    gate = asyncio.Event()
    notes.gate = gate
    waiting = [asyncio.create_task(door.post()) for _ in range(20)]
    while len(notes.hints) < 20:
        await asyncio.sleep(0.01)
    assert (await door.post())[0] == 429
    gate.set()
    assert {status for status, _ in await asyncio.gather(*waiting)} == {202}


async def test_slow_senders_that_prove_nothing_take_nobodys_place(door: Door) -> None:
    head = (
        b"POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"X-Hub-Signature-256: sha256=x\r\nContent-Length: 100\r\n\r\n{"
    )
    slow = [await asyncio.open_connection(door.host, door.port) for _ in range(25)]
    try:
        for _, writer in slow:
            writer.write(head)
        assert (await door.post())[0] == 202
        said = await asyncio.gather(*(reader.read() for reader, _ in slow))
        assert all(each.startswith(b"HTTP/1.1 408") for each in said)
    finally:
        for _, writer in slow:
            writer.close()


async def test_what_takes_too_long_is_given_up_while_github_still_listens(
    door: Door, notes: Notes
) -> None:
    notes.gate = asyncio.Event()
    status, said = await door.post()
    assert (status, said["error"]) == (503, "not done within 2 s")


async def test_kubernetes_down_makes_the_delivery_fail_so_that_it_can_be_sent_again(
    door: Door, notes: Notes
) -> None:
    notes.error = Unavailable("the API server cannot be reached")
    status, said = await door.post()
    assert (status, said["error"]) == (503, "the API server cannot be reached")
    notes.error, notes.ready = None, False
    assert (await door.post())[0] == 503


async def test_ping_and_what_nobody_needs_are_acknowledged(door: Door, notes: Notes) -> None:
    # R116
    assert await door.post(b'{"zen":"x"}', X_GitHub_Event="ping") == (200, {"ignored": "pong"})
    status, said = await door.post(b"{}", X_GitHub_Event="check_run")
    assert (status, said) == (200, {"ignored": "check_run events need nothing"})
    assert (await door.post(DEEP, X_GitHub_Event="push"))[0] == 200, "it is not even parsed"
    pinned = json.dumps({**opened(), "action": "pinned"}).encode()
    assert (await door.post(pinned))[0] == 200
    assert notes.hints == []


async def test_probes_and_numbers_are_served(door: Door) -> None:
    # R113
    await door.post()
    await door.post(X_GitHub_Event="made-up")
    await door.post(X_Hub_Signature_256="sha256=x", X_GitHub_Event="forged")
    async with door.session.get(door.url + "/metrics") as answer:
        text = await answer.text()
    assert 'deliveries_total{event="issues",result="created",status="202"} 1.0' in text
    assert 'deliveries_total{event="other",result="refused",status="401"} 1.0' in text
    assert "made-up" not in text
    assert "forged" not in text
    for path, wanted in (("/healthz", 200), ("/readyz", 200)):
        async with door.session.get(door.url + path) as answer:
            assert answer.status == wanted
    door.server.leave()
    async with door.session.get(door.url + "/readyz") as answer:
        assert answer.status == 503
    assert (await door.post())[0] == 202, "whoever still comes is served"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/webhook", 405),
        ("POST", "/readyz", 405),
        ("HEAD", "/healthz", 200),
        ("GET", "/metrics", 200),
        ("POST", "/webhook/", 404),
        ("GET", "/", 404),
    ],
)
async def test_only_what_is_served_is_served(
    door: Door, method: str, path: str, status: int
) -> None:
    url = f"http://{door.host}:{door.port}{path}"
    async with door.session.request(method, url) as answer:
        assert answer.status == status
        assert ("Allow" in answer.headers) is (status == 405)
