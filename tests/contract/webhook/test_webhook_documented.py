"""What docs/webhook.md tells to try by hand works as it stands there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from webhook_door import SECRETS, Door, Notes, opened

from issuesandbox.domain.webhook.hints import CommentHint, IssueHint

PAGE = Path(__file__).parents[3] / "docs" / "webhook.md"
ADDRESS = "http://127.0.0.1:8080"


def _block(word: str) -> str:
    """Return the block of commands that has a word in it."""
    found = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    (block,) = [each for each in found if word in each]
    return str(block)


async def _type(script: str, door: Door, folder: Path) -> str:
    """Type commands into a shell, for the adapter of this test."""
    assert ADDRESS in script
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    secret = SECRETS[0].decode()
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script.replace(ADDRESS, door.url)),
        cwd=folder,
        env={"PATH": tools, "GITHUB_WEBHOOK_SECRET": secret},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()
    return said.decode()


async def test_curl_and_openssl_deliver_a_payload(door: Door, notes: Notes, tmp_path: Path) -> None:
    # R117
    (tmp_path / "payload.json").write_text(json.dumps(opened(title="By hand")))
    said = await _type(_block("openssl dgst"), door, tmp_path)
    assert said.startswith("HTTP/1.1 202")
    (hint,) = notes.hints
    assert isinstance(hint, IssueHint)
    assert hint.issue.title == "By hand"


async def test_samples_are_sent_by_our_own_command(
    door: Door, notes: Notes, tmp_path: Path
) -> None:
    # R117
    lines = [each for each in _block("local send").splitlines() if "local send" in each]
    said = await _type("\n".join(lines), door, tmp_path)
    assert said.count("202 ") == len(lines) == len(notes.hints) == 2
    first, second = notes.hints
    assert isinstance(first, IssueHint)
    assert isinstance(second, CommentHint)
    assert (first.issue.number, second.issue.number) == (12, 12)
