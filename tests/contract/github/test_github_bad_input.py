"""Malformed requests get GitHub's kind of answer; nothing ever shows a traceback."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest
from github_judge import Api

from issuesandbox.local.github.server import GitHubSimulator

_BROKEN_JSON: list[Any] = [b"{", b"nonsense", b"\xff\xfe", b'{"title": "\xff"}', b"[" * 100_000]


async def test_broken_json(root: Api, subtests: pytest.Subtests, repo: str) -> None:
    for data in _BROKEN_JSON:
        with subtests.test(case=str(data)[:80]):
            for method, path in (("POST", "issues"), ("POST", "pulls"), ("POST", "git/refs")):
                reply = await root.reply(method, f"/repos/{repo}/{path}", data=data)
                assert (reply.status, reply.json["message"]) == (400, "Problems parsing JSON")


_JSON_THAT_IS_NO_OBJECT: list[Any] = [[], "text", 5, True]


async def test_json_that_is_no_object(root: Api, subtests: pytest.Subtests, repo: str) -> None:
    for body in _JSON_THAT_IS_NO_OBJECT:
        with subtests.test(case=str(body)[:80]):
            refused = await root.post(f"/repos/{repo}/issues", body, status=400)
            assert refused["message"] == "Body should be a JSON object"


_FIELDS_THAT_DO_NOT_FIT: list[Any] = [
    {},
    {"title": ""},
    {"title": None},
    {"title": 5},
    {"title": "x", "body": []},
    {"title": "x", "labels": "agent"},
    {"title": "x", "labels": [5]},
    {"title": "x", "labels": [""]},
    {"title": "x", "assignees": ["ghost"]},
    {"title": "x", "body": "y" * 65_537},
]


async def test_fields_that_do_not_fit(root: Api, subtests: pytest.Subtests, repo: str) -> None:
    for body in _FIELDS_THAT_DO_NOT_FIT:
        with subtests.test(case=str(body)[:80]):
            refused = await root.post(f"/repos/{repo}/issues", body, status=422)
            assert refused["message"]
            assert refused["documentation_url"]
            assert await root.get(f"/repos/{repo}/issues") == []


async def test_any_text_is_kept_as_it_is(root: Api, repo: str) -> None:
    text = "; rm -rf / $(x) `y` --flag \u0000 \u202e 🚀 <!-- x --> @all\r\n"
    made = await root.post(f"/repos/{repo}/issues", {"title": text, "body": text})
    shown = await root.get(f"/repos/{repo}/issues/{made['number']}")
    assert (shown["title"], shown["body"]) == (text, text)


_ADDRESSES_THAT_LEAD_NOWHERE: list[Any] = [
    ("GET", "/nowhere", 404),
    ("GET", "/repos/acme", 404),
    ("GET", "/repos/acme/missing", 404),
    ("GET", "/repos/acme/app/issues/abc", 404),
    ("GET", "/repos/acme/app/issues/999999999999999999999", 404),
    ("GET", "/repos/acme/app/issues/comments/7", 404),
    ("GET", "/repositories/7/issues", 404),
    ("PUT", "/repos/acme/app/issues", 404),
    ("GET", "/repos/acme/app/branches/a%00b", 404),
    ("GET", "/repos/acme/app/commits/--all", 422),
    ("GET", "/users/nobody", 404),
    ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
]


async def test_addresses_that_lead_nowhere(root: Api, subtests: pytest.Subtests, repo: str) -> None:
    for method, path, status in _ADDRESSES_THAT_LEAD_NOWHERE:
        with subtests.test(case=str((method, path, status))[:80]):
            refused = await root.call(method, path, status=status)
            assert refused["status"] == str(status)


async def test_a_body_too_large_is_refused(root: Api, repo: str) -> None:
    large = io.BytesIO(b" " * (11 * 2**20))
    url = f"{root.base}/repos/{repo}/issues"
    async with root.session.post(url, data=large, headers=root.headers) as response:
        assert response.status == 413


async def test_a_request_without_user_agent_is_forbidden(sim: GitHubSimulator) -> None:
    host, _, port = sim.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /rate_limit HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert b"403" in answer.splitlines()[0]
    assert b"User-Agent" in answer


_THE_ADMIN_API_REFUSES_IN_ONE_LINE: list[Any] = [
    ("POST", "/repos", {"repository": "noslash"}),
    ("POST", "/repos", {"repository": "acme/../x"}),
    ("POST", "/repos", {"repository": "acme/x y"}),
    ("POST", "/repos", {"repository": "acme/app"}),
    ("POST", "/repos", {"repository": "acme/b", "default_branch": "a b"}),
    ("POST", "/repos", {"repository": "acme/c", "files": {"x": {"base64": "!"}}}),
    ("POST", "/repos", {"repository": "acme/d", "typo": 1}),
    ("PUT", "/users/bad%20login", {}),
    ("PUT", "/users/mia", {"association": "FRIEND"}),
    ("POST", "/repos/acme/app/issues", {"title": ""}),
    ("POST", "/repos/acme/app/push", {"branch": "x y", "files": {"a": "1"}}),
    ("POST", "/repos/acme/app/push", {"branch": "x", "files": {"a\u0000b": "1"}}),
    ("PUT", "/repos/acme/app/protection/a%00b", {}),
    ("POST", "/faults", {"kind": "fire"}),
    ("POST", "/faults", {"kind": "status", "status": 200}),
    ("POST", "/webhooks/rules", {"kind": "lose", "count": 0}),
    ("POST", "/tokens", {}),
    ("POST", "/tokens/expire", {}),
    ("GET", "/journal?since=x", None),
]


async def test_the_admin_api_refuses_in_one_line(
    admin: Api, subtests: pytest.Subtests, repo: str
) -> None:
    for method, path, body in _THE_ADMIN_API_REFUSES_IN_ONE_LINE:
        with subtests.test(case=str((method, path, body))[:80]):
            refused = await admin.call(method, path, body, status=422)
            assert refused["message"]
            assert "\n" not in refused["message"]


_THE_ADMIN_API_NAMES_WHAT_IS_MISSING: list[Any] = [
    ("POST", "/repos/acme/missing/issues"),
    ("POST", "/repos/acme/app/issues/7/close"),
    ("DELETE", "/repos/acme/app/comments/7"),
    ("DELETE", "/installations/7"),
    ("GET", "/nowhere"),
]


async def test_the_admin_api_names_what_is_missing(
    admin: Api, subtests: pytest.Subtests, repo: str
) -> None:
    for method, path in _THE_ADMIN_API_NAMES_WHAT_IS_MISSING:
        with subtests.test(case=str((method, path))[:80]):
            body = {"title": "x"} if path.endswith("issues") else {}
            assert (await admin.call(method, path, body or None, status=404))["message"]
