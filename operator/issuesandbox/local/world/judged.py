"""The checker over a running world, from outside: the folder of the world is all it needs."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from issuesandbox.local.checker.collect import Sources
from issuesandbox.local.checker.guard import BrokenInvariantsError, Guard, guarded
from issuesandbox.local.world.errors import WorldError
from issuesandbox.local.world.furnish import MODEL_KEY
from issuesandbox.local.world.layout import NAMESPACE, Layout


@asynccontextmanager
async def judged(layout: Layout) -> AsyncIterator[Guard]:
    """Watch a world during a block and judge it at the end; a broken promise is a WorldError."""
    environment = layout.read_environment()
    sources = await asyncio.to_thread(_sources, layout, environment)
    try:
        async with guarded(sources, Path(environment["KUBECONFIG"])) as guard:
            guard.metrics += environment["ISSUESANDBOX_METRICS"].split()
            yield guard
    except BrokenInvariantsError as broken:
        raise WorldError(str(broken)) from None


def _sources(layout: Layout, environment: Mapping[str, str]) -> Sources:
    kubectl = [environment["ISSUESANDBOX_KUBECTL"], "--kubeconfig", environment["KUBECONFIG"]]
    uid = subprocess.run(
        [*kubectl, "get", "namespace", NAMESPACE, "-o", "jsonpath={.metadata.uid}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return Sources(
        # The operator of a world is given no installation id, so it takes its namespace's.
        installation=uid.stdout,
        daytona_admin=f"{environment['DAYTONA_API_URL'].removesuffix('/api')}/_sim",
        github=environment["GITHUB_API_URL"],
        logs=(layout.logs,),
        secrets={
            "Daytona key": environment["DAYTONA_API_KEY"],
            "model key": MODEL_KEY,
            "webhook's secret": environment["GITHUB_WEBHOOK_SECRET"],
            "a line of the App's key": _app_key(environment).splitlines()[1],
        },
    )


def _app_key(environment: Mapping[str, str]) -> str:
    with urlopen(f"{environment['ISSUESANDBOX_GITHUB_ADMIN']}/app") as answer:  # noqa: S310 - ours
        return str(json.load(answer)["private_key"])
