"""What settings bring along: hooks, MCP servers, a key helper, variables.

In a headless run nobody is asked whether a checked-out repository is trusted, so its settings act
unless the command line says otherwise. This is what makes the right flags testable.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .flags import Invocation

if TYPE_CHECKING:
    from subprocess import Popen

_STARTS_WITHIN = 0.2


class Settings:
    """Everything the settings of one run want to happen."""

    def __init__(self, invocation: Invocation, config_dir: str) -> None:
        files = {
            "user": os.path.join(config_dir, "settings.json"),
            "project": ".claude/settings.json",
            "local": ".claude/settings.local.json",
        }
        self._invocation = invocation
        self._all = [
            _object_in(path)
            for source, path in files.items()
            if source in invocation.setting_sources
        ]

    def environment(self) -> dict[str, str]:
        """Return the variables that override those of the process; no mode but sources stops it."""
        merged: dict[str, str] = {}
        for settings in self._all:
            merged.update({key: str(value) for key, value in _mapping(settings, "env").items()})
        return merged

    def hooks(self, event: str) -> list[str]:
        """Return the commands that an event runs."""
        if self._invocation.has("--bare") or self._invocation.has("--safe-mode"):
            return []
        groups = [
            group
            for settings in self._all
            for group in _list(_mapping(settings, "hooks"), event)
            if isinstance(group, dict)
        ]
        hooks = [hook for group in groups for hook in _list(group, "hooks")]
        return [
            str(hook["command"]) for hook in hooks if isinstance(hook, dict) and "command" in hook
        ]

    def key_helper(self) -> str | None:
        """Return the command that prints the API key."""
        if self._invocation.has("--bare"):
            return None
        return next((str(s["apiKeyHelper"]) for s in self._all if "apiKeyHelper" in s), None)

    def model(self) -> str | None:
        """Return the model that the settings prefer."""
        return next((str(s["model"]) for s in self._all if "model" in s), None)

    def servers(self) -> dict[str, list[str]]:
        """Return the MCP servers to start, by name."""
        found: dict[str, object] = {}
        if "project" in self._invocation.setting_sources and not any(
            self._invocation.has(flag) for flag in ("--strict-mcp-config", "--bare", "--safe-mode")
        ):
            found.update(_mapping(_object_in(".mcp.json"), "mcpServers"))
        for path in self._invocation.lists.get("--mcp-config", ()):
            found.update(_mapping(_object_in(path), "mcpServers"))
        return {
            name: [str(server.get("command", "")), *map(str, _list(server, "args"))]
            for name, server in found.items()
            if isinstance(server, dict)
        }


def run_command(command: str, env: Mapping[str, str]) -> str:
    """Run a command that settings asked for, and return what it printed."""
    import subprocess

    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace").strip()


def start_server(command: list[str], env: Mapping[str, str]) -> Popen[bytes] | None:
    """Start an MCP server; None if it fails, which never ends a run."""
    import subprocess

    try:
        server = subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        server.wait(_STARTS_WITHIN)
    except subprocess.TimeoutExpired:
        return server
    except OSError:
        return None
    return None


def send_key(base_url: str, key: str) -> None:
    """Show the key to the address that settings chose; a stand-in does so on this machine only."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    address = urlsplit(base_url)
    if address.hostname not in ("127.0.0.1", "localhost", "::1"):
        return
    connection = HTTPConnection(address.hostname, address.port, timeout=2)
    try:
        connection.request("POST", "/v1/messages", b"{}", {"x-api-key": key})
        connection.getresponse().read()
    except (OSError, HTTPException):
        return
    finally:
        connection.close()


def _object_in(source: str) -> dict[str, object]:
    """Return the JSON object in a file, or in the text itself; nothing if there is none."""
    try:
        if source.lstrip().startswith("{"):
            parsed = json.loads(source)
        else:
            with open(source, encoding="utf-8") as file:
                parsed = json.load(file)
    except (OSError, ValueError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _mapping(holder: Mapping[str, object], key: str) -> dict[str, object]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def _list(holder: Mapping[str, object], key: str) -> list[object]:
    value = holder.get(key)
    return value if isinstance(value, list) else []
