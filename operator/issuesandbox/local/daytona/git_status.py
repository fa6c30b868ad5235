"""Reads `git status --porcelain=v2 --branch -z` into the daemon's answer. Pure."""

from __future__ import annotations

from typing import Any

_WORDS = {
    ".": "Unmodified",
    "M": "Modified",
    "T": "Modified",
    "A": "Added",
    "D": "Deleted",
    "R": "Renamed",
    "C": "Copied",
    "U": "Updated but unmerged",
}


def read_status(text: str) -> dict[str, Any]:
    """Return branch, distance to its upstream, and the state of each changed file."""
    status: dict[str, Any] = {"currentBranch": "", "fileStatus": [], "branchPublished": False}
    fields = iter(text.split("\0"))
    for entry in fields:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            _read_branch(status, rest)
        elif kind == "?":
            status["fileStatus"].append(_file(rest, "?", "?"))
        elif kind in ("1", "2", "u"):
            # The path comes after 8 fields, 9 for a rename, 10 for a conflict.
            count = {"1": 7, "2": 8, "u": 9}[kind]
            path = rest.split(" ", count)[count]
            extra = next(fields) if kind == "2" else ""
            status["fileStatus"].append(_file(path, rest[0], rest[1], extra))
    return status


def _read_branch(status: dict[str, Any], text: str) -> None:
    name, _, value = text.partition(" ")
    match name:
        case "branch.head":
            status["detached"] = value == "(detached)"
            status["currentBranch"] = "HEAD" if status["detached"] else value
        case "branch.upstream":
            status["upstream"] = value
        case "branch.ab":
            ahead, behind = value.split()
            status["branchPublished"] = True
            status["ahead"], status["behind"] = abs(int(ahead)), abs(int(behind))


def _file(path: str, staging: str, worktree: str, extra: str = "") -> dict[str, str]:
    return {
        "name": path,
        "extra": extra,
        "staging": _WORDS.get(staging, "Untracked"),
        "worktree": _WORDS.get(worktree, "Untracked"),
    }
