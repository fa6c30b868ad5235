"""The git data of all repositories: bare folders, handled only by the real `git`.

Children get no configuration of the user or the machine, and nothing from outside reaches a
shell. Knows nothing of accounts, permissions or HTTP.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from issuesandbox.local.github import receive_hook
from issuesandbox.local.github.model import ZERO_SHA, GlobalId

_CONFIG = {
    # As GitHub: fetch by id and partial clones work, bad objects are refused.
    "uploadpack.allowAnySHA1InWant": "true",
    "uploadpack.allowFilter": "true",
    "receive.fsckObjects": "true",
    # Every update passes the hook, which alone can refuse a ref with a reason of its own.
    "receive.procReceiveRefs": "refs",
    # A background gc would outlive the simulator.
    "gc.auto": "0",
    "receive.autogc": "false",
    "http.receivepack": "true",
}

_FORBIDDEN_IN_REF = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|^[/.\-]|[/.]$|^@$|^$"
)


def is_ref_name(name: str) -> bool:
    """Tell whether git would take this as the name of a branch or ref."""
    return _FORBIDDEN_IN_REF.search(name) is None


def is_object_id(text: str) -> bool:
    """Tell whether this is a full object id."""
    return re.fullmatch("[0-9a-f]{40}", text) is not None


class GitFailedError(Exception):
    """A git command refused; the message is its last line."""


class RefMovedError(Exception):
    """A ref was not where the caller believed it to be."""


@dataclass(frozen=True)
class File:
    """A file to write, or to remove when it has no content."""

    content: bytes | None
    mode: str = "100644"


@dataclass(frozen=True)
class NewCommit:
    """A commit to make on top of a parent (or on nothing)."""

    files: Mapping[str, File]
    message: str
    author: str
    at: datetime
    parent: str | None = None


@dataclass(frozen=True)
class CommitFacts:
    """What is shown of a commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    name: str
    email: str
    date: str
    message: str


class BareGit:
    """All bare repositories below one folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repositories"
        self._home = folder / "home"
        self._hooks = folder / "hooks"
        for path in (self.root, self._home, self._hooks):
            path.mkdir(exist_ok=True)
        self._locks: dict[GlobalId, asyncio.Lock] = {}
        self._write_hooks()

    def lock(self, repository: GlobalId) -> asyncio.Lock:
        """Return the lock for what must look and act on one repository in one step."""
        return self._locks.setdefault(repository, asyncio.Lock())

    def path(self, repository: GlobalId) -> Path:
        """Return the bare folder of a repository."""
        return self.root / f"{repository}.git"

    def environment(self, **extra: str) -> dict[str, str]:
        """Return the whole environment of a git child, its configuration included."""
        # In the environment and not in each repository, so that a state folder can be moved.
        config = {**_CONFIG, "core.hooksPath": str(self._hooks)}
        settings = {"GIT_CONFIG_COUNT": str(len(config))}
        for index, (name, value) in enumerate(config.items()):
            settings |= {f"GIT_CONFIG_KEY_{index}": name, f"GIT_CONFIG_VALUE_{index}": value}
        return {
            **settings,
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._home),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_TERMINAL_PROMPT": "0",
            **extra,
        }

    async def create(self, repository: GlobalId, default_branch: str) -> None:
        """Make an empty bare repository."""
        branch = f"--initial-branch={default_branch}"
        await self._run(["init", "--quiet", "--bare", branch, self.path(repository)])

    def remove(self, repository: GlobalId) -> None:
        """Delete a repository's data."""
        shutil.rmtree(self.path(repository), ignore_errors=True)

    async def run(self, repository: GlobalId, *arguments: str, stdin: bytes = b"") -> str:
        """Run a git command in a repository and return its output."""
        output = await self._run(["--git-dir", self.path(repository), *arguments], stdin)
        return output.decode(errors="replace")

    async def tip(self, repository: GlobalId, ref: str) -> str | None:
        """Return what a full ref name points to."""
        return (await self.refs(repository, ref)).get(ref)

    async def refs(self, repository: GlobalId, prefix: str = "refs/") -> dict[str, str]:
        """Return all refs at or below a prefix."""
        output = await self.run(
            repository, "for-each-ref", "--format=%(refname) %(objectname)", "--", prefix
        )
        pairs = (line.rsplit(" ", 1) for line in output.splitlines())
        return {name: sha for name, sha in pairs}

    async def kind(self, repository: GlobalId, sha: str) -> str | None:
        """Return the type of an object, if it exists."""
        try:
            return (await self.run(repository, "cat-file", "-t", sha)).strip()
        except GitFailedError:
            return None

    async def is_ancestor(self, repository: GlobalId, older: str, newer: str) -> bool:
        """Tell whether the newer commit contains the older one."""
        try:
            await self.run(repository, "merge-base", "--is-ancestor", older, newer)
        except GitFailedError:
            return False
        return True

    async def move(self, repository: GlobalId, ref: str, old: str, new: str) -> None:
        """Move a ref, provided it still is at `old`; zero creates or deletes."""
        command = f"update {ref}\0{new}\0{old}\0" if new != ZERO_SHA else f"delete {ref}\0{old}\0"
        try:
            await self.run(repository, "update-ref", "--stdin", "-z", stdin=command.encode())
        except GitFailedError as error:
            raise RefMovedError(str(error)) from error

    async def commit(self, repository: GlobalId, new: NewCommit) -> str:
        """Write a commit without moving any ref, and return its id."""
        output = await self.run(
            repository, "fast-import", "--quiet", "--done", stdin=_import_stream(new)
        )
        return output.strip()

    async def log(self, repository: GlobalId, *revisions: str) -> list[CommitFacts]:
        """Read commits, newest first."""
        form = "--format=%H%n%T%n%P%n%an%n%ae%n%cI%n%B"
        output = await self.run(repository, "log", "-z", form, *revisions, "--")
        return [_facts(record) for record in output.split("\0") if record]

    async def _run(self, arguments: Sequence[str | Path], stdin: bytes = b"") -> bytes:
        child = await asyncio.create_subprocess_exec(
            "git",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.environment(),
            cwd=self.root,
        )
        output, complaint = await child.communicate(stdin)
        if child.returncode != 0:
            lines = (complaint or output).decode(errors="replace").strip().splitlines()
            raise GitFailedError(lines[-1] if lines else f"git ended with {child.returncode}")
        return output

    def _write_hooks(self) -> None:
        python, script = shlex.quote(sys.executable), shlex.quote(receive_hook.__file__)
        hooks = {
            "proc-receive": f"exec {python} -I -S {script}",
            "post-receive": f'exec cat >> "${receive_hook.ACCEPTED}"',
        }
        for name, command in hooks.items():
            hook = self._hooks / name
            hook.write_text(f"#!/bin/sh\n{command}\n")
            hook.chmod(0o700)


def _facts(record: str) -> CommitFacts:
    sha, tree, parents, name, email, date, message = record.split("\n", 6)
    return CommitFacts(sha, tree, tuple(parents.split()), name, email, date, message.rstrip("\n"))


def _import_stream(new: NewCommit) -> bytes:
    """Describe a commit to `git fast-import`, which prints its id."""
    person = f"{new.author} <{new.author}@users.noreply.github.com> {int(new.at.timestamp())} +0000"
    message = new.message.encode()
    # A ref of its own is dropped again at the end: only the caller moves real refs, by
    # compare-and-swap, while fast-import would simply overwrite them.
    lines = [
        b"commit refs/import/new\nmark :1\n",
        f"author {person}\ncommitter {person}\ndata {len(message)}\n".encode(),
        message + b"\n",
    ]
    if new.parent is not None:
        lines.append(f"from {new.parent}\n".encode())
    for path, file in new.files.items():
        if file.content is None:
            lines.append(f"D {_quoted(path)}\n".encode())
        else:
            head = f"M {file.mode} inline {_quoted(path)}\ndata {len(file.content)}\n"
            lines += [head.encode(), file.content, b"\n"]
    lines.append(f"\nget-mark :1\nreset refs/import/new\nfrom {ZERO_SHA}\n\ndone\n".encode())
    return b"".join(lines)


def _quoted(path: str) -> str:
    """Quote a path so that no file name can end the line."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
