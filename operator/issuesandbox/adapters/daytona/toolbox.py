"""The inside of a sandbox behind the `Toolbox` port: Daytona's toolbox, on the wire.

The toolbox is reached through a proxy that Daytona's rate limits do not count; only the look-up
of its address goes through the gate. Reads no more of an answer than it must, never retries,
and never waits without a limit.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from http import HTTPStatus
from io import BytesIO
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from issuesandbox.adapters.daytona.addresses import ToolboxAddresses
from issuesandbox.adapters.daytona.failures import failure, toolbox_failure
from issuesandbox.adapters.daytona.metering import Meter, metered, unmetered
from issuesandbox.adapters.daytona.rate_limits import Gate, rate_limited
from issuesandbox.domain.redaction import Redactor
from issuesandbox.domain.timings import Timings
from issuesandbox.ports.errors import Invalid, Unavailable
from issuesandbox.ports.toolbox import Clone, Executed

_LARGEST_ANSWER = 32 << 20
# Commands of ours print less, whatever an agent does beside them.
_LARGEST_OUTPUT = 2 << 20
# How much longer than the command itself its answer may take.
_MARGIN = 5.0
# Daytona runs commands in zsh where it finds one, and zsh runs a file that an agent can write.
_PLAIN_SHELL = {"ZDOTDIR": "/dev/null"}
T = TypeVar("T")


class _Home(msgspec.Struct):
    dir: str


class _Result(msgspec.Struct, rename="camel"):
    exit_code: int
    result: str = ""


class DaytonaToolbox:
    """Every call bounded in time and size, every failure one of the seven kinds."""

    def __init__(
        self,
        api_url: str,
        api_key: str,
        timings: Timings,
        gate: Gate | None = None,
        meter: Meter = unmetered,
    ) -> None:
        self._api_url = api_url.rstrip("/")
        self._timings = timings
        self._meter = meter
        self.use_key(api_key)
        self._gate = (rate_limited(gate),) if gate is not None else ()
        self.addresses = ToolboxAddresses()
        # Long polls hold a connection each, so their number must not be limited here.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "issuesandbox"},
            timeout=aiohttp.ClientTimeout(total=None),
            trust_env=True,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def use_key(self, api_key: str) -> None:
        """Make every further call with another key."""
        self._headers = {"Authorization": f"Bearer {api_key}"}

    async def home(self, sandbox_id: str) -> str:
        """Return the absolute home directory; the cheapest sign that the toolbox answers."""
        limit = self._timings.read_timeout.total_seconds()
        body = await self._send(sandbox_id, "GET", "user-home-dir", limit=limit)
        home = _decode(body, _Home).dir
        if not home.startswith("/"):
            raise Unavailable("the toolbox told a home directory that is no absolute path")
        return home

    async def execute(
        self,
        sandbox_id: str,
        command: str,
        *,
        seconds: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> Executed:
        """Run a shell command to its end; `env` is of this command alone."""
        order: dict[str, Any] = {
            "command": command,
            "envs": {**_PLAIN_SHELL, **(env or {})},
            "timeout": math.ceil(seconds),
        }
        if cwd is not None:
            order["cwd"] = cwd
        body = await self._send(
            sandbox_id,
            "POST",
            "process/execute",
            limit=math.ceil(seconds) + _MARGIN,
            largest=_LARGEST_OUTPUT,
            json=order,
        )
        told = _decode(body, _Result)
        return Executed(told.exit_code, told.result)

    async def upload(self, sandbox_id: str, files: Mapping[str, bytes]) -> None:
        """Write files at absolute paths, folders included."""
        form = aiohttp.FormData(default_to_multipart=True)
        for index, (path, content) in enumerate(files.items()):
            # The toolbox wants the path of a file before its content.
            form.add_field(f"files[{index}].path", path)
            name = path.rpartition("/")[2]
            form.add_field(f"files[{index}].file", BytesIO(content), filename=name)
        limit = self._timings.change_timeout.total_seconds()
        await self._send(sandbox_id, "POST", "files/bulk-upload", limit=limit, data=form)

    async def download(self, sandbox_id: str, path: str, *, limit: int) -> bytes:
        """Return a file's bytes; more than `limit` is `Invalid`, a missing file `NotFound`."""
        return await self._send(
            sandbox_id,
            "GET",
            "files/download",
            limit=self._timings.change_timeout.total_seconds(),
            largest=limit,
            params={"path": path},
        )

    async def clone(self, sandbox_id: str, clone: Clone, *, seconds: float) -> None:
        """Clone one branch; `NotFound` no such repository or branch, `Conflict` path is taken."""
        order = {
            "url": clone.url,
            "path": clone.path,
            "branch": clone.branch,
            "commit_id": clone.commit,
            "username": clone.username,
            "password": clone.password,
        }
        await self._send(
            sandbox_id,
            "POST",
            "git/clone",
            limit=seconds,
            json={name: value for name, value in order.items() if value is not None},
            redactor=Redactor([clone.password or ""]),
        )

    async def _send(self, sandbox_id: str, method: str, path: str, **request: Any) -> bytes:
        with metered(self._meter, "toolbox"):
            return await self._sent(sandbox_id, method, path, **request)

    async def _sent(
        self,
        sandbox_id: str,
        method: str,
        path: str,
        *,
        limit: float,
        largest: int = _LARGEST_ANSWER,
        redactor: Redactor | None = None,
        **request: Any,
    ) -> bytes:
        """Send one call and return its answer; `limit` bounds everything it needs."""
        call = f"{method} {path} of sandbox {sandbox_id}"
        try:
            async with asyncio.timeout(limit):
                base = await self._address(sandbox_id)
                url = f"{base}/{quote(sandbox_id, safe='')}/{path}"
                # A redirect could carry the key elsewhere.
                async with self._session.request(
                    method, url, allow_redirects=False, headers=self._headers, **request
                ) as response:
                    body = await _read(response, largest, call)
        except TimeoutError as error:
            raise Unavailable(
                f"The toolbox gave no answer to {call} within {limit:g} s", code="NoAnswer"
            ) from error
        except aiohttp.ClientError as error:
            # The sandbox may have moved to another proxy.
            self.addresses.forget(sandbox_id)
            raise Unavailable(f"The toolbox cannot be reached for {call}: {error}") from error
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            hide, text = redactor or Redactor(), body.decode("utf-8", "replace")
            raise toolbox_failure(call, response.status, hide.redact(text).encode())
        return body

    async def _address(self, sandbox_id: str) -> str:
        known = self.addresses.get(sandbox_id)
        if known is not None:
            return known
        call = f"GET sandbox {sandbox_id}"
        url = f"{self._api_url}/sandbox/{quote(sandbox_id, safe='')}"
        async with self._session.get(
            url, allow_redirects=False, headers=self._headers, middlewares=self._gate
        ) as response:
            body = await _read(response, _LARGEST_ANSWER, call)
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise failure(call, response.status, body, dict(response.headers))
        self.addresses.learn(body)
        address = self.addresses.get(sandbox_id)
        if address is None:
            raise Unavailable(f"Daytona tells no toolbox address for sandbox {sandbox_id}")
        return address


async def _read(response: aiohttp.ClientResponse, largest: int, call: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    if response.status >= HTTPStatus.MULTIPLE_CHOICES:
        largest = _LARGEST_ANSWER
    async for part in response.content.iter_any():
        size += len(part)
        if size > largest:
            raise Invalid(f"The answer to {call} is larger than {largest} bytes", code="TooLarge")
        parts.append(part)
    return b"".join(parts)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"The toolbox sent an answer that cannot be read: {error}") from error
