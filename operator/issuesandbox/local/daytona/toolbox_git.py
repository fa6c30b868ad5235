"""Git in a sandbox: `git/...`."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from issuesandbox.local.daytona.errors import ToolboxError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.git import Credentials, run_git
from issuesandbox.local.daytona.git_status import read_status
from issuesandbox.local.daytona.machine import Machine
from issuesandbox.local.daytona.toolbox_body import optional, query_text, required, strings
from issuesandbox.local.daytona.toolbox_proxy import ToolboxProxy

_SEPARATOR = "\x1f"


class GitCalls:
    """Handlers of the calls that use git."""

    def __init__(self, proxy: ToolboxProxy, gate: Gate) -> None:
        self._proxy = proxy
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        base, wrap = "/toolbox/{reference}/git", self._gate.wrap
        return [
            web.post(f"{base}/clone", wrap("toolbox.git.clone", self._clone)),
            web.get(f"{base}/status", wrap("toolbox.git.status", self._status)),
            web.post(f"{base}/add", wrap("toolbox.git.add", self._add)),
            web.post(f"{base}/commit", wrap("toolbox.git.commit", self._commit)),
            web.post(f"{base}/push", wrap("toolbox.git.push", self._push)),
            web.post(f"{base}/pull", wrap("toolbox.git.pull", self._pull)),
            web.get(f"{base}/branches", wrap("toolbox.git.branches", self._branches)),
            web.post(f"{base}/branches", wrap("toolbox.git.branch", self._branch)),
            web.post(f"{base}/checkout", wrap("toolbox.git.checkout", self._checkout)),
            web.get(f"{base}/history", wrap("toolbox.git.history", self._history)),
        ]

    async def _clone(self, call: Call) -> web.Response:
        body = await call.json()
        url, given = required(body, "url"), required(body, "path")
        commit, depth = _revision(body, "commit_id"), optional(body, "depth", int)
        branch = _revision(body, "branch")
        machine = await self._proxy.machine(call)
        path = machine.path(given)
        if (path / ".git").exists():
            raise ToolboxError(409, f"repository already exists: {given}")
        arguments = ["clone", "--single-branch"]
        arguments += ["--branch", branch] if branch else []
        arguments += ["--depth", str(depth)] if depth else []
        if optional(body, "insecure_skip_tls", bool):
            arguments = ["-c", "http.sslVerify=false", *arguments]
        env = _credentials(body).environment(url)
        await run_git(machine, [*arguments, "--", url, str(path)], env=env)
        if commit:
            await run_git(machine, ["checkout", "--detach", commit, "--"], cwd=path)
        call.effect = "cloned"
        return web.Response(status=200)

    async def _status(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = machine.path(query_text(call.request, "path"))
        text = await run_git(
            machine, ["status", "--porcelain=v2", "--branch", "-z", "-uall"], cwd=path
        )
        return answer(read_status(text))

    async def _add(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        await run_git(machine, ["add", "--", *strings(body, "files")], cwd=path)
        return self._written(call)

    async def _commit(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        author, email = required(body, "author"), required(body, "email")
        arguments = ["commit", "--message", required(body, "message")]
        arguments += ["--allow-empty"] if optional(body, "allow_empty", bool) else []
        identity = ["-c", f"user.name={author}", "-c", f"user.email={email}"]
        await run_git(machine, [*identity, *arguments], cwd=path)
        commit = await run_git(machine, ["rev-parse", "HEAD"], cwd=path)
        self._written(call)
        return answer({"hash": commit.strip()})

    async def _push(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        remote = optional(body, "remote", str) or "origin"
        branch = optional(body, "branch", str) or "HEAD"
        arguments = ["push", *(["-u"] if optional(body, "set_upstream", bool) else [])]
        env = await self._remote_credentials(machine, path, remote, body)
        await run_git(machine, [*arguments, "--", remote, branch], cwd=path, env=env)
        call.effect = "pushed"
        return web.Response(status=200)

    async def _pull(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        remote = optional(body, "remote", str) or "origin"
        branch = optional(body, "branch", str)
        env = await self._remote_credentials(machine, path, remote, body)
        arguments = ["pull", "--ff-only", "--", remote, *([branch] if branch else [])]
        await run_git(machine, arguments, cwd=path, env=env)
        return self._written(call)

    async def _branches(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = machine.path(query_text(call.request, "path"))
        names = await run_git(
            machine, ["for-each-ref", "--format=%(refname:short)", "refs/heads"], cwd=path
        )
        current = await run_git(machine, ["branch", "--show-current"], cwd=path)
        return answer({"branches": names.split(), "current": current.strip()})

    async def _branch(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        await run_git(machine, ["branch", "--", required(body, "name")], cwd=path)
        self._written(call)
        return web.Response(status=201)

    async def _checkout(self, call: Call) -> web.Response:
        body = await call.json()
        machine, path = await self._repository(call, body)
        branch = _revision(body, "branch") or required(body, "branch")
        await run_git(machine, ["checkout", branch, "--"], cwd=path)
        return self._written(call)

    async def _history(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        path = machine.path(query_text(call.request, "path"))
        form = _SEPARATOR.join(("%H", "%an", "%ae", "%aI", "%B"))
        text = await run_git(machine, ["log", "-z", f"--format={form}"], cwd=path)
        names = ("hash", "author", "email", "timestamp", "message")
        entries = [entry.split(_SEPARATOR) for entry in text.split("\0") if entry]
        return answer([dict(zip(names, entry, strict=True)) for entry in entries])

    async def _repository(self, call: Call, body: Any) -> tuple[Machine, Any]:
        given = required(body, "path")
        machine = await self._proxy.machine(call)
        return machine, machine.path(given)

    @staticmethod
    async def _remote_credentials(
        machine: Machine, path: Any, remote: str, body: Any
    ) -> dict[str, str]:
        url = await run_git(machine, ["remote", "get-url", "--", remote], cwd=path)
        return _credentials(body).environment(url.strip())

    @staticmethod
    def _written(call: Call) -> web.Response:
        call.effect = "written"
        return web.Response(status=200)


def _revision(body: Any, name: str) -> str | None:
    value = optional(body, name, str)
    if value and value.startswith("-"):
        raise ToolboxError(400, f"invalid {name}: {value}")  # git would take it for an option
    return value


def _credentials(body: Any) -> Credentials:
    return Credentials(optional(body, "username", str), optional(body, "password", str))
