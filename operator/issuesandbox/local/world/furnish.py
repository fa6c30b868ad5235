"""What a new world has before anybody does anything: a repository, an App on it, a model key."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from issuesandbox.local.control_plane.access import Access
from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.layout import NAMESPACE

REPOSITORY = "octocat/hello-world"
MODEL_KEY = "of-no-use-outside-this-world"
_FILES = {
    "README.md": "# Hello, world\n",
    "hello.py": 'print("Hello, world")\n',
}


def furnish_cluster(access: Access, model_key: str) -> None:
    """Give the operator a model key; the scripted agent only looks whether it has one."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "issuesandbox-agent", "namespace": NAMESPACE},
        "stringData": {"ANTHROPIC_API_KEY": model_key},
    }
    access.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(secret))


async def furnish_github(admin: str, hook: str, secret: str) -> dict[str, str]:
    """Give a simulated GitHub a repository with our App; return the App's id and private key.

    Its events go to `hook`, signed with `secret`.
    """
    async with aiohttp.ClientSession() as session:
        app = await _call(session, "GET", f"{admin}/app")
        owner = REPOSITORY.partition("/")[0]
        member = {"permission": "admin", "association": "OWNER"}
        await _call(session, "PUT", f"{admin}/users/{owner}", member)
        # A world that was there before has its repository.
        repository = {"repository": REPOSITORY, "files": _FILES, "as": owner}
        if await _call(session, "POST", f"{admin}/repos", repository, may_exist=True):
            await _call(session, "POST", f"{admin}/installations", {"account": owner})
        await _call(session, "PUT", f"{admin}/webhooks", {"urls": [hook], "secret": secret})
    return {"GITHUB_APP_ID": str(app["id"]), "GITHUB_APP_PRIVATE_KEY": app["private_key"]}


async def _call(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    body: dict[str, Any] | None = None,
    *,
    may_exist: bool = False,
) -> Any:
    async with session.request(method, url, json=body) as answer:
        if answer.status == 422 and may_exist:
            return None
        if answer.status >= 300:
            raise WorldError(f"the simulated GitHub answered {answer.status} to {url}")
        return await answer.json()
