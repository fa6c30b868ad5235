"""The tools of `issuesandbox mcp`, as a coding agent is told of them."""

from __future__ import annotations

from typing import Any

from mcp import Client

from issuesandbox.entry.mcp_server import build


async def test_the_tools_say_which_of_them_change_something_and_what_they_need() -> None:
    unused: Any = None
    async with Client(build(unused, "home")) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reads = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert reads == {"list", "status"}
    assert tools["stop"].annotations.destructive_hint
    assert {name: tool.input_schema.get("required", []) for name, tool in tools.items()} == {
        "list": [],
        "status": ["name"],
        "stop": ["name"],
        "continue": ["name", "message"],
    }
    assert all(tool.description for tool in tools.values())
