"""Real git over HTTP: authenticates the caller, then lets `git http-backend` do the talking.

Bodies stream through in both directions. Once it has arrived, a push goes on when the client hangs
up, as at any real host, and what it moved is known from git's own hooks. Knows nothing of REST.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from aiohttp import web

from issuesandbox.local.github import receive_hook
from issuesandbox.local.github.access import Caller, Need, acting
from issuesandbox.local.github.acts_repositories import RefUpdate, ref_moved
from issuesandbox.local.github.gate import Exchange, Gate
from issuesandbox.local.github.journal import note_effect
from issuesandbox.local.github.model import Repository

_READ, _WRITE = Need("contents"), Need("contents", write=True)
_SERVICES = {"git-upload-pack": _READ, "git-receive-pack": _WRITE}
_CHUNK = 64 * 1024
_APP_REASON = (
    "refusing to allow a GitHub App to create or update workflow `{workflow}` "
    "without `workflows` permission"
)
_USER_REASON = (
    "refusing to allow a Personal Access Token to create or update workflow `{workflow}` "
    "without `workflow` scope"
)


def _refusal(status: int, text: str) -> web.Response:
    """Refuse in plain text, which git shows to its user as `remote: …`."""
    headers = {"WWW-Authenticate": 'Basic realm="GitHub"'} if status == 401 else {}
    return web.Response(status=status, text=text + "\n", headers=headers)


def _workflow_reason(caller: Caller) -> str:
    """Return the words that refuse a changed workflow file, or nothing where it is allowed."""
    granted = caller.token.permissions if caller.token else None
    if granted is None or granted.get("workflows") == "write":
        return ""
    return _APP_REASON if caller.installation is not None else _USER_REASON


class GitHttp:
    """The smart HTTP protocol for all repositories."""

    def __init__(self, gate: Gate) -> None:
        self._world = gate.world
        self._children: set[asyncio.subprocess.Process] = set()
        self._gate = gate

    def add_routes(self, app: web.Application) -> None:
        """Serve `/{owner}/{repo}.git`; GitHub takes the address without `.git` as well."""
        base = "/{owner}/{repo}"
        advertise = self._gate.handler("smart-http/advertise", self._advertise)
        app.router.add_get(f"{base}/info/refs", advertise)
        for service in _SERVICES:
            operation = f"smart-http/{service.removeprefix('git-')}"
            app.router.add_post(f"{base}/{service}", self._gate.handler(operation, self._talk))

    def close(self) -> None:
        """End the children that are still at work."""
        for child in self._children:
            _kill(child)

    async def _advertise(self, exchange: Exchange) -> web.StreamResponse:
        service = exchange.request.query.get("service", "")
        if service not in _SERVICES:
            return _refusal(403, "Please upgrade your git client.")
        return await self._admitted(exchange, service)

    async def _talk(self, exchange: Exchange) -> web.StreamResponse:
        return await self._admitted(exchange, exchange.request.path.rsplit("/", 1)[-1])

    async def _admitted(self, exchange: Exchange, service: str) -> web.StreamResponse:
        names = exchange.request.match_info
        repository = self._world.store.repository(
            names["owner"], names["repo"].removesuffix(".git")
        )
        denied = self._denied(exchange, repository, service)
        if denied is not None:
            return denied
        assert repository is not None
        if exchange.request.method == "GET":
            return await self._run(exchange, f"/{repository.id}.git/info/refs", {})
        path = f"/{repository.id}.git/{service}"
        if service == "git-upload-pack":
            return await self._run(exchange, path, {})
        return await self._receive(exchange, repository, path)

    def _denied(
        self, exchange: Exchange, repository: Repository | None, service: str
    ) -> web.Response | None:
        caller, access = exchange.caller, self._world.access
        if exchange.refusal is not None or caller.is_app:
            return _refusal(
                401,
                "Invalid username or token. "
                "Password authentication is not supported for Git operations.",
            )
        visible = repository is not None and access.sees(caller, repository)
        if caller.is_anonymous and (not visible or service == "git-receive-pack"):
            return _refusal(401, "No anonymous access.")
        if repository is None or not visible:
            return _refusal(404, "Repository not found.")
        if access.may(caller, repository, _SERVICES[service], pull=False):
            return None
        if caller.installation is not None or (caller.token and caller.token.permissions):
            verb = "Write" if service == "git-receive-pack" else "Read"
            return _refusal(403, f"{verb} access to repository not granted.")
        login = caller.account.login if caller.account else "nobody"
        full_name = self._world.store.full_name(repository)
        return _refusal(403, f"Permission to {full_name}.git denied to {login}.")

    async def _receive(
        self, exchange: Exchange, repository: Repository, path: str
    ) -> web.StreamResponse:
        with tempfile.TemporaryDirectory(dir=self._world.store.folder.path) as folder:
            accepted, refused = Path(folder, "accepted"), Path(folder, "refused")
            protected = "\n".join(f"refs/heads/{branch}" for branch in repository.protected)
            response = await self._run(
                exchange,
                path,
                {
                    receive_hook.ACCEPTED: str(accepted),
                    receive_hook.REFUSED: str(refused),
                    receive_hook.PROTECTED: protected,
                    receive_hook.WORKFLOW_REASON: _workflow_reason(exchange.caller),
                },
            )
            for line in _lines(accepted):
                old, new, ref = line.split(" ", 2)
                update = RefUpdate(ref, old, new, "git")
                await ref_moved(self._world, acting(exchange.caller), repository, update)
            for line in _lines(refused):
                ref, _, reason = line.partition(" ")
                full_name = self._world.store.full_name(repository)
                note_effect("push.refused", repository=full_name, ref=ref, reason=reason)
        return response

    async def _run(
        self, exchange: Exchange, path: str, extra: Mapping[str, str]
    ) -> web.StreamResponse:
        request = exchange.request
        environment = self._world.git.environment(
            GIT_PROJECT_ROOT=str(self._world.git.root),
            GIT_HTTP_EXPORT_ALL="1",
            PATH_INFO=path,
            REQUEST_METHOD=request.method,
            QUERY_STRING=request.rel_url.raw_query_string,
            CONTENT_TYPE=request.headers.get("Content-Type", ""),
            GIT_PROTOCOL=request.headers.get("Git-Protocol", ""),
            REMOTE_USER=exchange.caller.account.login if exchange.caller.account else "",
            REMOTE_ADDR=request.remote or "",
            **extra,
        )
        async with self._backend(environment) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            feeding = asyncio.ensure_future(_feed(request, child.stdin))
            try:
                response = await _head(child.stdout)
                await _pass_on(child.stdout, response, request, mute=exchange.is_answer_lost)
                await child.wait()
            finally:
                feeding.cancel()
                with suppress(asyncio.CancelledError):
                    await feeding
        return response

    @asynccontextmanager
    async def _backend(
        self, environment: Mapping[str, str]
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        child = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        self._children.add(child)
        try:
            yield child
        finally:
            if child.returncode is None:
                _kill(child)
                await child.wait()
            self._children.discard(child)


def _kill(child: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").splitlines() if file.exists() else []


async def _feed(request: web.Request, stdin: asyncio.StreamWriter) -> None:
    """Hand the request's body (already unzipped by the server) to git."""
    try:
        async for chunk in request.content.iter_any():
            stdin.write(chunk)
            await stdin.drain()
    except (aiohttp.ClientError, web.RequestPayloadError, ConnectionError):
        # Half a push: git sees the end of its input and moves nothing.
        pass
    finally:
        stdin.close()


async def _head(stdout: asyncio.StreamReader) -> web.StreamResponse:
    """Read the CGI headers."""
    response = web.StreamResponse()
    while line := (await stdout.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        if name.lower() == "status":
            response.set_status(int(value.split()[0]))
        else:
            response.headers[name] = value.strip()
    if not response.headers:
        response.set_status(500)
    return response


async def _pass_on(
    stdout: asyncio.StreamReader, response: web.StreamResponse, request: web.Request, *, mute: bool
) -> None:
    """Send git's answer on, and read it to the end even when nobody listens."""
    listening = not mute
    if listening:
        listening = await _heard(response.prepare(request))
    while chunk := await stdout.read(_CHUNK):
        if listening:
            listening = await _heard(response.write(chunk))


async def _heard(sending: Awaitable[object]) -> bool:
    try:
        await sending
    except ConnectionError:
        return False
    return True
