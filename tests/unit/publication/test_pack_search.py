"""Secrets are found in a pack however git stored them there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from issuesandbox.domain.pack_search import PackError, added, holds_any

KEY = b"planted-key-0123456789"
WHO = ("-c", "user.name=a", "-c", "user.email=a@b")


def git(folder: Path, *words: str, feed: bytes = b"") -> bytes:
    command = ["git", *WHO, *words]
    return subprocess.run(command, cwd=folder, input=feed, capture_output=True, check=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "long.txt").write_bytes(b"".join(b"%d some line\n" % each for each in range(9000)))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def thin_pack(folder: Path) -> bytes:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    return git(
        folder, "pack-objects", "--revs", "--thin", "--stdout", "-q", feed=b"HEAD\n^HEAD~1\n"
    )


@pytest.mark.parametrize(
    "place", ["new file", "in a long text", "in a difference", "a file's name"]
)
def test_a_key_is_found_wherever_it_is(folder: Path, place: str) -> None:
    long = (folder / "long.txt").read_bytes()
    for shown in (b"harmless", KEY):
        if place == "new file":
            (folder / "new").write_bytes(b"x" * 20_000 + shown)
        elif place == "in a long text":
            # Pieces of the text are read one by one, and a key may lie across two of them.
            (folder / "new").write_bytes(b"".join(b"%07d" % at + shown for at in range(30_000)))
        elif place == "in a difference":
            # Longer than what one step of a difference can add, so the key is cut there.
            (folder / "long.txt").write_bytes(long[:5000] + b"-" * 115 + shown + long[5000:])
        else:
            (folder / shown.decode()).write_text("x")
        pack = thin_pack(folder)
        assert holds_any(pack, [b"something else", KEY]) is (shown == KEY)
        assert len(pack) < len(long) / 10 or place != "in a difference", "it is no difference"


def test_steps_of_a_difference_are_put_together() -> None:
    assert added(b"\x05\x05" + b"\x03abc" + b"\x91\x01\x02" + b"\x02de") == b"abcde"


@pytest.mark.parametrize("cut", [0, 3, 11, 13, 40, -25])
def test_what_is_no_whole_pack_is_refused(folder: Path, cut: int) -> None:
    (folder / "new").write_bytes(bytes(range(256)) * 50)
    with pytest.raises(PackError):
        holds_any(thin_pack(folder)[:cut], [KEY])
