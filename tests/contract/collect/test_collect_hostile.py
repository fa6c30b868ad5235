"""Nothing that an agent planted is run when its work is collected."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from collect_sandbox import Sandbox


def _configured(name: str, *more: tuple[str, str]) -> Callable[[Sandbox, str], None]:
    def plant(sandbox: Sandbox, trap: str) -> None:
        sandbox.git("config", name, trap)
        for other, value in more:
            sandbox.git("config", other, value)

    return plant


def _attributes(text: str, *names: str) -> Callable[[Sandbox, str], None]:
    def plant(sandbox: Sandbox, trap: str) -> None:
        sandbox.write(".gitattributes", text)
        for name in names:
            sandbox.git("config", name, trap)

    return plant


def _hooks(sandbox: Sandbox, trap: str) -> None:
    folder = sandbox.work / ".git" / "hooks"
    folder.mkdir(exist_ok=True)
    known = "pre-commit post-commit post-index-change reference-transaction post-checkout"
    for name in known.split():
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(trap)
    sandbox.git("config", "core.hooksPath", str(folder))
    # Planting them may have sprung one.
    (sandbox.home / "sprung").unlink(missing_ok=True)


def _include(sandbox: Sandbox, trap: str) -> None:
    more = sandbox.home / "more"
    more.write_text(f"[core]\n\tfsmonitor = {trap}\n")
    sandbox.git("config", "include.path", str(more))
    sandbox.git("config", f"includeIf.gitdir:{sandbox.home}/.path", str(more))


def _home(sandbox: Sandbox, trap: str) -> None:
    text = f'[core]\n\tfsmonitor = {trap}\n[filter "x"]\n\tclean = {trap}\n'
    (sandbox.home / ".gitconfig").write_text(text)
    folder = sandbox.home / ".config" / "git"
    folder.mkdir(parents=True)
    (folder / "config").write_text(text)
    (folder / "attributes").write_text("* filter=x\n")
    (folder / "ignore").write_text("*\n")


def _info_attributes(sandbox: Sandbox, trap: str) -> None:
    info = sandbox.work / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("* filter=x diff=x\n")
    sandbox.git("config", "filter.x.clean", trap)
    sandbox.git("config", "diff.x.textconv", trap)


def _programs(sandbox: Sandbox, trap: str) -> None:
    _plant_programs(sandbox.home / ".local" / "bin", trap)


def _programs_elsewhere(sandbox: Sandbox, trap: str) -> None:
    _plant_programs(sandbox.tools, trap)


def _plant_programs(folder: Path, trap: str) -> None:
    folder.mkdir(parents=True)
    for name in (
        "sh",
        "git",
        "base64",
        "sed",
        "tr",
        "head",
        "wc",
        "rm",
        "mkdir",
        "dirname",
        "env",
        "cat",
    ):
        (folder / name).symlink_to(trap)


def _nested(sandbox: Sandbox, trap: str) -> None:
    inner = sandbox.work / "inner"
    sandbox.git("init", "-q", str(inner))
    sandbox.git("commit", "-q", "--allow-empty", "-m", "x", cwd=inner)
    sandbox.git("config", "core.fsmonitor", trap, cwd=inner)


def _submodule(sandbox: Sandbox, trap: str) -> None:
    library = sandbox.home.parent / "library"
    sandbox.git("init", "-q", "-b", "main", str(library))
    (library / "file").write_text("x\n")
    sandbox.git("add", "-A", cwd=library)
    sandbox.git("commit", "-q", "-m", "lib 1", cwd=library)
    sandbox.git("submodule", "--quiet", "add", str(library), "sub module")
    sandbox.commit_all("submodule")
    sandbox.parent = sandbox.git("rev-parse", "HEAD").strip()
    inner = sandbox.work / "sub module"
    for name in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge"):
        sandbox.git("config", name, trap, cwd=inner)
    sandbox.git("config", "-f", ".gitmodules", "submodule.sub module.ignore", "none")
    (inner / "file").write_text("y\n")
    (inner / ".gitattributes").write_text("* filter=x\n")


_PLANTS = {
    "fsmonitor": _configured("core.fsmonitor"),
    "hooks": _hooks,
    "clean filter": _attributes("* filter=x\n", "filter.x.clean", "filter.x.smudge"),
    "filter process": _attributes("* filter=x\n", "filter.x.process"),
    "attributes outside the tree": _info_attributes,
    "diff driver": _attributes("* diff=x\n", "diff.x.command", "diff.x.textconv"),
    "external diff": _configured("diff.external"),
    "pager and editor": _configured("core.pager", ("core.editor", "x"), ("pager.diff-tree", "x")),
    "ssh and askpass": _configured("core.sshCommand", ("core.askPass", "x")),
    "signing": _configured("gpg.program", ("commit.gpgSign", "true")),
    "pack-objects hook": _configured("uploadpack.packObjectsHook"),
    "alias": _configured("alias.add"),
    "credential helper": _configured("credential.helper"),
    "includes": _include,
    "configuration of the home": _home,
    "programs on the path": _programs,
    "programs on the path outside the home": _programs_elsewhere,
    "a nested repository": _nested,
    "a submodule": _submodule,
}


@pytest.mark.parametrize("planted", _PLANTS)
def test_what_was_planted_is_never_run(sandbox: Sandbox, planted: str) -> None:
    trap = sandbox.plant_trap()
    _PLANTS[planted](sandbox, trap)
    sandbox.write("src/app.py", "print(2)\n")
    found = sandbox.collect(sandbox.order(patch=True))
    assert sandbox.traces == []
    assert "src/app.py" in {each.path for each in found.changes}


@pytest.mark.parametrize("planted", ["fsmonitor", "clean filter", "a submodule", "hooks"])
def test_the_traps_do_work_on_a_trusting_git(sandbox: Sandbox, planted: str) -> None:
    _PLANTS[planted](sandbox, sandbox.plant_trap())
    sandbox.write("src/app.py", "print(2)\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(sandbox.home)}
    command = ["git", "add", "-A"]
    subprocess.run(
        command, cwd=sandbox.work, env=environment, capture_output=True, check=False, timeout=20
    )
    assert sandbox.traces != []


def test_pipes_in_the_place_of_gits_files_do_not_hold_it_up(sandbox: Sandbox) -> None:
    inner = sandbox.work / "inner" / ".git"
    sandbox.git("init", "-q", str(inner.parent))
    (inner / "HEAD").unlink()
    loose = sandbox.work / ".git" / "objects" / "ab" / ("0" * 38)
    loose.parent.mkdir(exist_ok=True)
    for place in (
        sandbox.work / ".gitignore",
        sandbox.work / ".gitattributes",
        inner / "HEAD",
        loose,
    ):
        os.mkfifo(place)
    sandbox.write("a.txt", "a\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}


def test_names_that_other_systems_take_for_git_are_not_committed(sandbox: Sandbox) -> None:
    sandbox.write("a.txt", "a\n")
    for name in ("git~1/config", ".g\u200cit/config", ".GIT/hooks/post-checkout"):
        sandbox.write(f"sub/{name}", "planted\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}


def test_another_work_tree_in_the_configuration_is_not_taken(sandbox: Sandbox) -> None:
    decoy = sandbox.home / "decoy"
    decoy.mkdir()
    (decoy / "secret").write_text("not yours\n")
    sandbox.git("config", "core.worktree", str(decoy))
    sandbox.git("config", "core.bare", "true")
    sandbox.write("a.txt", "a\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}


def test_replaced_and_grafted_history_is_not_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.git("checkout", "-q", "--orphan", "fake")
    sandbox.write("README.md", "fake\n")
    sandbox.commit_all("fake")
    fake = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.git("replace", "-f", sandbox.parent, fake)
    info = sandbox.work / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(f"{sandbox.parent} {fake}\n")
    found = sandbox.collect()
    assert found.commit is not None
    assert {each.path for each in found.changes} == {"README.md"}
    bare = tmp_path / "target.git"
    sandbox.git("clone", "-q", "--bare", str(sandbox.work), str(bare), cwd=tmp_path)
    sandbox.unpacked(tmp_path, found.commit)


def test_objects_from_elsewhere_are_not_borrowed(sandbox: Sandbox, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    sandbox.git("init", "-q", "-b", "main", str(foreign), cwd=tmp_path)
    (foreign / "secret").write_text("somebody else's\n")
    sandbox.git("add", "-A", cwd=foreign)
    sandbox.git("commit", "-qm", "secret", cwd=foreign)
    alternates = sandbox.work / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{foreign}/.git/objects\n")
    sandbox.write("secret", "somebody else's\n")
    found = sandbox.collect()
    assert found.commit is not None
    target = sandbox.unpacked(tmp_path, found.commit)
    assert sandbox.git("show", f"{found.commit}:secret", cwd=target) == "somebody else's\n"


def test_a_git_folder_moved_away_still_lends_its_objects(sandbox: Sandbox) -> None:
    (sandbox.work / ".git").rename(sandbox.home / "moved")
    (sandbox.work / ".git").symlink_to(sandbox.home / "moved")
    sandbox.write("a.txt", "a\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}


def test_text_of_an_issue_in_the_message_is_only_text(sandbox: Sandbox) -> None:
    nasty = "$(touch pwned) `touch pwned`; touch pwned '\"\n\n--flag\n\0\r\n☃ -----\n"
    sandbox.write("a.txt", "a\n")
    found = sandbox.collect(sandbox.order(message=nasty))
    assert found.commit is not None
    assert sandbox.leavings() == {f"{found.commit}.pack"}
    assert not list(sandbox.home.rglob("pwned"))


def test_nothing_of_ours_is_left_in_the_work_tree(sandbox: Sandbox) -> None:
    sandbox.write("a.txt", "a\n")
    before = {path for path in sandbox.work.rglob("*")}
    sandbox.collect()
    assert {path for path in sandbox.work.rglob("*")} == before
