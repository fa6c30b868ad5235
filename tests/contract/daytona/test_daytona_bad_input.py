"""Malformed requests get the service's kind of answer, never a traceback."""

from __future__ import annotations

import io
import logging
from typing import Any

import aiohttp
import pytest
from daytona import AsyncSandbox
from daytona_admin import ORGANIZATION, Admin
from daytona_toolbox_api_client_async import ErrorResponse

from issuesandbox.local.daytona.server import Simulator

ENVELOPE = {"path", "timestamp", "statusCode", "error", "message"}


async def refused(
    session: aiohttp.ClientSession, method: str, url: str, **body: Any
) -> tuple[int, dict[str, Any]]:
    async with session.request(method, url, **body) as response:
        return response.status, await response.json()


@pytest.fixture(autouse=True)
def _no_traceback(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"{", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b'{"name": 1}', "name must be a string"),
        (b'{"name": "<b>x</b>"}', "name must not contain"),
        (b'{"name": "see http://x"}', "name must not contain"),
        (b'{"name": "a\\u0000b"}', "name must not contain"),
        (b'{"labels": []}', "labels must be an object"),
        (b'{"labels": {"a": 1}}', "each value in labels must be a string"),
        (b'{"env": {"a": null}}', "each value in env must be a string"),
        (b'{"autoStopInterval": "15"}', "autoStopInterval must be an integer"),
        (b'{"autoStopInterval": true}', "autoStopInterval must be an integer"),
        (b'{"cpu": 1.5}', "cpu must be an integer"),
        (b'{"name": 1, "public": 2}', "name must be a string, public must be a boolean"),
        (b'{"autoPauseInterval": 5}', "Auto-pause is not supported"),
        (b'{"cpu": 2}', "Cannot specify Sandbox resources when using a snapshot"),
        (b'{"snapshot": "nope"}', "Snapshot nope not found. Did you add it"),
        (b'{"buildInfo": "x"}', "buildInfo must be an object"),
        (b'{"buildInfo": {"dockerfileContent": "x"}, "snapshot": "s"}', "both"),
    ],
)
async def test_a_bad_create_is_refused(
    simulator: Simulator, http: aiohttp.ClientSession, admin: Admin, body: bytes, complaint: str
) -> None:
    status, answer = await refused(http, "POST", f"{simulator.url}/sandbox", data=body)
    assert status == 400
    assert set(answer) == ENVELOPE
    assert complaint in answer["message"]
    assert (answer["path"], answer["error"]) == ("/api/sandbox", "Bad Request")
    assert await admin.rows() == []


async def test_unknown_fields_are_ignored(
    simulator: Simulator, http: aiohttp.ClientSession
) -> None:
    url = f"{simulator.url}/sandbox"
    async with http.post(url, json={"name": "a", "novelty": {"x": 1}}) as response:
        assert response.status == 200


async def test_a_region_that_does_not_exist_is_not_found(
    simulator: Simulator, http: aiohttp.ClientSession
) -> None:
    status, _ = await refused(http, "POST", f"{simulator.url}/sandbox", json={"target": "moon"})
    assert status == 404


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (("POST", "/autostop/soon", None), 400),
        (("POST", "/autostop/-1", None), 400),
        (("POST", "/autodelete/-2", None), 400),
        (("POST", "/autopause/5", None), 400),
        (("POST", "/ttl/-1", None), 400),
        (("PUT", "/labels", b"{}"), 400),
        (("PUT", "/labels", b'{"labels": "x"}'), 400),
        (("PUT", "/labels", b"["), 400),
        (("GET", "/no-such-thing", None), 404),
        (("PATCH", "", None), 404),
        (("GET", "/build-logs", None), 404),
    ],
)
async def test_a_bad_call_about_a_sandbox_is_refused(
    simulator: Simulator,
    http: aiohttp.ClientSession,
    admin: Admin,
    call: tuple[str, str, bytes | None],
    status: int,
) -> None:
    await admin.plant(name="a")
    method, path, body = call
    found, answer = await refused(http, method, f"{simulator.url}/sandbox/a{path}", data=body)
    assert found == status
    assert set(answer) == ENVELOPE


@pytest.mark.parametrize("path", ["/", "/api", "/api/nothing", "/elsewhere"])
async def test_a_path_that_does_not_exist_is_not_found(
    simulator: Simulator, http: aiohttp.ClientSession, path: str
) -> None:
    status, answer = await refused(http, "GET", f"{simulator.base_url}{path}")
    assert (status, answer["message"]) == (404, f"Cannot GET {path}")


async def test_a_body_that_is_too_large_is_refused(
    simulator: Simulator, http: aiohttp.ClientSession
) -> None:
    huge = io.BytesIO(bytes(65 << 20))
    status, answer = await refused(http, "POST", f"{simulator.url}/sandbox", data=huge)
    assert (status, set(answer)) == (413, ENVELOPE)


@pytest.mark.parametrize("header", [{}, {"Authorization": "Basic eA=="}, {"Authorization": "x"}])
async def test_without_a_key_nothing_is_answered(
    simulator: Simulator, header: dict[str, str]
) -> None:
    async with aiohttp.ClientSession(headers=header) as session:
        status, answer = await refused(session, "GET", f"{simulator.url}/sandbox")
    assert (status, answer["message"]) == (401, "Invalid credentials")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/process/execute", b"{", 400),
        ("POST", "/process/execute", b"{}", 400),
        ("POST", "/process/execute", b'{"command": 1}', 400),
        ("POST", "/process/execute", b'{"command": "x", "envs": {"a": 1}}', 400),
        ("POST", "/process/execute", b'{"command": "x", "timeout": "1"}', 400),
        ("POST", "/process/code-run", b'{"code": "x", "language": "cobol"}', 400),
        ("POST", "/process/session", b"{}", 400),
        ("GET", "/process/session/nope", None, 404),
        ("POST", "/process/session/nope/exec", b'{"command": "x"}', 404),
        ("GET", "/process/session/nope/command/x/logs", None, 404),
        ("POST", "/files/bulk-upload", b"{}", 400),
        ("POST", "/files/bulk-download", b'{"paths": []}', 400),
        ("POST", "/files/bulk-download", b'{"paths": [1]}', 400),
        ("GET", "/files/info", None, 400),
        ("GET", "/files/info?path=a%00b", None, 400),
        ("GET", "/files?depth=deep", None, 400),
        ("GET", "/files/download?path=.", None, 400),
        ("POST", "/files/folder?path=x&mode=999", None, 400),
        ("DELETE", "/files?path=nope", None, 404),
        ("DELETE", "/files?path=..", None, 403),
        ("POST", "/git/clone", b'{"url": "x"}', 400),
        ("GET", "/git/status?path=nope", None, 404),
        ("GET", "/nothing", None, 404),
    ],
)
async def test_a_bad_toolbox_call_is_refused_in_the_daemons_envelope(
    sandbox: AsyncSandbox,
    http: aiohttp.ClientSession,
    method: str,
    path: str,
    body: bytes | None,
    status: int,
) -> None:
    url = f"{sandbox.toolbox_proxy_url}/{sandbox.id}{path}"
    found, answer = await refused(http, method, url, data=body)
    assert found == status
    parsed = ErrorResponse.from_dict(answer)
    assert parsed is not None
    assert parsed.status_code == status
    assert parsed.code != "unknown_default_open_api"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/sandboxes", {"organization": ORGANIZATION, "state": "asleep"}),
        ("/sandboxes", {"name": "no organisation"}),
        ("/sandboxes", {"organization": ORGANIZATION, "typo": 1}),
        ("/advance", {"seconds": "ten"}),
        ("/sandboxes/missing/stop", {}),
    ],
)
async def test_a_bad_call_of_the_administrator_is_refused(
    admin: Admin, http: aiohttp.ClientSession, path: str, body: dict[str, Any]
) -> None:
    status, answer = await refused(http, "POST", f"{admin.url}{path}", json=body)
    assert status in (400, 404)
    assert answer["message"]
