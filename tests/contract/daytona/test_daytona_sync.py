"""The blocking SDK gets along with the simulator as well."""

from __future__ import annotations

import asyncio

import pytest
from daytona import (
    CreateSandboxFromSnapshotParams,
    Daytona,
    DaytonaConfig,
    DaytonaConflictError,
    DaytonaNotFoundError,
    ListSandboxesQuery,
    SandboxState,
    SessionExecuteRequest,
)
from daytona_admin import KEY

from issuesandbox.local.daytona.server import Simulator


def live(url: str) -> None:
    client = Daytona(DaytonaConfig(api_key=KEY, api_url=url))
    params = CreateSandboxFromSnapshotParams(name="claude-issue-1", labels={"a": "b"})
    sandbox = client.create(params, timeout=10)
    with pytest.raises(DaytonaConflictError):
        client.create(params, timeout=10)
    assert client.get("claude-issue-1").id == sandbox.id
    assert [item.id for item in client.list(ListSandboxesQuery(labels={"a": "b"}))] == [sandbox.id]
    assert sandbox.process.exec("echo $A", env={"A": "1"}).result == "1\n"
    sandbox.fs.upload_file(b"data", "file")
    assert sandbox.fs.download_file("file") == b"data"
    assert [entry.name for entry in sandbox.fs.list_files(".")] == ["file"]
    sandbox.process.create_session("s")
    request = SessionExecuteRequest(command="echo out; echo err >&2")
    done = sandbox.process.execute_session_command("s", request)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "out\n", "err\n")
    sandbox.stop(timeout=10)
    sandbox.start(timeout=10)
    assert sandbox.state == SandboxState.STARTED
    sandbox.set_labels({"c": "d"})
    assert client.get(sandbox.id).labels == {"c": "d"}
    sandbox.delete(timeout=10, wait=True)
    with pytest.raises(DaytonaNotFoundError):
        client.get(sandbox.id)
    # The blocking SDK has no close; its feed would go on looking for the server.
    assert client._event_dispatcher is not None
    client._event_dispatcher.disconnect()


async def test_the_blocking_sdk_lives_through_a_whole_life(simulator: Simulator) -> None:
    await asyncio.to_thread(live, simulator.url)
