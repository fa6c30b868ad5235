"""What the simulator is judged with: clients, a receiver of webhooks and GitHub's own models."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import unquote, urlsplit

import aiohttp
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from github_models import EMPTY, LOOSE, MODELS, REFUSAL, operation
from pydantic import TypeAdapter

from issuesandbox.clock import SystemClock

ADMIN_TOKEN = "ghp_administrator"
SECRET = "the webhook secret"
# The API's version of 2022 still answers the first three; the fourth is required in webhooks
# and unknown in the description of the same object in REST answers.
ALSO_ANSWERED = {"assignee", "merge_commit_sha", "rate", "archived_at"}


class JumpingClock(SystemClock):
    """The real clock, with jumps."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    json: Any


class Api:
    """A client with one identity."""

    def __init__(self, session: aiohttp.ClientSession, base: str, authorization: str = "") -> None:
        self.session, self.base = session, base
        self.headers = {"Authorization": authorization} if authorization else {}

    async def reply(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        url = path if path.startswith("http") else self.base + path
        async with self.session.request(
            method,
            url,
            json=body,
            data=data,
            headers={**self.headers, **(headers or {})},
            allow_redirects=False,
        ) as response:
            text = await response.text()
            lower = {name.lower(): value for name, value in response.headers.items()}
            reply = Reply(response.status, lower, json.loads(text) if text else None)
        self.judge(method, url, reply)
        return reply

    def judge(self, method: str, url: str, reply: Reply) -> None:
        """Read an answer of GitHub's own calls as its clients would."""
        name = operation(method, unquote(urlsplit(url).path))
        if name is None or not url.startswith(f"{self.base}/") or reply.status == 304:
            return
        if reply.status >= 300:
            # GitHub also says the status, which the model for refused fields leaves out.
            told = {key: value for key, value in reply.json.items() if key != "status"}
            assert reply.json.get("status", str(reply.status)) == str(reply.status)
            strictly(REFUSAL, told)
        elif MODELS[name] is EMPTY:
            assert reply.json is None, name
        elif MODELS[name] is not LOOSE:
            strictly(MODELS[name], reply.json)

    async def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        reply = await self.reply(method, path, body)
        assert reply.status == status, reply
        return reply.json

    async def get(self, path: str, *, status: int = 200) -> Any:
        return await self.call("GET", path, status=status)

    async def post(self, path: str, body: Any = None, *, status: int = 201) -> Any:
        return await self.call("POST", path, body, status=status)


@dataclass
class Delivered:
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def kind(self) -> str:
        action = self.json.get("action")
        event = self.headers["X-GitHub-Event"]
        return f"{event}.{action}" if action else event


@dataclass
class Receiver:
    """Takes webhooks and answers as told."""

    url: str = ""
    status: int = 202
    got: list[Delivered] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [delivered.kind for delivered in self.got]


@dataclass
class GitRun:
    code: int
    output: str


@cache
def _loaded(private_key: str) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(private_key.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def assertion(app_id: int, private_key: str, **changes: Any) -> str:
    """Sign what an App says about itself, as a client of GitHub must."""
    now = int(datetime.now(UTC).timestamp())  # noqa: TID251 - the client's own clock
    claims = {"iat": now - 30, "exp": now + 540, "iss": str(app_id), **changes}

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    head = encoded(json.dumps({"alg": "RS256", "typ": "JWT"}).encode())
    signed = f"{head}.{encoded(json.dumps(claims).encode())}"
    signature = _loaded(private_key).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{encoded(signature)}"


def _unknown(data: Any, known: Any, path: str = "") -> list[str]:
    if isinstance(data, list):
        pairs = zip(data, known, strict=True)
        return [name for item, other in pairs for name in _unknown(item, other, path + "[]")]
    if not isinstance(data, dict) or not isinstance(known, dict):
        return []
    found = [f"{path}.{name}" for name in data if name not in known | dict.fromkeys(ALSO_ANSWERED)]
    for name in data.keys() & known.keys():
        found += _unknown(data[name], known[name], f"{path}.{name}")
    return found


def strictly(model: Any, data: Any) -> Any:
    """Parse without any conversion, and refuse fields that GitHub does not have."""
    adapter = TypeAdapter(model)
    parsed = adapter.validate_json(json.dumps(data), strict=True)
    known = adapter.dump_python(parsed, mode="json", by_alias=True, exclude_unset=True)
    assert _unknown(data, known) == [], _unknown(data, known)
    return parsed


Mint = Callable[..., Awaitable[Api]]
Git = Callable[..., Awaitable[GitRun]]
Drain = Callable[[], Awaitable[None]]
Remote = Callable[[Api, str], str]
