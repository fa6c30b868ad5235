"""The sandbox's answer is read with suspicion."""

from __future__ import annotations

import base64
import hashlib
import shlex
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from issuesandbox.domain.collection import (
    COLLECTOR,
    CollectError,
    CollectOrder,
    CommitOrder,
    collect_command,
    collector_sent,
    commit_id,
    parse_collection,
)

COMMIT = CommitOrder("a" * 40, "Bot", "bot@example.org", datetime(2026, 3, 1, tzinfo=UTC), "Fix")
ORDER = CollectOrder("/h", "/h/work", "/h/out", "n", COMMIT)
TREE = "b" * 40
KNOWN = ("tree", "commit", "pack", "packed", "files", "created", "lines", "change", "summary")


def _answer(*lines: str) -> str:
    return "\n".join(["noise", "collected 1", *lines, "end -", ""])


def test_the_id_is_gits_own() -> None:
    body = (
        f"tree {TREE}\nparent {'a' * 40}\nauthor Bot <bot@example.org> 1772323200 +0000\n"
        "committer Bot <bot@example.org> 1772323200 +0000\n\nFix\n"
    ).encode()
    expected = hashlib.sha1(b"commit %d\0%s" % (len(body), body)).hexdigest()
    assert commit_id(COMMIT, TREE) == expected


def test_the_command_holds_no_text_of_others() -> None:
    nasty = CommitOrder("a" * 40, "B", "b@c", COMMIT.date, "'; rm -rf / #\n$(x)")
    command = collect_command(CollectOrder("/h", "/h/w x", "/o", "n", nasty))
    assert "rm -rf /" not in command
    (sent,) = collector_sent()
    words = shlex.split(command)
    assert words[:6] == ["exec", "/usr/bin/env", "-i", "PATH=$PATH", "/bin/sh", "-c"]
    assert words[6:10] == [f"${sent}", COLLECTOR, "commit", "/h/w x"]
    assert b"rm -rf /" in base64.b64decode(words[13])
    assert words[-1] == "/h"


@pytest.mark.parametrize(
    ("name", "parent"), [("a<b", "a" * 40), ("a\nb", "a" * 40), ("ok", "main"), ("ok", "a" * 39)]
)
def test_orders_that_would_forge_a_commit_are_refused(name: str, parent: str) -> None:
    with pytest.raises(ValueError, match="must"):
        CommitOrder(parent, name, "b@c", COMMIT.date, "x")


def test_an_error_has_its_word_and_the_last_of_what_git_said() -> None:
    detail = base64.b64encode(b"fatal: no\n").decode()
    with pytest.raises(CollectError, match=r"^the sandbox's disk is full: fatal: no$") as caught:
        parse_collection(_answer("error NoSpace", f"detail {detail}"), ORDER)
    assert caught.value.code == "NoSpace"
    with pytest.raises(CollectError) as odd:
        parse_collection(_answer("error $(x)"), ORDER)
    assert odd.value.code == "CollectFailed"


@given(
    st.lists(st.tuples(st.sampled_from(KNOWN), st.text(max_size=40)), max_size=8),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=60),
)
def test_any_answer_is_read_or_refused(pairs: list[tuple[str, str]], names: list[str]) -> None:
    lines = [f"{word} {value}" for word, value in pairs]
    lines += [f"tree {TREE}", f"commit {commit_id(COMMIT, TREE)}"]
    lines += [f'change M 1 - "{name}"' for name in names]
    try:
        found = parse_collection(_answer(*lines), ORDER)
    except CollectError:
        return
    assert found.commit == commit_id(COMMIT, TREE)
    assert len(found.changes) <= 50


@pytest.mark.parametrize(
    ("size", "told", "pack"),
    [
        ("4", base64.b64encode(b"PACK").decode(), b"PACK"),
        ("9", base64.b64encode(b"PACK").decode(), None),
        ("4", "no base64", None),
        ("0", "", None),
    ],
)
def test_a_pack_is_taken_from_the_answer_if_it_is_whole(
    size: str, told: str, pack: bytes | None
) -> None:
    lines = (f"tree {TREE}", f"commit {commit_id(COMMIT, TREE)}", f"pack {size}", f"packed {told}")
    assert parse_collection(_answer(*lines), ORDER).pack == pack
