"""What a run begins with: its commit, in a clean work tree whatever the last run left there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.runs.run_ports import shell
from tests.unit.runs.run_wire import Wire
from tests.unit.runs.run_world import World

from issuesandbox.domain.collection import SYSTEM_PATH
from issuesandbox.domain.supervision import RunPaths
from issuesandbox.engine.runs import preparing
from issuesandbox.engine.runs.preparing import move_in


async def test_a_commit_that_the_resource_names_is_what_the_work_is_based_on(
    tmp_path: Path,
) -> None:
    world = await World.build(tmp_path / "world")
    git = ("git", "-C", str(world.hub.bare))
    first = (await world.hub.refs())["refs/heads/main"]
    _, later = await shell(*git, "commit-tree", "-p", first, "-m", "later", f"{first}^{{tree}}")
    await shell(*git, "update-ref", "refs/heads/main", later.strip())
    source = {"spec": {"repository": {"ref": first}}}
    world.kube.edit(world.key.namespace, world.key.name, source)
    await world.live(Wire())
    run = world.run
    assert (run["outcome"], run["parent"]["commit"]) == ("Succeeded", first)
    _, parent = await shell(*git, "rev-parse", f"{run['commit']}^")
    assert parent.strip() == first


@pytest.mark.parametrize(
    "line",
    [
        "echo It is hush-hush-hush.; exit 1",
        # An earlier agent may have put anything where the commit is read from.
        "echo It is hush-hush-hush.; printf %040d 0 | tr 0 z",
    ],
)
async def test_a_clone_that_cannot_be_used_ends_the_run_and_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    world = await World.build(tmp_path / "world")
    world.kube.secrets["issuesandbox-agent"] = {"PASSWORD": "hush-hush-hush"}
    monkeypatch.setattr(preparing, "move_in", lambda *_: line)
    await world.live(Wire())
    assert (world.run["outcome"], world.run["reason"]) == ("Failed", "CloneFailed")
    assert "It is ***." in world.run["message"]


# git, as it is where an agent left files that cannot be removed.
STUCK = """#!/bin/sh
case " $* " in *" clean "*) echo "failed to remove it" >&2; exit 1 ;; esac
PATH=${PATH#*:} exec git "$@"
"""


@pytest.mark.parametrize("left", ["tree", "stuck", "file", "link", "nothing"])
async def test_a_clone_takes_its_place_whatever_the_last_run_left_there(
    tmp_path: Path, left: str
) -> None:
    home, seed = tmp_path / "home", tmp_path / "seed"
    home.mkdir()
    await shell("git", "init", "-q", "-b", "main", str(seed))
    (seed / "README.md").write_text("hello\n")
    await shell("git", "add", ".", cwd=seed)
    await shell("git", "commit", "-q", "-m", "first", cwd=seed)
    work, fresh = home / "work", home / "work.fresh"
    await shell("git", "clone", "-q", str(seed), str(fresh))
    (home / "other").mkdir()
    (home / "other" / "kept").touch()
    if left in ("tree", "stuck"):
        await shell("git", "clone", "-q", str(seed), str(work))
        (work / "README.md").write_text("spoilt\n")
        (work / "rest").touch()
    elif left == "file":
        work.write_text("taken\n")
    elif left == "link":
        work.symlink_to(home / "other")
    tools = tmp_path / "tools"
    tools.mkdir()
    if left == "stuck":
        (tools / "git").write_text(STUCK)
        (tools / "git").chmod(0o755)
    _, commit = await shell("git", "-C", str(seed), "rev-parse", "HEAD")
    command = move_in(RunPaths(str(home), "r1"), str(fresh))
    path = f"{tools}:{os.environ['PATH']}"
    if left == "stuck":
        command = command.replace(SYSTEM_PATH, path)
    else:
        # What an agent planted is not run, though its PATH names it first.
        (tools / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/caught\n")
        (tools / "git").chmod(0o755)
    code, output = await shell("env", f"PATH={path}", "sh", "-c", command)
    assert (code, output.strip().splitlines()[-1]) == (0, commit.strip())
    assert (work / "README.md").read_text() == "hello\n"
    assert not work.is_symlink()
    assert not (work / "rest").exists()
    assert (home / "other" / "kept").exists()
    assert not (tmp_path / "caught").exists()
    _, status = await shell("git", "-C", str(work), "status", "--porcelain")
    assert status == ""
