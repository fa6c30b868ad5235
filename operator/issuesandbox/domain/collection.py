"""One commit from what a run left behind: what the sandbox is told to make, and what it answered.

The operator alone decides parent, identity, date and message, and computes the commit's id from
them and the tree. An answer with another id is not believed. Pure; knows no toolbox.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from issuesandbox import inside
from issuesandbox.api.status_run import MAX_CHANGES, Change, ChangeKind, ChangeTotals
from issuesandbox.domain.redaction import ending

SUMMARY_FILE: Final = "ISSUESANDBOX_SUMMARY.md"
"""Where the agent is asked to leave its own words, in the work tree; never committed."""
MAX_PACK: Final = 20 * 1024 * 1024
COLLECTOR: Final = "collect.sh"
# An agent may have put programs of its own into a folder that its PATH names first.
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# For what may need more programs than the system's own.
SYSTEM_FIRST: Final = f'PATH={SYSTEM_PATH}:"$PATH"'

_SENT: Final = "ISSUESANDBOX_COLLECTOR"
_ID: Final = re.compile(r"[0-9a-f]{40}")
_MAX_SUMMARY: Final = 6144
_COUNT: Final = re.compile(r"[0-9]{1,15}")
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
_KINDS: Final = {
    "A": ChangeKind.ADDED,
    "C": ChangeKind.ADDED,
    "D": ChangeKind.DELETED,
    "R": ChangeKind.RENAMED,
}


class CollectError(Exception):
    """The work could not be collected; `code` is one CamelCase word."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class IncompleteAnswer(CollectError):
    """The sandbox was cut off, or did not run what it was told to: asking again may help."""


@dataclass(frozen=True, slots=True)
class CommitOrder:
    """Everything of a commit but its tree."""

    parent: str
    name: str
    email: str
    date: datetime
    message: str

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.parent):
            raise ValueError("the parent must be a full commit id")
        if re.search(r"[<>\x00-\x1f]", self.name + self.email):
            raise ValueError("an identity must hold no control characters, `<` or `>`")

    def rest(self) -> bytes:
        """Return the commit object after its `tree` line."""
        person = f"{self.name} <{self.email}> {int(self.date.timestamp())} +0000"
        head = f"parent {self.parent}\nauthor {person}\ncommitter {person}\n\n"
        # git ends a commit at a NUL; line ends are git's own.
        text = self.message.replace("\0", "").replace("\r\n", "\n").strip() + "\n"
        return (head + text).encode("utf-8", "replace")


def commit_id(order: CommitOrder, tree: str) -> str:
    """Return the id that the commit must have."""
    body = f"tree {tree}\n".encode() + order.rest()
    return hashlib.sha1(b"commit %d\0%s" % (len(body), body), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class CollectOrder:
    """Where to collect from and to; all paths are absolute paths in the sandbox."""

    home: str
    work: str
    folder: str
    """Where results are kept: packs are found there again by their commit."""
    nonce: str
    commit: CommitOrder
    patch: bool = False
    summary: str = SUMMARY_FILE
    max_pack: int = MAX_PACK


def collect_command(order: CollectOrder) -> str:
    """Return the command to run in the sandbox, once its agent is dead; needs `collector_sent`."""
    words = (
        *(COLLECTOR, "patch" if order.patch else "commit"),
        *(order.work, order.folder, order.nonce, order.commit.parent),
        *(base64.b64encode(order.commit.rest()).decode(), order.summary, str(order.max_pack)),
        order.home,
    )
    # Without the environment, which may hold variables that git goes by.
    run = f'exec /usr/bin/env -i PATH="$PATH" /bin/sh -c "${_SENT}"'
    return f"{run} {shlex.join(words)}"


def collector_sent() -> dict[str, str]:
    """Return the variable that brings the program along: whatever lies in the sandbox is not run.

    In the command itself it would be read byte by byte: bash takes no more from a pipe at once.
    """
    return {_SENT: inside.script(COLLECTOR).decode()}


def pack_path(folder: str, commit: str) -> str:
    """Return where the pack of a collected commit lies."""
    return f"{folder}/{commit}.pack"


def patch_path(folder: str, commit: str) -> str:
    """Return where the patch of a collected commit lies."""
    return f"{folder}/{commit}.patch"


@dataclass(frozen=True, slots=True)
class Collection:
    """What a run left behind."""

    tree: str
    commit: str | None = None
    """None if the tree is the parent's: there is nothing to publish."""
    pack_size: int = 0
    pack: bytes | None = None
    """The pack itself, where it is small enough to be told; else it is to be fetched."""
    patch_size: int | None = None
    changes: tuple[Change, ...] = ()
    totals: ChangeTotals = field(default_factory=ChangeTotals)
    summary: str | None = None
    left_out: int = 0
    """Repositories inside the work tree that were not committed."""

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing changed but the summary."""
        return self.commit is None


def parse_collection(output: str, order: CollectOrder) -> Collection:
    """Read what `collect.sh` answered; raise `CollectError` for anything that cannot be used."""
    pairs = _said(output)
    said = dict(pairs)
    if "error" in said:
        raise _refusal(said["error"], _decoded(said.get("detail", "")).decode(errors="replace"))
    tree, commit = said.get("tree", ""), said.get("commit")
    if not _ID.fullmatch(tree):
        raise CollectError("CollectFailed", "the sandbox named no tree")
    summary = _summary(said)
    left_out = _number(said, "nested")
    if commit is None:
        return Collection(tree, summary=summary, left_out=left_out)
    if commit != commit_id(order.commit, tree):
        text = "the sandbox made another commit than it was told to; its work is not published"
        raise CollectError("CommitForged", text)
    pack_size, pack = _number(said, "pack"), _decoded(said.get("packed", ""))
    return Collection(
        tree=tree,
        commit=commit,
        pack_size=pack_size,
        # Cut short, it is to be fetched as any other.
        pack=pack if 0 < len(pack) == pack_size else None,
        patch_size=_number(said, "patch") if "patch" in said else None,
        changes=tuple(_changes(value for word, value in pairs if word == "change")),
        totals=_totals(said),
        summary=summary,
        left_out=left_out,
    )


_REFUSALS: Final = {
    "WorkspaceLost": "the work tree is gone",
    "RepositoryDamaged": "the repository in the work tree was damaged",
    "GitMissing": "the sandbox has no git",
    "NoSpace": "the sandbox's disk is full",
    "PackTooLarge": "the changes are larger than a push may be (20 MB)",
    "PatchTooLarge": "the changes are larger than a ConfigMap may be (900 KiB)",
}


def _refusal(code: str, detail: str) -> CollectError:
    text = _REFUSALS.get(code, "git could not make a commit of the work")
    if not re.fullmatch(r"[A-Z][A-Za-z]{1,40}", code):
        code = "CollectFailed"
    last = ending(" ".join(detail.split()), 300)
    return CollectError(code, f"{text}: {last}" if last else text)


def _said(output: str) -> list[tuple[str, str]]:
    """Return the words of the answer and their values; what others printed before is left out."""
    lines = output.splitlines()
    if "collected 1" not in lines or "end -" not in lines:
        raise IncompleteAnswer("CollectFailed", "the sandbox's answer is incomplete")
    answer = lines[lines.index("collected 1") : lines.index("end -")]
    return [(word, value) for word, _, value in (line.partition(" ") for line in answer)]


def _number(said: Mapping[str, str], word: str) -> int:
    value = said.get(word, "0")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else 0


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _summary(said: Mapping[str, str]) -> str | None:
    raw = _decoded(said.get("summary", ""))
    if not raw.strip():
        return None
    cut = raw[:_MAX_SUMMARY].decode(errors="ignore").replace("\0", "").strip()
    return cut + "\n…" if len(raw) > _MAX_SUMMARY else cut


def _totals(said: Mapping[str, str]) -> ChangeTotals:
    files, created, deleted = (_number(said, word) for word in ("files", "created", "deleted"))
    lines = said.get("lines", "")
    return ChangeTotals(
        files=files,
        created=created,
        deleted=deleted,
        modified=max(0, files - created - deleted),
        additions=_counted(lines, "insertion"),
        deletions=_counted(lines, "deletion"),
    )


def _counted(lines: str, what: str) -> int:
    found = re.search(rf"(\d{{1,15}}) {what}", lines)
    return int(found[1]) if found else 0


def _changes(told: Iterable[str]) -> Iterator[Change]:
    """Return a change for each line `KIND ADDED REMOVED NAME`; git counts no lines of binaries."""
    for line in islice(told, MAX_CHANGES):
        kind, _, rest = line.partition(" ")
        added, _, rest = rest.partition(" ")
        removed, _, name = rest.partition(" ")
        if name:
            yield Change(
                path=_unquoted(name),
                kind=_KINDS.get(kind, ChangeKind.MODIFIED),
                additions=int(added) if _COUNT.fullmatch(added) else None,
                deletions=int(removed) if _COUNT.fullmatch(removed) else None,
            )


def _unquoted(name: str) -> str:
    """Return a file name as it is; git quotes odd ones as a C program would."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    raw = _ESCAPE.sub(lambda found: _escaped(found[1]), name[1:-1].encode())
    return raw.decode(errors="replace")


def _escaped(code: bytes) -> bytes:
    return bytes([int(code, 8) & 0xFF]) if len(code) == 3 else _ESCAPED.get(code, code)
