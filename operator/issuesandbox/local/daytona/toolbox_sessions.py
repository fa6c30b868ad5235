"""Sessions in a sandbox: `process/session/...`, with logs to read or to follow.

Following sends the log from its beginning, in binary frames that may split a line or a mark.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, web

from issuesandbox.local.daytona.errors import EmptyAnswer, ToolboxError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.machine import Machine
from issuesandbox.local.daytona.sessions import STDERR_MARK, STDOUT_MARK, Command, Session
from issuesandbox.local.daytona.toolbox_body import optional, required
from issuesandbox.local.daytona.toolbox_proxy import ToolboxProxy

_FRAME = 1024
_POLL_SECONDS = 0.02
# An open log keeps the sandbox alive: the proxy renews its activity this often.
_RENEW_SECONDS = 50.0
# Older clients get the raw log as text.
_JSON_LOGS_SINCE = (0, 167)
_ENTRYPOINT = "entrypoint"


class SessionCalls:
    """Handlers of the calls about sessions and their commands."""

    def __init__(self, proxy: ToolboxProxy, gate: Gate) -> None:
        self._proxy = proxy
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        wrap = self._gate.wrap
        base = "/toolbox/{reference}/process/session"
        one = f"{base}/{{session}}"
        command = f"{one}/command/{{command}}"
        return [
            web.post(base, wrap("toolbox.session.create", self._create)),
            web.get(base, wrap("toolbox.session.list", self._list)),
            web.get(one, wrap("toolbox.session.get", self._get)),
            web.delete(one, wrap("toolbox.session.delete", self._delete)),
            web.post(f"{one}/exec", wrap("toolbox.session.exec", self._exec)),
            web.get(command, wrap("toolbox.session.command", self._command)),
            web.get(f"{command}/logs", wrap("toolbox.session.logs", self._logs)),
            web.post(f"{command}/input", wrap("toolbox.session.input", self._input)),
        ]

    async def _create(self, call: Call) -> web.Response:
        name = required(await call.json(), "sessionId")
        machine = await self._proxy.machine(call)
        if name in machine.sessions or name == _ENTRYPOINT:
            raise ToolboxError(409, "session already exists")
        machine.sessions[name] = await Session.start(name, machine)
        call.effect = "created"
        return web.Response(status=201)

    async def _list(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        return answer([_session_view(session) for session in machine.sessions.values()])

    async def _get(self, call: Call) -> web.Response:
        return answer(_session_view(_session(call, await self._proxy.machine(call))))

    async def _delete(self, call: Call) -> web.Response:
        machine = await self._proxy.machine(call)
        session = _session(call, machine)
        del machine.sessions[session.name]
        await session.end()
        call.effect = "deleted"
        return web.Response(status=204)

    async def _exec(self, call: Call) -> web.Response:
        body = await call.json()
        text = required(body, "command")
        in_background = optional(body, "runAsync", bool) or optional(body, "async", bool)
        quiet = optional(body, "suppressInputEcho", bool) or False
        machine = await self._proxy.machine(call)
        session = _session(call, machine)
        command = await session.run(text, quiet_input=quiet)
        call.effect = "executed"
        if in_background:
            return answer({"cmdId": command.id}, 202)
        await command.over.wait()
        if machine.ended:
            raise EmptyAnswer(502)
        if command.exit_code is None:
            raise ToolboxError(410, "session has ended", code="SESSION_ENDED")
        return answer(
            {"cmdId": command.id, "exitCode": command.exit_code, **_logs_view(command.log)}
        )

    async def _command(self, call: Call) -> web.Response:
        return answer(_command_view(_command(call, await self._proxy.machine(call))))

    async def _logs(self, call: Call) -> web.StreamResponse:
        command = _command(call, await self._proxy.machine(call))
        if call.request.query.get("follow") == "true":
            return await self._follow(call, command)
        if _wants_json(call.request.headers.get("X-Daytona-SDK-Version", "")):
            return answer(_logs_view(command.log))
        return web.Response(body=command.log.read_bytes(), content_type="text/plain")

    async def _input(self, call: Call) -> web.Response:
        data = required(await call.json(), "data")
        _command(call, await self._proxy.machine(call)).send(data)
        call.effect = "written"
        return web.Response(status=204)

    async def _follow(self, call: Call, command: Command) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        if not socket.can_prepare(call.request).ok:
            raise ToolboxError(400, "following a log needs a websocket")
        await socket.prepare(call.request)
        reader = asyncio.ensure_future(_drain(socket))
        try:
            await self._send_log(call, command, socket)
            await socket.close(code=WSCloseCode.OK)
        except (ConnectionError, FileNotFoundError):
            await socket.close(code=WSCloseCode.INTERNAL_ERROR)
        finally:
            reader.cancel()
        return socket

    async def _send_log(self, call: Call, command: Command, socket: web.WebSocketResponse) -> None:
        loop = asyncio.get_running_loop()
        renew_at = loop.time() + _RENEW_SECONDS
        with command.log.open("rb") as log:
            while not socket.closed:
                over = command.over.is_set()
                while frame := log.read(_FRAME):
                    await socket.send_bytes(frame)
                if over:
                    return
                if loop.time() > renew_at:
                    self._proxy.renew(call)
                    renew_at = loop.time() + _RENEW_SECONDS
                await asyncio.sleep(_POLL_SECONDS)


async def _drain(socket: web.WebSocketResponse) -> None:
    # Pings are answered and a close is noticed only while somebody receives.
    async for _ in socket:
        pass


def _session(call: Call, machine: Machine) -> Session:
    session = machine.sessions.get(call.request.match_info["session"])
    if session is None:
        raise ToolboxError(404, "session not found")
    return session


def _command(call: Call, machine: Machine) -> Command:
    command = _session(call, machine).commands.get(call.request.match_info["command"])
    if command is None:
        raise ToolboxError(404, "command not found")
    return command


def _command_view(command: Command) -> dict[str, Any]:
    view: dict[str, Any] = {"id": command.id, "command": command.text}
    if command.exit_code is not None:
        view["exitCode"] = command.exit_code
    return view


def _session_view(session: Session) -> dict[str, Any]:
    commands = [_command_view(command) for command in session.commands.values()]
    return {"sessionId": session.name, "commands": commands}


def _logs_view(log: Path) -> dict[str, str]:
    raw = log.read_bytes()
    # Only a line feed ends a line: a progress bar is full of carriage returns.
    lines = [line + b"\n" for line in raw.split(b"\n")[:-1]]
    return {
        "output": raw.decode(errors="replace"),
        "stdout": _only(lines, STDOUT_MARK),
        "stderr": _only(lines, STDERR_MARK),
    }


def _only(lines: list[bytes], mark: bytes) -> str:
    own = (line.removeprefix(mark) for line in lines if line.startswith(mark))
    return b"".join(own).decode(errors="replace")


def _wants_json(version: str) -> bool:
    numbers = version.split(".")[:2]
    if len(numbers) < 2 or not all(number.isdecimal() for number in numbers):
        return False
    return (int(numbers[0]), int(numbers[1])) >= _JSON_LOGS_SINCE
