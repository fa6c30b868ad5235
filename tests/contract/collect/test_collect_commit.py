"""What the agent left becomes one commit, whatever it did to the repository in between."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from collect_sandbox import DATE, Sandbox

from issuesandbox.api.status_run import ChangeKind
from issuesandbox.domain.collection import (
    SUMMARY_FILE,
    CollectError,
    commit_id,
    parse_collection,
    patch_path,
)


def _files(sandbox: Sandbox, repository: Path, commit: str) -> set[str]:
    listed = sandbox.git("ls-tree", "-r", "-z", "--name-only", commit, cwd=repository)
    return set(listed.split("\0")) - {""}


def test_changes_become_one_commit_on_the_parent(
    sandbox: Sandbox, shell: str, tmp_path: Path
) -> None:
    if "busybox" in shell:
        sandbox.use_tools_of(shell.split(maxsplit=1)[0])
    sandbox.write("src/app.py", "print(2)\nprint(3)\n")
    sandbox.write("new.txt", "new\n")
    (sandbox.work / "README.md").unlink()
    found = sandbox.collect(shell=shell)  # R41
    assert found.commit is not None
    target = sandbox.unpacked(tmp_path, found.commit)
    assert _files(sandbox, target, found.commit) == {"src/app.py", "new.txt"}
    shown = sandbox.git("cat-file", "commit", found.commit, cwd=target)
    person = f"IssueSandbox <bot@example.org> {int(DATE.timestamp())} +0000"
    assert shown == (
        f"tree {found.tree}\nparent {sandbox.parent}\nauthor {person}\ncommitter {person}\n\n"
        "Fix it\n\nCloses #1\n"
    )
    changes = {each.path: (each.kind, each.additions, each.deletions) for each in found.changes}
    assert changes == {
        "README.md": (ChangeKind.DELETED, 0, 1),
        "new.txt": (ChangeKind.ADDED, 1, 0),
        "src/app.py": (ChangeKind.MODIFIED, 2, 1),
    }
    totals = found.totals
    assert (totals.files, totals.created, totals.modified, totals.deleted) == (3, 1, 1, 1)
    assert (totals.additions, totals.deletions) == (3, 2)
    assert found.pack == sandbox.pack(found.commit)
    assert found.pack_size == len(found.pack)


def test_a_pack_that_is_large_is_not_told(sandbox: Sandbox) -> None:
    sandbox.write("large.bin", os.urandom(70_000))
    found = sandbox.collect()
    assert found.commit is not None
    assert found.pack is None
    assert found.pack_size == len(sandbox.pack(found.commit))


def test_the_same_work_gives_the_same_commit_again(sandbox: Sandbox) -> None:
    sandbox.write("new.txt", "new\n")
    first = sandbox.collect()
    assert sandbox.collect(sandbox.order(nonce="n2")) == first
    assert sandbox.leavings() == {f"{first.commit}.pack"}


def test_an_untouched_tree_is_empty(sandbox: Sandbox) -> None:
    found = sandbox.collect()
    assert found.is_empty
    assert found.summary is None


def test_a_summary_alone_is_no_change_and_is_cut(sandbox: Sandbox) -> None:
    sandbox.write(SUMMARY_FILE, "é" * 9000)
    found = sandbox.collect()  # R41
    assert found.is_empty
    assert found.summary is not None
    assert found.summary.startswith("éé")
    assert found.summary.endswith("…")
    assert len(found.summary.encode()) <= 6150


def test_a_summary_that_links_elsewhere_is_not_followed(sandbox: Sandbox) -> None:
    (sandbox.work / SUMMARY_FILE).symlink_to("/etc/passwd")
    found = sandbox.collect()
    assert found.is_empty
    assert found.summary is None


def test_commits_branches_and_index_of_the_agent_do_not_matter(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.write("one.txt", "1\n")
    sandbox.commit_all("mine")
    sandbox.write("two.txt", "2\n")
    sandbox.git("add", "-A")
    sandbox.git("checkout", "-q", "-b", "elsewhere")
    sandbox.git("update-index", "--assume-unchanged", "README.md")
    sandbox.write("README.md", "changed\n")
    found = sandbox.collect()
    assert found.commit is not None
    target = sandbox.unpacked(tmp_path, found.commit)
    parents = sandbox.git("rev-list", "--parents", "-1", found.commit, cwd=target).split()
    assert parents == [found.commit, sandbox.parent]
    assert {each.path for each in found.changes} == {"README.md", "one.txt", "two.txt"}


def test_odd_file_names_survive(sandbox: Sandbox, tmp_path: Path) -> None:
    odd = {"new\nline.txt", " leading", 'quo"te', "tab\tname", "--flag", "back\\slash", "ünï/☃"}
    for name in odd:
        sandbox.write(name, name)
    (sandbox.work / "latin-\udce9").write_text("x")
    found = sandbox.collect()
    assert found.commit is not None
    target = sandbox.unpacked(tmp_path, found.commit)
    assert odd <= _files(sandbox, target, found.commit)
    assert odd <= {each.path for each in found.changes}


def test_renames_modes_links_and_type_changes_are_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    (sandbox.work / "src" / "app.py").rename(sandbox.work / "moved.py")
    (sandbox.work / "src").rmdir()
    (sandbox.work / "src").symlink_to(".")
    (sandbox.work / "README.md").chmod(0o755)
    found = sandbox.collect()
    assert found.commit is not None
    kinds = {each.path: each.kind for each in found.changes}
    assert kinds["moved.py"] is ChangeKind.RENAMED
    target = sandbox.unpacked(tmp_path, found.commit)
    listed = sandbox.git("ls-tree", "-r", found.commit, cwd=target)
    modes = {line.split("\t")[1]: line.split()[0] for line in listed.splitlines()}
    assert modes == {"README.md": "100755", "moved.py": "100644", "src": "120000"}


def test_lines_are_counted_for_the_right_file(sandbox: Sandbox, shell: str) -> None:
    sandbox.write("kept/long\nname.py", "".join(f"{n}\n" for n in range(40)))
    sandbox.write("link", "words\n")
    sandbox.commit_all("more")
    sandbox.parent = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.write("a binary", bytes(range(256)))
    sandbox.write("empty", "")
    (sandbox.work / "README.md").chmod(0o755)
    (sandbox.work / "kept" / "long\nname.py").rename(sandbox.work / 'ünder "other" name.py')
    with (sandbox.work / 'ünder "other" name.py').open("a") as file:
        file.write("more\n")
    (sandbox.work / "link").unlink()
    (sandbox.work / "link").symlink_to("README.md")
    sandbox.write("src/app.py", "print(2)\nprint(3)\n")
    changes = sandbox.collect(shell=shell).changes
    assert {each.path: (each.kind, each.additions, each.deletions) for each in changes} == {
        "README.md": (ChangeKind.MODIFIED, 0, 0),
        "a binary": (ChangeKind.ADDED, None, None),
        "empty": (ChangeKind.ADDED, 0, 0),
        "link": (ChangeKind.MODIFIED, 1, 1),
        "src/app.py": (ChangeKind.MODIFIED, 2, 1),
        'ünder "other" name.py': (ChangeKind.RENAMED, 1, 0),
    }


def test_ignored_files_stay_out_and_tracked_ones_in(sandbox: Sandbox) -> None:
    sandbox.write(".gitignore", "*.log\nbuild/\nREADME.md\n")
    sandbox.write("a.log", "x")
    sandbox.write("build/out", "x")
    sandbox.write("README.md", "still tracked\n")
    (sandbox.work / ".git" / "info").mkdir(exist_ok=True)
    (sandbox.work / ".git" / "info" / "exclude").write_text("*\n")
    found = sandbox.collect()
    assert {each.path for each in found.changes} == {".gitignore", "README.md"}


def test_more_than_fifty_changes_are_counted_but_not_listed(sandbox: Sandbox) -> None:
    for number in range(120):
        sandbox.write(f"many/{number:03}-{'x' * 150}.txt", "1\n2\n")
    found = sandbox.collect()
    assert len(found.changes) == 50
    assert (found.totals.files, found.totals.created, found.totals.additions) == (120, 120, 240)


def test_pointers_of_large_files_are_committed_as_they_are(sandbox: Sandbox) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"
    sandbox.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    sandbox.write("model.bin", pointer)
    sandbox.commit_all("large")
    sandbox.parent = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.write("a.txt", "a\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}


def test_submodules_are_kept_and_follow_their_head(sandbox: Sandbox, tmp_path: Path) -> None:
    library = tmp_path / "library"
    sandbox.git("init", "-q", "-b", "main", str(library))
    sandbox.git("commit", "-q", "--allow-empty", "-m", "lib 1", cwd=library)
    for name in ("filled", "empty"):
        sandbox.git("submodule", "--quiet", "add", str(library), name)
    sandbox.commit_all("submodules")
    sandbox.parent = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.git("submodule", "--quiet", "deinit", "-f", "empty")
    sandbox.write("a.txt", "a\n")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt"}
    sandbox.git("commit", "-q", "--allow-empty", "-m", "lib 2", cwd=sandbox.work / "filled")
    assert {each.path for each in sandbox.collect().changes} == {"a.txt", "filled"}


def test_a_repository_inside_the_tree_is_left_out_and_told(sandbox: Sandbox) -> None:
    sandbox.write("a.txt", "a\n")
    inner = sandbox.work / "inner\nname"
    sandbox.git("init", "-q", str(inner))
    sandbox.git("commit", "-q", "--allow-empty", "-m", "x", cwd=inner)
    (inner / "file").write_text("x")
    found = sandbox.collect()
    assert {each.path for each in found.changes} == {"a.txt"}
    assert found.left_out == 1


def test_unreadable_and_special_files_do_not_stop_it(sandbox: Sandbox) -> None:
    os.mkfifo(sandbox.work / "pipe")
    (sandbox.work / "src" / "app.py").unlink()
    os.mkfifo(sandbox.work / "src" / "app.py")
    bound = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(sandbox.work)
    bound.bind("sock")
    os.chdir(before)
    bound.close()
    sandbox.write("a.txt", "a\n")
    paths = {each.path for each in sandbox.collect().changes}
    assert "a.txt" in paths
    assert not paths & {"pipe", "sock"}


def test_odd_names_survive_small_tools_too(sandbox: Sandbox) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("no busybox here")
    sandbox.use_tools_of(busybox)
    sandbox.write("new\nline.txt", "x")
    sandbox.write(SUMMARY_FILE, "words")
    inner = sandbox.work / "inner\nname"
    sandbox.git("init", "-q", str(inner))
    sandbox.git("commit", "-q", "--allow-empty", "-m", "x", cwd=inner)
    found = sandbox.collect(shell=f"{busybox} sh")
    assert {each.path for each in found.changes} == {"new\nline.txt"}
    assert (found.summary, found.left_out) == ("words", 1)


def test_a_tree_that_was_emptied_is_a_change(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.work / "src")
    (sandbox.work / "README.md").unlink()
    assert sandbox.collect().totals.deleted == 2


def test_a_patch_over_the_limit_is_refused(sandbox: Sandbox) -> None:
    sandbox.write("big", os.urandom(1_000_000))
    with pytest.raises(CollectError) as caught:
        sandbox.collect(sandbox.order(patch=True))
    assert caught.value.code == "PatchTooLarge"


def test_a_shallow_clone_is_enough(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("b.txt", "b\n")
    sandbox.commit_all("second")
    origin = tmp_path / "origin"
    sandbox.work.rename(origin)
    sandbox.git("clone", "-q", "--depth=1", f"file://{origin}", str(sandbox.work), cwd=tmp_path)
    sandbox.parent = sandbox.git("rev-parse", "HEAD").strip()
    sandbox.write("b.txt", "b\nmore\n")
    found = sandbox.collect()
    assert found.commit is not None
    target = tmp_path / "target.git"
    sandbox.git("clone", "-q", "--bare", str(origin), str(target), cwd=tmp_path)
    sandbox.unpacked(tmp_path, found.commit)
    assert sandbox.git("show", f"{found.commit}:b.txt", cwd=target) == "b\nmore\n"


def test_a_pack_over_the_limit_is_refused(sandbox: Sandbox) -> None:
    sandbox.write("big", os.urandom(200_000))
    with pytest.raises(CollectError, match="larger than a push") as caught:
        sandbox.collect(sandbox.order(max_pack=100_000))
    assert caught.value.code == "PackTooLarge"
    assert sandbox.leavings() == set()


def test_a_patch_holds_the_same_changes(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write("src/app.py", "print(2)\n")
    sandbox.write("blob", bytes(range(256)))
    found = sandbox.collect(sandbox.order(patch=True))
    assert found.commit is not None
    patch = Path(patch_path(str(sandbox.run_folder), found.commit))
    assert found.patch_size == patch.stat().st_size
    other = tmp_path / "other"
    sandbox.git("clone", "-q", str(sandbox.work), str(other), cwd=tmp_path)
    sandbox.git("apply", "--index", str(patch), cwd=other)
    assert sandbox.git("write-tree", cwd=other).strip() == found.tree


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("rm -rf work/.git", "RepositoryDamaged"),
        ("rm -rf work", "WorkspaceLost"),
        ("mv work elsewhere; ln -s elsewhere work", "WorkspaceLost"),
        ("rm -rf work/.git; echo 'gitdir: /etc' >work/.git", "RepositoryDamaged"),
        ("rm -rf work/.git/objects/*", "RepositoryDamaged"),
    ],
)
def test_a_destroyed_workspace_has_a_clear_word(sandbox: Sandbox, damage: str, code: str) -> None:
    subprocess.run(["sh", "-c", damage], cwd=sandbox.home, check=True)
    with pytest.raises(CollectError) as caught:
        sandbox.collect()
    assert caught.value.code == code


def test_an_answer_with_another_commit_is_not_believed(sandbox: Sandbox) -> None:
    sandbox.write("a.txt", "a\n")
    order = sandbox.order()
    output = sandbox.run(order)
    found = parse_collection(output, order)
    assert found.commit == commit_id(order.commit, found.tree)
    forged = output.replace(f"commit {found.commit}", f"commit {'1' * 40}")
    with pytest.raises(CollectError) as caught:
        parse_collection(forged, order)
    assert caught.value.code == "CommitForged"
    with pytest.raises(CollectError, match="incomplete"):
        parse_collection(output.removesuffix("end -\n"), order)
