"""`issuesandbox mcp` as a coding agent meets it: over a pipe, with the client of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent
from plugin_process import BIN, Plugin

RUN: dict[str, Any] = {"id": "r1", "phase": "Executing", "startedAt": "2030-01-01T00:00:00Z"}


@asynccontextmanager
async def connected(plugin: Plugin, **environment: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=str(BIN / "issuesandbox"), args=["mcp"], env=plugin.environment(**environment)
    )
    async with Client(server) as client:
        yield client


def said(answer: Any) -> str:
    assert isinstance(answer, CallToolResult)
    (text,) = answer.content
    assert isinstance(text, TextContent)
    return text.text


async def test_an_agent_lists_stops_and_continues_under_the_callers_kubeconfig(
    plugin: Plugin,
) -> None:  # R140
    plugin.apply("one", 1, run={"trigger": "1"})
    plugin.set_status("one", phase="Executing", run=RUN)
    async with connected(plugin) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools == {"list", "status", "stop", "continue"}
        listed = await client.call_tool("list", {})
        assert listed.structured_content is not None
        (row,) = listed.structured_content["result"]
        assert (row["NAME"], row["PHASE"], row["ISSUE"]) == ("one", "Executing", "octo/hello#1")
        shown = (await client.call_tool("status", {"name": "one"})).structured_content
        assert shown is not None
        assert shown["status"]["run"]["id"] == "r1"
        assert "told to stop" in said(await client.call_tool("stop", {"name": "one"}))
        assert plugin.get("one")["spec"]["desiredState"] == "Stopped"
        more = {"name": "one", "message": "Also add a test."}
        assert "was sent to one" in said(await client.call_tool("continue", more))
        spec = plugin.get("one")["spec"]
        assert (spec["desiredState"], spec["run"]["prompt"]) == ("Running", "Also add a test.")


async def test_what_cannot_be_done_is_answered_in_one_line(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    async with connected(plugin) as client:
        missing = await client.call_tool("stop", {"name": "nobody"})
        assert missing.is_error
        assert said(missing).endswith(f"there is no IssueSandbox {plugin.namespace}/nobody")
        early = await client.call_tool("continue", {"name": "one", "message": "More."})
        assert early.is_error
        assert "had no run yet" in said(early)
        empty = await client.call_tool("continue", {"name": "one", "message": "  "})
        assert empty.is_error
        assert "empty" in said(empty)


async def test_the_caller_has_only_their_own_rights(plugin: Plugin) -> None:
    plugin.apply("one", 1)
    plugin.access.kubectl("-n", plugin.namespace, "create", "serviceaccount", "guest")
    guest = plugin.access.service_account_kubeconfig(
        plugin.namespace, "guest", plugin.kubeconfig.parent
    )
    async with connected(plugin, KUBECONFIG=str(guest)) as client:
        target = {"name": "one", "namespace": plugin.namespace}
        refused = await client.call_tool("stop", target)
        assert refused.is_error
        assert "you may not do this" in said(refused)
    assert plugin.get("one")["spec"].get("desiredState") != "Stopped"
