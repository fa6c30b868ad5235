"""A repository of 300 MB is cloned, changed and published like any other."""

from __future__ import annotations

import os
import subprocess
import time

import pytest
from run_stage import RunStage

MEGABYTES = 300


def enlarge(runs: RunStage) -> None:
    """Put so many megabytes that cannot be compressed onto the default branch."""
    (bare,) = runs.github.world.git.root.glob("*.git")
    git = ["git", "-c", "core.compression=0", "--git-dir", str(bare), "fast-import", "--quiet"]
    with subprocess.Popen(git, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        importing.stdin.write(
            b"commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 5\nlarge"
            b"\nfrom refs/heads/main^0\n"
        )
        noise = os.urandom(1 << 20)
        for index in range(MEGABYTES):
            importing.stdin.write(
                b"M 100644 inline data/%03d.bin\ndata 1048576\n%03d" % (index, index)
            )
            importing.stdin.write(noise[3:] + b"\n")
    assert importing.returncode == 0


@pytest.mark.timeout(240)
async def test_a_repository_of_300_megabytes_is_no_trouble(
    runs: RunStage, capsys: pytest.CaptureFixture[str]
) -> None:
    enlarge(runs)
    await runs.start_operator()
    began = time.monotonic()
    await runs.run_issue("write a.txt a")
    run = await runs.until_finished(seconds=180)
    with capsys.disabled():
        print(f"\na run in a repository of {MEGABYTES} MB: {time.monotonic() - began:.0f} s")
    assert (run["outcome"], run["cloneAttempts"]) == ("Succeeded", 0)
    assert run["changeTotals"]["files"] == 1
    assert (await runs.refs())[f"refs/heads/{run['branch']}"] == run["commit"]
