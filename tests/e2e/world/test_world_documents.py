"""Every command that README and documents show works as it stands, in a local world."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from documented_commands import ROOT, Block, blocks, pages

from issuesandbox.domain.webhook.resource_names import resource_name
from issuesandbox.local.world.demo import SETTINGS
from issuesandbox.local.world.furnish import REPOSITORY
from issuesandbox.local.world.judged import judged
from issuesandbox.local.world.layout import NAMESPACE, Layout
from issuesandbox.local.world.world import World, running_world

NAME = resource_name(REPOSITORY, 1)
# The pods that nobody runs here are said to be ready: the operator beside the cluster is.
READY = '{"status":{"replicas":1,"readyReplicas":1}}'


def test_every_block_is_found_and_every_exception_has_its_reason() -> None:
    text = "\n".join(each.read_text() for each in pages())
    found = [block for page in pages() for block in blocks(page)]
    assert len(found) == text.count("```sh\n") + text.count("```console\n")
    assert text.count("<!-- not executed") == sum(block.reason is not None for block in found)
    assert sum(block.reason is None for block in found) > len(found) / 2


class Reader:
    """Somebody who follows the pages in a shell inside the world."""

    def __init__(self, layout: Layout, folder: Path, app: dict[str, str]) -> None:
        self._folder = folder
        self._app_id = app["id"]
        for name in ("crds", "manifests", "operator", "kind-config.yaml"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "app.pem").write_text(app["private_key"])
        inside = layout.read_environment()
        tools = (Path(inside["ISSUESANDBOX_KUBECTL"]).parent, Path(sys.executable).parent)
        self._environment = {
            **inside,
            "PATH": os.pathsep.join([*map(str, tools), os.environ["PATH"]]),
            "HOME": str(folder),
            "APP_ID": self._app_id,
            "ANTHROPIC_API_KEY": "of-no-use-outside-this-world",
            "GITHUB_WEBHOOK_SECRET": "0123456789abcdef0123456789abcdef",
            "READ_TOKEN": "of-no-use-either",
            "WRITE_TOKEN": "nor-is-this-one",
        }

    async def follow(self, block: Block) -> None:
        if block.kind == "console":
            for command, shown in block.dialogue():
                said = await self.do(f"{{ {command.replace('NAME', NAME)}; }} 2>&1 || true")
                assert said == shown, f"{block.page}: $ {command}"
            return
        for kind, name in block.creates():
            await self.do(f"kubectl -n {NAMESPACE} delete {kind} {name} --ignore-not-found")
        script = block.script(NAME=NAME, **{"12345": self._app_id})
        await self.do(script, f"{block.page}:\n{block.text}")

    async def do(self, script: str, what: str = "") -> str:
        done = await asyncio.to_thread(
            subprocess.run,
            ["bash", "-euo", "pipefail", "-c", script],
            env=self._environment,
            cwd=self._folder,
            # Whoever is asked whether they are sure is.
            input="y\n" * 5,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, f"{what or script}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, f"{what or script}\n{done.stderr}"
        return done.stdout


async def app_of(world: World) -> dict[str, str]:
    async with aiohttp.ClientSession() as http, http.get(f"{world.github_admin}/app") as answer:
        found = await answer.json()
    return {"id": str(found["id"]), "private_key": found["private_key"]}


@pytest.mark.timeout(600)
async def test_the_commands_of_all_pages_work(programs: object, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "world")
    folder = tmp_path / "reader"
    folder.mkdir()
    async with running_world(layout, lambda _: None, SETTINGS) as world, judged(layout):
        reader = Reader(layout, folder, await app_of(world))
        await reader.do("kubectl apply -k manifests/base")
        status = (
            f"patch deploy issuesandbox-operator --subresource=status --type=merge -p '{READY}'"
        )
        await reader.do(f"kubectl -n {NAMESPACE} {status}")
        opened = await reader.do('kubectl isb demo-issue "Greet people by their name"')
        assert "Opened octocat/hello-world#1." in opened
        await reader.do(f"kubectl wait isb {NAME} --for=create --timeout=60s")
        await reader.do(f"kubectl wait isb {NAME} --for=condition=Finished --timeout=60s")
        for page in pages():
            for block in blocks(page):
                if block.reason is None:
                    await reader.follow(block)
            await reader.do(f"kubectl -n {NAMESPACE} delete cm issuesandbox --ignore-not-found")
