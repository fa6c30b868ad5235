"""Two lives, shown as they happen: a sandbox that is kept running, and an issue that is solved."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp

from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.furnish import REPOSITORY
from issuesandbox.local.world.layout import manifests
from issuesandbox.local.world.world import World

# The demonstration does not wait as long as production would before it believes an absence.
SETTINGS = {
    "ISSUESANDBOX_TIMINGS": json.dumps(
        {"fleet_tick": "2s", "fleet_stale": "10s", "absence_gap": "2s"}
    )
}
_SAMPLE = "sandbox-only.yaml"
_NAME = "octocat-hello-world-2"
# The scripted agent finds what to do in the issue.
_ISSUE = {
    "title": "Greet people by their name",
    "body": (
        "The program should take a name.\n\n```scenario\n"
        "say Let me look.\nread hello.py\n"
        'edit hello.py print("Hello, world") => import sys\\n\\nprint(f"Hello, {sys.argv[1]}")\n'
        "bash python3 hello.py Mona\n"
        "summary The program greets whom its first argument names. Ran it with one.\n"
        "say Done.\n```\n"
    ),
    "as": "octocat",
}
_CLEANED_UP = re.compile(r"\*\*Sandbox:\*\* .*` deleted$", re.MULTILINE)
_STEP_SECONDS = 60.0
_POLL_SECONDS = 0.25

Say = Callable[[str], None]


async def play(world: World, say: Say) -> None:
    """Play the story; raise if any step does not happen."""
    async with aiohttp.ClientSession() as session:
        say("\n# An issue gets its sandbox")
        await _kubectl(world, say, "apply", "-f", str(manifests() / "samples" / _SAMPLE))
        first = await _until(lambda: _running(world), "the sandbox to run")

        say("\n# Somebody stops it behind the operator's back")
        await _post(session, f"{world.daytona_admin}/sandboxes/{first}/stop", {})
        await _until(lambda: _stopped(world), "the operator to notice")
        again = await _until(lambda: _running(world), "the sandbox to run again")
        if again != first:
            raise WorldError(f"another sandbox was started: {again} instead of {first}")

        say("\n# What kubectl shows")
        await _kubectl(world, say, "get", "isb", "-o", "wide")

        say("\n# The resource is deleted, and the sandbox with it")
        await _kubectl(world, say, "delete", "isb", _NAME, "--wait=false")
        await _until(lambda: _deleted(world), "the resource to be gone")
        left = await _live_sandboxes(session, world)
        if left:
            raise WorldError(f"{left} sandboxes are left at Daytona")
        await _solve_an_issue(session, world, say)
        say("\nDone: every sandbox that was made is gone, and the work is in a pull request.")


async def _solve_an_issue(session: aiohttp.ClientSession, world: World, say: Say) -> None:
    say("\n# Somebody opens an issue on GitHub")
    issue = await _post(session, f"{world.github_admin}/repos/{REPOSITORY}/issues", _ISSUE)
    say(f"{REPOSITORY}#{issue['number']}: {issue['title']}")
    run = await _until(lambda: _finished(world), "the run to finish")
    if run["outcome"] != "Succeeded":
        raise WorldError(f"the run ended {run['outcome']}: {run.get('message')}")
    say(f"\n# A pull request is open: {run['pullRequest']['url']}")
    await _until(lambda: _cleaned_up(session, world), "the sandbox to be cleaned up")
    await _until(lambda: _noted(world), "the operator to believe it")
    say("\n# What GitHub shows under the issue")
    say(await _until(lambda: _told(session, world, issue["number"]), "the last word"))
    say("\n# What kubectl shows")
    await _kubectl(world, say, "get", "isb", "-o", "wide")


async def _told(session: aiohttp.ClientSession, world: World, number: int) -> str | None:
    """Return the comment on the issue once it tells of the cleanup."""
    token = await _post(session, f"{world.github_admin}/tokens", {"user": "octocat"})
    url = f"{world.github_url}/repos/{REPOSITORY}/issues/{number}/comments"
    headers = {"Authorization": f"Bearer {token['token']}"}
    async with session.get(url, headers=headers) as answer:
        (comment,) = await answer.json()
    text: str = comment["body"].partition("-->")[2].strip()
    return text if _CLEANED_UP.search(text) else None


async def _finished(world: World) -> dict[str, Any] | None:
    run: dict[str, Any] = (await _only_status(world)).get("run", {})
    return run if run.get("phase") == "Finished" else None


async def _only_status(world: World) -> dict[str, Any]:
    found = await asyncio.to_thread(world.access.kubectl, "get", "isb", "-o", "json")
    items = json.loads(found.stdout)["items"]
    status: dict[str, Any] = items[0].get("status", {}) if items else {}
    return status


async def _cleaned_up(session: aiohttp.ClientSession, world: World) -> bool:
    return not await _live_sandboxes(session, world)


async def _noted(world: World) -> bool:
    return "state" not in (await _only_status(world)).get("sandbox", {})


async def _running(world: World) -> str | None:
    status = await _status(world)
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status["conditions"])
    return status["sandbox"]["id"] if ready else None


async def _stopped(world: World) -> bool:
    return bool((await _status(world))["counters"].get("starts"))


async def _deleted(world: World) -> bool:
    return not await _get(world)


async def _status(world: World) -> dict[str, Any]:
    status = (await _get(world)).get("status", {})
    return {"conditions": [], "sandbox": {}, "counters": {}, **status}


async def _get(world: World) -> dict[str, Any]:
    arguments = ("get", "isb", _NAME, "--ignore-not-found", "-o", "json")
    found = await asyncio.to_thread(world.access.kubectl, *arguments)
    resource: dict[str, Any] = json.loads(found.stdout or "{}")
    return resource


async def _live_sandboxes(session: aiohttp.ClientSession, world: World) -> int:
    async with session.get(f"{world.daytona_admin}/sandboxes") as answer:
        listed = await answer.json()
    return sum(each["state"] not in ("destroying", "destroyed") for each in listed)


async def _post(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> Any:
    async with session.post(url, json=body) as answer:
        if answer.status >= 300:
            raise WorldError(f"the simulator answered {answer.status} to {url}")
        return await answer.json(content_type=None)


async def _until(condition: Callable[[], Awaitable[Any]], what: str) -> Any:
    try:
        async with asyncio.timeout(_STEP_SECONDS):
            while not (value := await condition()):
                await asyncio.sleep(_POLL_SECONDS)
            return value
    except TimeoutError:
        raise WorldError(f"waited {_STEP_SECONDS:.0f} s in vain for {what}") from None


async def _kubectl(world: World, say: Say, *arguments: str) -> None:
    shown = " ".join(argument.rsplit("/", 1)[-1] for argument in arguments)
    say(f"$ kubectl {shown}")
    say((await asyncio.to_thread(world.access.kubectl, *arguments)).stdout.rstrip())
