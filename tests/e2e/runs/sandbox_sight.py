"""What an onlooker of the test machine sees of simulated sandboxes: their folders and processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psutil
from run_stage import RunStage

from issuesandbox.local.daytona.config import DEFAULT_KEY


async def sandbox_of(runs: RunStage, name: str) -> dict[str, Any]:
    """Return the sandbox of a resource as Daytona shows it."""
    status = await runs.stage.status(name)
    return await runs.stage.daytona_get(status["sandbox"]["id"])


async def home_of(runs: RunStage, name: str) -> Path:
    """Return the home folder of a resource's sandbox, which must be running."""
    sandbox = await sandbox_of(runs, name)
    url = f"{sandbox['toolboxProxyUrl'].rstrip('/')}/{sandbox['id']}/user-home-dir"
    async with runs.http.get(url, headers={"Authorization": f"Bearer {DEFAULT_KEY}"}) as answer:
        assert answer.status == 200, await answer.text()
        return Path((await answer.json())["dir"])


async def processes_of(runs: RunStage, name: str) -> list[str]:
    """Return the command lines of what runs in a resource's sandbox."""
    sandbox = (await runs.stage.status(name)).get("sandbox", {}).get("id")
    found = await runs.stage.admin("GET", "processes")
    return [_command(pid) for pid in found.get(sandbox, ())]


def holders_of(needle: str) -> set[int]:
    """Return the processes of this machine with a text in their environment or command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        for part in ("environ", "cmdline"):
            try:
                held = (folder / part).read_bytes()
            except OSError:
                continue
            if needle.encode() in held:
                found.add(int(folder.name))
    return found


def files_with(folder: Path, needle: str) -> list[str]:
    """Return the files under a folder that hold a text."""
    found = []
    # Folders come and go meanwhile, which `walk` passes over.
    for path in (Path(place, name) for place, _, names in os.walk(folder) for name in names):
        try:
            if path.is_file() and needle.encode() in path.read_bytes():
                found.append(str(path.relative_to(folder)))
        except OSError:
            continue
    return found


def _command(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return str(pid)
