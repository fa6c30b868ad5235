"""An API server on paper for tests that watch one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from checker_api_server import ApiServer


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


@pytest.fixture
def kubeconfig(api: ApiServer, tmp_path: Path) -> Iterator[Path]:
    with ThreadingHTTPServer(("127.0.0.1", 0), api.handler()) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        path = tmp_path / "kubeconfig"
        cluster = {"server": f"http://127.0.0.1:{server.server_port}"}
        context = {"cluster": "c", "user": "u"}
        path.write_text(
            yaml.safe_dump(
                {
                    "current-context": "x",
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "x", "context": context}],
                }
            )
        )
        yield path
        for _ in api.watched_from:
            api.events.put(None)
        server.shutdown()
        thread.join()
