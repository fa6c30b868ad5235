"""As much of an API server as a list and a watch need, to break in ways a real one rarely does."""

from __future__ import annotations

import json
import queue
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit


class ApiServer:
    """As much of an API server as a list and a watch need; a test scripts what it says."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 1
        self.installed = True
        self.watched_from: list[str] = []
        # What the open watch is to send; None ends its answer.
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def write(self, name: str, kind: str, *, told: bool = True, **spec: Any) -> None:
        """Change an object, and tell the watch unless that is to be missed."""
        self.version += 1
        meta = {
            "uid": f"uid-{name}",
            "name": name,
            "namespace": "default",
            "resourceVersion": str(self.version),
        }
        self.objects[name] = {"metadata": meta, "spec": spec}
        event = {"type": kind, "object": self.objects[name]}
        if kind == "DELETED":
            del self.objects[name]
        if told:
            self.events.put(event)

    def handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                if not server.installed:
                    self.answer(404, {"kind": "Status", "code": 404})
                elif "watch" in query:
                    server.watched_from.append(query["resourceVersion"][0])
                    self.watch()
                else:
                    version = {"resourceVersion": str(server.version)}
                    self.answer(200, {"metadata": version, "items": [*server.objects.values()]})

            def answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def watch(self) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while (event := server.events.get()) is not None:
                    line = json.dumps(event).encode() + b"\n"
                    # In two pieces: a line may arrive in any number of chunks.
                    for piece in (line[:10], line[10:]):
                        self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, *_: object) -> None:
                pass

        return Handler
