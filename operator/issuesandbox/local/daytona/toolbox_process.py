"""One-shot commands in a sandbox: `process/execute` and `process/code-run`.

The command goes to a shell's standard input, as the daemon does it. A command that fails is a
success with an exit code; only what could not be run or took too long is an error.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import Process
from typing import Any

from aiohttp import web

from issuesandbox.local.daytona.errors import EmptyAnswer, ToolboxError
from issuesandbox.local.daytona.gate import Call, Gate, answer
from issuesandbox.local.daytona.machine import Machine, kill_group
from issuesandbox.local.daytona.toolbox_body import optional, required, string_map
from issuesandbox.local.daytona.toolbox_proxy import ToolboxProxy

_INTERPRETERS = {
    "python": [sys.executable, "-"],
    "javascript": ["node", "-"],
    "typescript": ["node", "--experimental-strip-types", "-"],
}


class ProcessCalls:
    """Handlers of the calls that run something and wait for its end."""

    def __init__(self, proxy: ToolboxProxy, gate: Gate) -> None:
        self._proxy = proxy
        self._gate = gate

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        base, wrap = "/toolbox/{reference}/process", self._gate.wrap
        return [
            web.post(f"{base}/execute", wrap("toolbox.execute", self._execute)),
            web.post(f"{base}/code-run", wrap("toolbox.code_run", self._code_run)),
        ]

    async def _execute(self, call: Call) -> web.Response:
        body = await call.json()
        command = required(body, "command")
        machine = await self._proxy.machine(call)
        call.effect = "executed"
        return answer(await self._run(machine, [machine.shell], command, body))

    async def _code_run(self, call: Call) -> web.Response:
        body = await call.json()
        code, language = required(body, "code"), required(body, "language")
        if language not in _INTERPRETERS:
            raise ToolboxError(400, f"unsupported language: {language}")
        argv = optional(body, "argv", list) or []
        machine = await self._proxy.machine(call)
        call.effect = "executed"
        command = [*_INTERPRETERS[language], *(str(word) for word in argv)]
        return answer(await self._run(machine, command, code, body))

    async def _run(
        self, machine: Machine, command: list[str], script: str, body: dict[str, Any]
    ) -> dict[str, Any]:
        timeout = optional(body, "timeout", int) or None
        cwd = machine.path(optional(body, "cwd", str))
        env = string_map(body, "envs")
        try:
            process = await machine.spawn(command, cwd=cwd, env=env)
        except (OSError, ValueError) as error:
            return {"exitCode": -1, "result": str(error)}
        output = await _finish(machine, process, script, timeout)
        if machine.ended:
            raise EmptyAnswer(502)
        code = process.returncode
        assert code is not None
        return {"exitCode": code if code >= 0 else -1, "result": output}


async def _finish(machine: Machine, process: Process, script: str, timeout: int | None) -> str:
    # The daemon goes on with the command when the caller hangs up, and a background process that
    # holds the output open outlives the shell.
    running = machine.keep(process.communicate(f"{script}\n".encode()))
    try:
        async with asyncio.timeout(timeout):
            output, _ = await asyncio.shield(running)
    except TimeoutError as error:
        kill_group(process)
        raise ToolboxError(
            408, "command execution timeout", code="PROCESS_EXECUTION_TIMEOUT"
        ) from error
    return output.decode(errors="replace")
