"""A model service that follows a script: it asks for one tool call after the other, then speaks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

_USAGE = {"input_tokens": 100, "output_tokens": 20}


@dataclass
class ScriptedModel:
    """What the service answers, and what it was asked."""

    commands: tuple[str, ...]
    """Shell commands that the agent is told to run, in this order."""
    status: int = 200
    url: str = ""
    keys: set[str | None] = field(default_factory=set)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of the agent."""
        if request.method != "POST" or not request.path.endswith("/v1/messages"):
            return web.Response(status=200)
        self.keys.add(request.headers.get("x-api-key"))
        body = await request.json()
        self.asked.append(body)
        if self.status != 200:
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            return web.json_response({"type": "error", "error": error}, status=self.status)
        done = json.dumps(body["messages"]).count('"tool_result"')
        command = self.commands[done] if done < len(self.commands) else None
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in _events(body.get("model", "scripted"), command, done):
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        await response.write_eof()
        return response


def _events(model: str, command: str | None, turn: int) -> Iterator[dict[str, Any]]:
    message = {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    yield {"type": "message_start", "message": message}
    if command is None:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "All done."}
    else:
        given = json.dumps({"command": command, "description": "Run it"})
        block = {"type": "tool_use", "id": f"toolu_{turn}", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": given}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if command is None else "tool_use"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": _USAGE,
    }
    yield {"type": "message_stop"}


@asynccontextmanager
async def scripted_model(*commands: str, status: int = 200) -> AsyncIterator[ScriptedModel]:
    """Serve a model that wants these commands to be run."""
    model = ScriptedModel(commands, status)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", model.answer)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    model.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield model
    await runner.cleanup()
